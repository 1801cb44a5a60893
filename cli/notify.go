//go:build unix

package cli

import (
	"context"
	"time"

	"github.com/coreos/go-systemd/v22/daemon"
)

// statusPause is the interval between two status messages to systemd.
const statusPause = time.Second

// notifySystemd reports the node's status to systemd until over ends, if systemd has started us
// with Type=notify. It sends READY immediately, because the API already answers. If MySQL is still
// down, a restart of the node would not help. `systemctl status` shows the status.
//
// With WatchdogSec in the unit, systemd kills a node that sends no message for that time. Our
// messages only show that the node can still read its own sets. They continue without MySQL,
// because a restart would not help then either.
func notifySystemd(over, drain context.Context, ready func() error) {
	if ok, err := daemon.SdNotify(false, daemon.SdNotifyReady); !ok || err != nil {
		return
	}

	pause := statusPause
	if watchdog, err := daemon.SdWatchdogEnabled(false); err == nil && watchdog > 0 {
		pause = min(pause, watchdog/3)
	}

	told := ""
	tick := time.NewTicker(pause)
	defer tick.Stop()

	stopping := drain.Done()
	for {
		status := "ready"
		if err := ready(); err != nil {
			status = err.Error()
		}
		if stopping == nil {
			status = "draining"
		}
		if status != told {
			_, _ = daemon.SdNotify(false, "STATUS="+status)
			told = status
		}

		_, _ = daemon.SdNotify(false, daemon.SdNotifyWatchdog)
		select {
		case <-stopping:
			stopping = nil
			_, _ = daemon.SdNotify(false, daemon.SdNotifyStopping)
		case <-tick.C:
		case <-over.Done():
			return
		}
	}
}
