package guard

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"os/exec"
	"runtime"
	"sync"
	"sync/atomic"
	"syscall"
	"time"

	"go-crontab/internal/boottime"
	"go-crontab/internal/loop"
	"go-crontab/internal/privilege"
)

// Config configures a guard. All fields but the wakes are required.
type Config struct {
	Node   string // the node's name
	DSN    string // for the burial; it must have all that a connection needs
	Expiry time.Duration
	Kill   time.Duration // age of the lease at which commands get SIGTERM
	Grace  time.Duration // time from SIGTERM to SIGKILL
	End    time.Duration // age of the lease at which a node that could still act is killed
	Seats  int           // most attempts at once
	JSON   bool          // format of the guard's log on this process's standard error; false: text
	Log    *slog.Logger  // of this process

	WakeClaimer, WakeStarter loop.Wake // raised when a new guard is ready, so that held-up work goes on
}

// Protected is the session that a guard guards.
type Protected struct {
	Session string
	Marker  string        // the start of a variable in the environment of its commands; the run's id follows
	Cgroups string        // the common start of the paths of its cgroups, "" for none
	Age     time.Duration // since the last good beat was sent
	Lease   Lease
}

// Lease is the lease of a session.
type Lease interface {
	// Lapse is called once the guard has seen the lease lapse. It may be called several times.
	Lapse()
}

// Guard is the node's side. It guards one session. Its methods are safe for concurrent use.
type Guard struct {
	cfg    Config
	lease  Lease // of the protected session
	memory *memory
	file   *os.File
	limit  time.Duration // a guard that has not looked for this long counts as dead

	pid    atomic.Int64
	hasDSN atomic.Bool // the guard has the DSN, so it can bury
	pipe   atomic.Pointer[os.File]

	mu     sync.Mutex
	vacant []*Seat
}

// New makes the memory for a guard.
func New(cfg Config) (*Guard, error) {
	f, b, err := share(sizeFor(cfg.Seats))
	if err != nil {
		return nil, fmt.Errorf("guard: %w", err)
	}

	g := &Guard{cfg: cfg, memory: format(b, cfg.Seats), file: f, limit: min(cfg.Expiry/5, mostLimit)}
	for i := cfg.Seats - 1; i >= 0; i-- {
		g.vacant = append(g.vacant, &Seat{g, i, &g.memory.seats[i]})
	}

	runtime.AddCleanup(g, unshare, b) // seats point to g, so no seat is in use any more
	return g, nil
}

// Protect names the session to guard. It must be called before Run.
func (g *Guard) Protect(p Protected) error {
	if len(g.cfg.DSN) > maxDSN {
		return fmt.Errorf("guard: the DSN has %d bytes; at most %d are allowed", len(g.cfg.DSN), maxDSN)
	}

	now := boottime.Now()
	g.lease = p.Lease
	g.Renewed(now - p.Age)
	return g.memory.command(&orders{
		PID: os.Getpid(), Began: int64(now), Node: g.cfg.Node, Session: p.Session,
		Marker: p.Marker, Cgroups: p.Cgroups,
		JSON:   g.cfg.JSON,
		Expiry: g.cfg.Expiry, Kill: g.cfg.Kill, Grace: g.cfg.Grace, End: g.cfg.End,
	})
}

// mostLimit bounds the time after which a silent guard counts as dead.
const mostLimit = 4 * time.Second

// The pause before the next guard grows from firstPause to mostPause. It starts again from
// firstPause if the last guard lived for longLife.
const (
	firstPause = 100 * time.Millisecond
	mostPause  = 2 * time.Second
	longLife   = 10 * time.Second
)

// Run keeps a guard process until ctx ends. The last process ends by itself: at once after Over,
// and otherwise when it has done its work.
func (g *Guard) Run(ctx context.Context) error {
	defer g.file.Close()
	pause := time.Duration(0)
	for {
		began := time.Now()
		err := g.keep(ctx)
		if ctx.Err() != nil {
			return context.Cause(ctx)
		}
		if g.memory.phase.Load() == over {
			return nil
		}
		if time.Since(began) > longLife {
			pause = 0
		}

		g.cfg.Log.Error("the guard ended, starting no runs until a new guard is running", "error", err, "in", pause)
		select {
		case <-ctx.Done():
			return context.Cause(ctx)
		case <-time.After(pause):
		}

		pause = min(max(firstPause, 2*pause), mostPause)
	}
}

// Reasons to replace a guard.
var (
	errStuck = errors.New("the guard stopped responding")
	errLate  = errors.New("the guard did not start in time")
)

