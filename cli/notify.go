//go:build unix

package cli

import (
	"context"
	"time"

	"github.com/coreos/go-systemd/v22/daemon"
)

// statusPause is between looks at what systemd is told of the node.
const statusPause = time.Second

// notifySystemd tells systemd, if it has started us (Type=notify), how the node is, until over is. READY is said at once: the
// API answers, and a MySQL that is not up yet is no reason to start us again. `systemctl status` shows the rest.
//
// With WatchdogSec in the unit, systemd kills a node that has not been heard of for so long. Only a node that can still look
// at its own sets is heard of. One that has lost MySQL is: nobody is helped by starting it again.
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
