package privatedb

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"net"
	"os"
	"strings"
	"sync"
	"time"
)

// Options configure a server. The zero value is a temporary server with a buffer pool of 128 MB and
// without TCP.
type Options struct {
	Dir     string   // the folder, made if missing; "": a temporary one, removed with the server
	Durable bool     // commits survive a power cut; false: only the server's death (flushed once a second)
	Pool    int      // InnoDB buffer pool in MB; 0 = 128
	Redo    int      // redo log in MB; 0 = 64
	TCP     bool     // also listen on a port of 127.0.0.1, where every local user can be root: for tests
	Extra   []string // additional flags, after ours; without spaces
	Env     []string // additional variables of the server, NAME=value; for tests, such as a library to preload
	Seed    string   // data folder of a stopped server to copy; "": make a new one

	// More is called before each start of the server, and returns more flags and variables; nil:
	// add nothing. data is the data folder, which exists. args is the command line so far.
	More func(data string, args []string) (flags, env []string, err error)
}

// DB is a running server. Its methods are safe for concurrent use.
type DB struct {
	options Options
	server  Server
	dir     string // absolute
	socket  string
	port    int // 0 = none

	watcher *watcher
	log     *os.File
	parent  *os.File // file of parent.lock
	child   *os.File // file of server.lock, inherited by every server

	mu      sync.Mutex
	process *process // the last server process, dead or alive
	stopped bool
}

// starting bounds the time until a server answers, including recovery after a crash.
const starting = 2 * time.Minute

// running keeps every DB reachable until Stop. The garbage collector would close the pipe of an
// unreachable DB, and the watcher would then assume that we died.
var running sync.Map // *DB → nothing

// Start finds a server program, makes the data folder on first use (about 0.5 s for MariaDB, 3 s
// for MySQL), starts the server (about 0.1 s) and returns when it answers. ctx bounds only the
// start. If another process uses the folder, the error wraps ErrInUse. If a dead process has left a
// server there, Start ends that server first, which may take 20 s.
func Start(ctx context.Context, o Options) (*DB, error) {
	server, err := Find()
	if err != nil {
		return nil, err
	}

	db := &DB{options: o, server: server, dir: o.Dir}
	running.Store(db, nil)
	if err := db.start(ctx); err != nil {
		return nil, errors.Join(fmt.Errorf("start a private database in %s: %w", db.dir, err), db.Stop())
	}
	return db, nil
}

func (db *DB) start(ctx context.Context) error {
	if err := db.makeDir(); err != nil {
		return err
	}

	var err error
	if db.parent, err = lockParent(ctx, db.dir); err != nil {
		return err
	}
	if err := db.placeSocket(); err != nil {
		return err
	}
	if db.watcher, err = watch(db.temporary(), db.removals()); err != nil {
		return err
	}

	if db.child, err = lockServer(ctx, db.dir); err != nil {
		return err
	}
	if db.log, err = openLog(db.logPath()); err != nil {
		return err
	}
	if err := db.initialise(ctx); err != nil {
		return err
	}

	return db.launch(ctx)
}

// Ports are below the ephemeral ranges of Linux and macOS. So no outgoing connection takes a port
// while its server restarts.
const firstPort, lastPort = 13000, 31000

// launch starts the server on the data folder and waits until it answers. Another process may take
// a new port after our check, before the server binds it, so launch tries several ports. A restart
// keeps the port, because clients know it.
func (db *DB) launch(ctx context.Context) error {
	if !db.options.TCP || db.port != 0 {
		return db.launchOnce(ctx)
	}

	var err error
	for range 5 {
		if db.port, err = FreePort(); err != nil {
			return err
		}
		if err = db.launchOnce(ctx); err == nil {
			return db.openTCP(ctx)
		}
		if !strings.Contains(err.Error(), "ddress already in use") {
			return err
		}
	}

	return err
}

func (db *DB) launchOnce(ctx context.Context) error {
	// Remove leftovers of a killed server. Otherwise MySQL would not start if any process now has
	// the id in the lock file.
	for _, path := range []string{db.socket, db.socket + ".lock"} {
		if err := os.Remove(path); err != nil && !errors.Is(err, os.ErrNotExist) {
			return err
		}
	}

	args := db.serverArgs()
	var env []string
	if db.options.More != nil {
		flags, more, err := db.options.More(db.data(), args)
		if err != nil {
			return err
		}
		args, env = append(args, flags...), more
	}

	p, err := db.spawn(args, env...)
	if err != nil {
		return err
	}

	db.process = p
	return db.await(ctx, p)
}

// await returns when the server answers. After a failed start no process is left.
func (db *DB) await(ctx context.Context, p *process) error {
	ctx, cancel := context.WithTimeoutCause(ctx, starting, fmt.Errorf("no response within %s", starting))
	defer cancel()

	for {
		err := db.ping(ctx)
		if err == nil {
			return nil
		}
		if p.exited() {
			return fmt.Errorf("%s: %s%s", db.server.Path, p.ending(), db.tail(p))
		}

		select {
		case <-ctx.Done():
			return errors.Join(context.Cause(ctx), err, p.kill())
		case <-time.After(poll):
		}
	}
}

// spawn starts a program under the watcher, and writes its process id to a file for later starts.
func (db *DB) spawn(args []string, more ...string) (*process, error) {
	// Give each server its own TMPDIR. A starting server deletes all temporary tables in TMPDIR,
	// even those of other living servers, and MariaDB 10.11 crashes when its table vanishes. The
	// variable also works with spaces in the path; a flag would not.
	env := append(append(append(os.Environ(), "TMPDIR="+db.temp()), db.options.Env...), more...)

	p, err := spawn(db.watcher, db.log, db.child, env, args...)
	if err != nil {
		return nil, err
	}
	if err := os.WriteFile(pidFile(db.dir), fmt.Appendln(nil, p.pid), 0o600); err != nil {
		return nil, errors.Join(err, p.kill())
	}

	return p, nil
}

// issued has the ports that FreePort has returned. Their users may not listen yet.
var issued sync.Map

// FreePort returns a port of 127.0.0.1 that has no listener now, and that no outgoing connection
// will take. It returns each port only once.
func FreePort() (int, error) {
	err := errors.New("no port is free")
	for range 50 {
		port := firstPort + rand.IntN(lastPort-firstPort)
		if _, is := issued.LoadOrStore(port, true); is {
			continue
		}
		var l net.Listener
		if l, err = net.Listen("tcp4", fmt.Sprintf("127.0.0.1:%d", port)); err == nil {
			return port, l.Close()
		}
	}

	return 0, err
}

func (db *DB) temporary() bool { return db.options.Dir == "" }