// keep starts a guard and watches it until it has ended. When ctx ends, keep closes the pipe, and
// the guard sees that.
func (g *Guard) keep(ctx context.Context) error {
	g.memory.looked.Store(0)
	ended, cmd, socket, err := g.start()
	if err != nil {
		return err
	}
	defer g.letGo()

	defer socket.Close() // the DSN stays in the guard's end of the socket
	kill := func(why error) error {
		_ = cmd.Process.Kill()
		<-ended
		return why
	}

	tick := time.NewTicker(g.limit / lookAgain / whileStarting)
	defer tick.Stop()
	var seen int64
	for still, ready := 0, false; ; {
		select {
		case err := <-ended:
			g.hasDSN.Store(false)
			g.pid.Store(0)
			if err == nil {
				err = errors.New("exit status 0")
			}
			return err
		case <-ctx.Done():
			return g.part(ended)
		case <-tick.C:
		}

		looked := g.memory.looked.Load()
		switch {
		case looked != seen:
			seen, still = looked, 0
			if !ready {
				if err := g.sendDSN(socket); err != nil {
					return kill(err)
				}
				ready = true
				tick.Reset(g.limit / lookAgain)
				g.cfg.Log.Info("the guard is running", "guard", cmd.Process.Pid)
				g.cfg.WakeClaimer.Up()
				g.cfg.WakeStarter.Up()
			}

		// Count ticks, not time: after the machine was suspended, the guard still works.
		case ready && still > lookAgain:
			return kill(errStuck)
		case !ready && still > 20*lookAgain*whileStarting:
			return kill(errLate)
		default:
			still++
		}

		if g.memory.lapsed.Load() != 0 {
			g.lease.Lapse()
		}
	}
}

// lookAgain is how often the node looks at a silent guard before the guard counts as dead.
const lookAgain = 20

// whileStarting is the factor by which the node looks more often until the guard is ready, because
// no attempt begins earlier.
const whileStarting = 10

// sendDSN sends the DSN to a guard that has looked at its lease. A guard protects itself before
// its first look.
//
// Until this guard has the DSN, no attempt begins under it. If the node dies now, the guard kills
// attempts of an earlier guard, but cannot bury the session. Peers take over when the session
// expires.
func (g *Guard) sendDSN(socket *os.File) error {
	if _, err := socket.WriteString(g.cfg.DSN); err != nil {
		return fmt.Errorf("send the DSN to the guard: %w", err)
	}
	g.hasDSN.Store(true)
	return nil
}

// start starts a guard. ended gets its exit error. socket is the node's end of the connection for
// the DSN.
func (g *Guard) start() (ended chan error, _ *exec.Cmd, socket *os.File, err error) {
	r, w, err := os.Pipe()
	if err != nil {
		return nil, nil, nil, err
	}
	defer r.Close()

	socket, childSocket, err := socketPair()
	if err != nil {
		return nil, nil, nil, errors.Join(err, w.Close())
	}
	defer childSocket.Close()

	// The guard inherits the working directory, because a path in the DSN may be relative.
	cmd := &exec.Cmd{
		Path: selfExe, Args: []string{comm, g.cfg.Node}, Env: environ(stageWatch),
		ExtraFiles: []*os.File{g.file, r, childSocket}, SysProcAttr: &syscall.SysProcAttr{Setsid: true},
	}

	mayKill(cmd.SysProcAttr)
	if isOpen(os.Stderr) {
		cmd.Stderr = os.Stderr
	}

	privilege.Start(func() { err = cmd.Start() })
	if err != nil {
		return nil, nil, nil, errors.Join(err, w.Close(), socket.Close())
	}

	g.pipe.Store(w)
	g.pid.Store(int64(cmd.Process.Pid))
	ended = make(chan error, 1)
	go func() { ended <- cmd.Wait() }()
	return ended, cmd, socket, nil
}

// letGo closes the pipe.
func (g *Guard) letGo() {
	g.hasDSN.Store(false)
	g.pid.Store(0)
	if w := g.pipe.Swap(nil); w != nil {
		_ = w.Close()
	}
}

// part closes the pipe and, after Over, waits for the guard's end.
func (g *Guard) part(ended <-chan error) error {
	g.letGo()
	if g.memory.phase.Load() != over {
		return nil
	}
	select {
	case <-ended:
	case <-time.After(g.limit): // the guard is stopped or gets no CPU, but has no work left
	}
	return nil
}

// isOpen reports whether a file can be passed to a child.
func isOpen(f *os.File) bool {
	_, err := f.Stat()
	return err == nil
}

// Alive reports whether attempts may begin: the guard looks and can bury, and has not seen a lapse
// of the lease.
func (g *Guard) Alive() bool {
	m := g.memory
	return g.hasDSN.Load() && m.phase.Load() == inForce && m.lapsed.Load() == 0 &&
		boottime.Now()-time.Duration(m.looked.Load()) <= g.limit
}

// PID returns the guard's process id, or 0 while there is no guard.
func (g *Guard) PID() int { return int(g.pid.Load()) }

