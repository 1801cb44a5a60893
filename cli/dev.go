//go:build unix

package cli

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"sync"
	"time"

	"go-crontab/internal/privatedb"
	"go-crontab/session"

	"github.com/spf13/cobra"
	"golang.org/x/sys/unix"
)

// dev is a cluster of processes on this machine, with its own database.
type dev struct {
	*console
	data      string
	count     int
	firstPort int
	expiry    time.Duration
	away      time.Duration // time before a killed node restarts
	level     string
	noSamples bool

	token   string // of the admin
	lines   *lines
	db      *privatedb.DB
	lock    *os.File // every node inherits it, so it is locked as long as any node lives
	members []*member
	ports   sync.Mutex // held while a node chooses its port
}

func devCommand(c *console) *cobra.Command {
	d := &dev{console: c}
	cmd := &cobra.Command{
		Use:   "dev",
		Short: "Start a trial cluster: a database, three nodes and sample jobs",
		Long: `Start a trial cluster on this machine: a private MariaDB or MySQL, three nodes as separate
processes, and a few sample jobs. It needs no configuration and leaves nothing but its data folder.
Ctrl-C stops everything; the next start continues with the same jobs and history.`,
		Example: "  go-crontab dev\n  go-crontab dev --data ./data --nodes 5",
		Args:    nothing,
		RunE: func(*cobra.Command, []string) error {
			if err := checkVariables(); err != nil {
				return err
			}

			stop := onSignals()
			defer stop.forget()

			c.queueLog()
			d.lines = newLines(c.out, func(err error) {
				go stop.request(fmt.Errorf("the output cannot be written: %w",
					err))
			})
			err := d.run(stop)
			if stop.drain.Err() != nil && errors.Is(err, context.Cause(stop.drain)) {
				return nil // the start was interrupted
			}
			return err
		},
	}

	d.flags(cmd)
	return cmd
}

func (d *dev) flags(cmd *cobra.Command) {
	flags := cmd.Flags()
	flags.SortFlags = false
	flags.IntVarP(&d.count, "nodes", "n", 3, "number of nodes, 1 to 9")
	flags.IntVarP(&d.firstPort, "port", "p", 8610, "port of the first node; the others take the next free ports")
	flags.StringVar(&d.data, "data", "", "data folder (default ~/.local/share/go-crontab/dev)")
	durationVar(flags, &d.expiry, "session-expiry", session.DefaultExpiry,
		"consider a node dead after this long without a sign of life")
	durationVar(flags, &d.away, "restart-after", 45*time.Second, "restart a killed node after this long")
	flags.BoolVar(&d.noSamples, "no-samples", false, "add no sample jobs")
	choiceVar(flags, &d.level, "log-level", "", "info", "lowest level to log", "debug", "info", "warn", "error")
}

func (d *dev) check() (err error) {
	if d.count < 1 || d.count > 9 {
		return usageError("--nodes %d: want 1 to 9", d.count)
	}
	if d.firstPort < 1 || d.firstPort > 65000 {
		return usageError("--port %d: want 1 to 65000", d.firstPort)
	}
	if _, err := session.NewTimings(d.expiry); err != nil {
		return usageError("--session-expiry: %w", err)
	}

	if d.data == "" {
		if d.data, err = appDir("XDG_DATA_HOME", ".local/share", "", "dev"); err != nil {
			return fmt.Errorf("%w; name a folder with --data", err)
		}
	}

	d.data, err = filepath.Abs(d.data)
	return err
}

// run runs the cluster until a signal ends it. The database stops last.
func (d *dev) run(stop *stopping) (err error) {
	if err := d.check(); err != nil {
		return err
	}

	// Start the database. It stops last.
	dsn, err := d.openDatabase(stop.drain)
	if d.db != nil {
		defer func() { err = errors.Join(err, d.db.Stop()) }()
	}
	if err != nil {
		return err
	}
	if err := d.awaitEarlier(stop.drain); err != nil {
		return err
	}
	defer d.lock.Close()

	unlinkTokens(d.tokenFile()) // left by an earlier run that was killed

	// Start the nodes.
	var nodes, database sync.WaitGroup
	for i := range d.count {
		m := &member{dev: d, name: fmt.Sprintf("node-%d", i+1), dsn: dsn, colour: memberColours[i%len(memberColours)]}
		if err := m.choosePort(); err != nil {
			return err
		}
		d.members = append(d.members, m)
	}

	for _, m := range d.members {
		nodes.Go(func() { m.run(stop) })
	}

	// Keep the database running, and print the guide.
	keeping, release := context.WithCancel(context.Background())
	defer release()

	database.Go(func() { d.keepDatabase(keeping) })
	d.welcome(stop.drain)
	<-stop.drain.Done()
	defer context.AfterFunc(stop.hard, func() { d.say("killing the commands of the nodes") })()

	// Stop the nodes, then the database.
	d.say("stopping (%v): the nodes drain; press Ctrl-C again to kill their commands", context.Cause(stop.drain))
	nodes.Wait()
	release()
	database.Wait()
	if err := d.db.Stop(); err != nil {
		return err
	}

	d.say("stopped; the data stays in %s", d.data)
	return nil
}

// awaitEarlier takes the lock of the nodes. If an earlier dev was killed, its nodes may still be
// draining. The database is back now, so they can finish cleanly. Afterwards their ports are free.
func (d *dev) awaitEarlier(ctx context.Context) error {
	f, err := os.OpenFile(filepath.Join(d.data, nodesLock), os.O_RDWR|os.O_CREATE, 0o600)
	if err != nil {
		return err
	}

	for try := 0; ; try++ {
		err := unix.Flock(int(f.Fd()), unix.LOCK_EX|unix.LOCK_NB)
		switch {
		case err == nil:
			d.lock = f
			return nil
		case !errors.Is(err, unix.EWOULDBLOCK) && !errors.Is(err, unix.EINTR):
			return errors.Join(fmt.Errorf("lock %s: %w", f.Name(), err), f.Close())
		case try == 10:
			d.say("waiting for the nodes of an earlier run to end")
		case try > 600:
			return errors.Join(errors.New("nodes of an earlier run do not end; to find them: pgrep -af 'go-crontab serve'"),
				f.Close())
		}

		select {
		case <-ctx.Done():
			return errors.Join(context.Cause(ctx), f.Close())
		case <-time.After(100 * time.Millisecond):
		}
	}
}

// say prints a line from dev itself.
func (d *dev) say(format string, args ...any) {
	d.lines.print("dev", bold, fmt.Sprintf(format, args...))
}