// Renewed tells the guard when a good beat was sent, by CLOCK_BOOTTIME.
func (g *Guard) Renewed(sent time.Duration) { g.memory.sent.Store(int64(sent)) }

// Lapsed reports whether the guard has seen the lease lapse, and so may have killed commands.
func (g *Guard) Lapsed() bool { return g.memory.lapsed.Load() != 0 }

// Stopping tells the guard that the node stops and will now kill its commands. The node still owns
// its session, so handlers have time while the lease lasts. Like Lost, Stopping waits for the
// guard.
func (g *Guard) Stopping() { g.toKill(stopping) }

// Lost tells the guard that the session is lost, before the node kills its commands. It waits up
// to 200 ms until the guard has seen which processes belong to the commands, while the parents of
// these processes live. From now on a seat stays taken when its attempt leaves it, because
// processes outside the process groups must still be killed.
func (g *Guard) Lost() { g.toKill(losing) }

func (g *Guard) toKill(phase int64) {
	g.become(phase)
	for end := time.Now().Add(noteTime); g.memory.noted.Load() == 0 && g.pid.Load() != 0 && time.Now().Before(end); {
		time.Sleep(noteLook)
	}
}

// noteTime bounds the wait of toKill for the guard. noteLook is the pause between checks.
const (
	noteTime = 200 * time.Millisecond
	noteLook = time.Millisecond
)

// Over tells the guard that there is nothing left to guard.
func (g *Guard) Over() { g.become(over) }

// become moves to a later phase, never back.
func (g *Guard) become(phase int64) {
	for {
		old := g.memory.phase.Load()
		if old >= phase {
			return
		}
		if g.memory.phase.CompareAndSwap(old, phase) {
			g.nudge()
			return
		}
	}
}

// nudge wakes the guard.
func (g *Guard) nudge() {
	if w := g.pipe.Load(); w != nil {
		_, _ = w.Write([]byte{0}) // if the pipe is closed or has no reader, the next look shows the phase
	}
}

// sweepLook is the pause between checks whether the guard is done.
const sweepLook = 5 * time.Millisecond

// Sweep makes the guard kill everything that is left of the session's commands. Call it after
// Lost, when the node has killed its own processes. It returns when all these processes are dead.
// If ctx ends first, it returns an error.
func (g *Guard) Sweep(ctx context.Context) error {
	g.become(emptied)
	for g.memory.swept.Load() == 0 {
		select {
		case <-ctx.Done():
			return fmt.Errorf("wait for the guard: %w", context.Cause(ctx))
		case <-time.After(sweepLook):
		}
	}
	return nil
}

// Seat shows one attempt to the guard.
type Seat struct {
	g *Guard
	i int
	*seatMemory
}

// Enter takes a seat for an attempt; nil: no seat is free. run is the id of the attempt's run.
// inside means that the node itself will do the work.
func (g *Guard) Enter(run int64, inside bool) *Seat {
	g.mu.Lock()
	defer g.mu.Unlock()
	if len(g.vacant) == 0 || run == 0 {
		return nil
	}

	s := g.vacant[len(g.vacant)-1]
	g.vacant = g.vacant[:len(g.vacant)-1]
	s.pgid.Store(0)
	s.inside.Store(nothing)
	if inside {
		s.inside.Store(working)
	}

	s.run.Store(run) // last, so that the guard never sees a half-written seat
	if used := int64(s.i) + 1; used > g.memory.used.Load() {
		g.memory.used.Store(used)
	}
	return s
}

// Inside says whether the node may be forking from now on. After Inside(true), the caller checks
// the lease for the last time.
func (s *Seat) Inside(yes bool) {
	if !yes {
		s.inside.Store(nothing)
		return
	}
	s.after.Store(0)
	s.before.Store(int64(boottime.Now()))
	s.inside.Store(forking)
}

// Forked writes the attempt's process group.
func (s *Seat) Forked(pgid int) {
	s.after.Store(int64(boottime.Now()))
	s.pgid.Store(int64(pgid))
	s.inside.Store(nothing)
}

// Empty says that the process group has no process left, so the kernel may give its number away.
func (s *Seat) Empty() { s.pgid.Store(0) }

// Signalled reports whether the guard has signalled the process group while its leader lived. If
// it has, the attempt was cut off, even if its result says something else. Call it before Leave.
func (s *Seat) Signalled() bool { l := s.run.Load(); return l != 0 && s.signalled.Load() == l }

// Leave says that all processes of the attempt are dead. After the session was lost the seat stays
// taken, because the guard checks for such processes itself.
func (s *Seat) Leave() {
	s.inside.Store(nothing)
	if s.g.memory.phase.Load() != inForce || s.g.memory.lapsed.Load() != 0 {
		return // taken for good: the next session has a new guard
	}
	s.run.Store(0)

	s.g.mu.Lock()
	defer s.g.mu.Unlock()
	s.g.vacant = append(s.g.vacant, s)
}
