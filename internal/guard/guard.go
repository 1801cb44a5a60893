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
	"go-crontab/internal/privilege"
)

// Config says what is guarded. All but the hooks is needed.
type Config struct {
	Node   string // its name
	DSN    string // where the session is buried; it must hold all that a connection needs
	Expiry time.Duration
	Kill   time.Duration // commands get SIGTERM when the lease is this old,
	Grace  time.Duration // and SIGKILL this much later;
	End    time.Duration // a node that may still do something then is killed
	Seats  int           // attempts at once, at most
	JSON   bool          // the guard logs JSON to this process's standard error, otherwise text
	Log    *slog.Logger  // of this process

	Ready  func() // called when there is a guard
	Lapsed func() // called, more than once, when the guard has taken the lease for lapsed
}

// Guard is the node's end. It guards one session; its methods are safe for concurrent use.
type Guard struct {
	cfg    Config
	memory *memory
	file   *os.File
	limit  time.Duration // a guard that has not looked for so long is none

	pid  atomic.Int64
	told atomic.Bool // it has the DSN, so it can bury
	pipe atomic.Pointer[os.File]

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
	runtime.AddCleanup(g, unshare, b) // seats point to g: nobody looks at it any more
	return g, nil
}

// Protect names what is guarded, before Run: a session whose last good beat was sent so long ago; what begins the
// variable in the environment of its commands, before a run's id; and the folders of its cgroups, "" for none.
func (g *Guard) Protect(session, marker, cgroups string, age time.Duration) error {
	if len(g.cfg.DSN) > maxDSN {
		return fmt.Errorf("guard: the DSN has %d bytes; the most is %d", len(g.cfg.DSN), maxDSN)
	}

	now := boottime.Now()
	g.Renewed(now - age)
	return g.memory.command(&orders{
		PID: os.Getpid(), Began: int64(now), Node: g.cfg.Node, Session: session, Marker: marker, Cgroups: cgroups, JSON: g.cfg.JSON,
		Expiry: g.cfg.Expiry, Kill: g.cfg.Kill, Grace: g.cfg.Grace, End: g.cfg.End,
	})
}

// mostLimit bounds how long a guard may be silent.
const mostLimit = 4 * time.Second

// Between two guards, when the first did not live for long.
const (
	firstPause = 100 * time.Millisecond
	mostPause  = 2 * time.Second
	longLife   = 10 * time.Second
)

// Run keeps a guard until ctx ends. The last one ends by itself: at once after Over, otherwise when it has done its work.
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
		g.cfg.Log.Error("the guard ended: nothing is started until there is a new one", "error", err, "in", pause)
		select {
		case <-ctx.Done():
			return context.Cause(ctx)
		case <-time.After(pause):
		}
		pause = min(max(firstPause, 2*pause), mostPause)
	}
}

// Errors of guards.
var (
	errStuck = errors.New("it did not look at its node any more")
	errLate  = errors.New("it did not come up")
)

// keep starts one guard and stays with it until it has ended. When ctx ends it lets go of it: the guard sees the pipe
// close.
func (g *Guard) keep(ctx context.Context) error {
	g.memory.looked.Store(0)
	ended, cmd, letter, err := g.start()
	if err != nil {
		return err
	}
	defer g.letGo()
	defer letter.Close() // what was sent stays in the guard's end
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
			g.told.Store(false)
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
				if err := g.sendDSN(letter); err != nil {
					return kill(err)
				}
				ready = true
				tick.Reset(g.limit / lookAgain)
				g.cfg.Log.Info("guarded", "guard", cmd.Process.Pid)
				call(g.cfg.Ready)
			}
		// Ticks of ours, not time: a machine that was suspended has a guard that is well.
		case ready && still > lookAgain:
			return kill(errStuck)
		case !ready && still > 20*lookAgain*whileStarting:
			return kill(errLate)
		default:
			still++
		}
		if g.memory.lapsed.Load() != 0 {
			call(g.cfg.Lapsed)
		}
	}
}

// lookAgain is how often the node looks at its guard in the time after which it takes it for dead.
const lookAgain = 20

// whileStarting is how much more often the node looks until the guard is there: nothing begins before.
const whileStarting = 10

// sendDSN tells a guard the DSN. The guard has looked at its lease, so it has made itself unreadable before.
//
// Nothing begins before. If the node dies now, the guard kills what began under an earlier guard, but it cannot bury the
// session: the other nodes take over when it expires.
func (g *Guard) sendDSN(letter *os.File) error {
	if _, err := letter.WriteString(g.cfg.DSN); err != nil {
		return fmt.Errorf("send it the DSN: %w", err)
	}
	g.told.Store(true)
	return nil
}

// start starts a guard. ended gets what became of it. letter is the node's end of the socket that the DSN goes through.
func (g *Guard) start() (ended chan error, _ *exec.Cmd, letter *os.File, err error) {
	r, w, err := os.Pipe()
	if err != nil {
		return nil, nil, nil, err
	}
	defer r.Close()

	letter, slot, err := socketPair()
	if err != nil {
		return nil, nil, nil, errors.Join(err, w.Close())
	}
	defer slot.Close()

	cmd := &exec.Cmd{ // it begins where we stand: a path in the DSN may be relative
		Path: selfExe, Args: []string{comm, g.cfg.Node}, Env: environ(stageWatch),
		ExtraFiles: []*os.File{g.file, r, slot}, SysProcAttr: &syscall.SysProcAttr{Setsid: true},
	}
	mayKill(cmd.SysProcAttr)
	if isOpen(os.Stderr) {
		cmd.Stderr = os.Stderr
	}
	privilege.Start(func() { err = cmd.Start() })
	if err != nil {
		return nil, nil, nil, errors.Join(err, w.Close(), letter.Close())
	}
	g.pipe.Store(w)
	g.pid.Store(int64(cmd.Process.Pid))
	ended = make(chan error, 1)
	go func() { ended <- cmd.Wait() }()
	return ended, cmd, letter, nil
}

// letGo closes the pipe.
func (g *Guard) letGo() {
	g.told.Store(false)
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
	case <-time.After(g.limit): // it is stopped, or has no time; it has nothing to do either
	}
	return nil
}

func call(f func()) {
	if f != nil {
		f()
	}
}

// isOpen tells whether a descriptor can be handed on.
func isOpen(f *os.File) bool {
	_, err := f.Stat()
	return err == nil
}

// Alive reports whether anything may begin: there is a guard that can bury, and it takes the lease for good.
func (g *Guard) Alive() bool {
	m := g.memory
	return g.told.Load() && m.phase.Load() == inForce && m.lapsed.Load() == 0 && boottime.Now()-time.Duration(m.looked.Load()) <= g.limit
}

// PID is that of the guard, 0 while there is none.
func (g *Guard) PID() int { return int(g.pid.Load()) }

// Renewed says that a good beat was sent at an instant of CLOCK_BOOTTIME.
func (g *Guard) Renewed(sent time.Duration) { g.memory.sent.Store(int64(sent)) }

// Lapsed tells whether the guard took the lease for lapsed, and so may have killed commands.
func (g *Guard) Lapsed() bool { return g.memory.lapsed.Load() != 0 }

// Stopping says that the node, which stops, is about to kill its commands. The session is its own still, so that handlers
// have time as long as the lease lasts. See Lost for the rest.
func (g *Guard) Stopping() { g.toKill(stopping) }

// Lost says that the session is lost, before anything is killed for that. It waits a moment for the guard to see who
// belongs to whom, while parents live. From now on seats that are left stay taken: what has left its process group is
// still to be killed.
func (g *Guard) Lost() { g.toKill(losing) }

func (g *Guard) toKill(phase int64) {
	g.become(phase)
	for end := time.Now().Add(noteTime); g.memory.noted.Load() == 0 && g.pid.Load() != 0 && time.Now().Before(end); {
		time.Sleep(noteLook)
	}
}

// noteTime is how long the guard may take to look around, noteLook is between looks at whether it has.
const (
	noteTime = 200 * time.Millisecond
	noteLook = time.Millisecond
)

// Over says that nothing is left that must be guarded.
func (g *Guard) Over() { g.become(over) }

// become moves to a later phase.
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

// nudge has the guard look now.
func (g *Guard) nudge() {
	if w := g.pipe.Load(); w != nil {
		_, _ = w.Write([]byte{0}) // closed or without a reader: it will see the phase when it looks
	}
}

// sweepLook is between looks at whether the guard is done.
const sweepLook = 5 * time.Millisecond

// Sweep has everything killed that the session's commands have left, after Lost, when the node's own part of that is
// done. It returns when nothing lives, or with an error when ctx ends before.
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

// Seat is what the guard knows of one attempt.
type Seat struct {
	g *Guard
	i int
	*seatMemory
}

// Enter takes a seat for the launch of a run, or returns nil when there is none. inside says that the node itself
// is going to do the work.
func (g *Guard) Enter(launch int64, inside bool) *Seat {
	g.mu.Lock()
	defer g.mu.Unlock()
	if len(g.vacant) == 0 || launch == 0 {
		return nil
	}
	s := g.vacant[len(g.vacant)-1]
	g.vacant = g.vacant[:len(g.vacant)-1]
	s.pgid.Store(0)
	s.inside.Store(nothing)
	if inside {
		s.inside.Store(working)
	}
	s.launch.Store(launch) // last: what the guard sees of a seat is whole
	if used := int64(s.i) + 1; used > g.memory.used.Load() {
		g.memory.used.Store(used)
	}
	return s
}

// Inside says whether the node may now be forking. It is said before the lease is looked at for the last time.
func (s *Seat) Inside(yes bool) {
	if !yes {
		s.inside.Store(nothing)
		return
	}
	s.after.Store(0)
	s.before.Store(int64(boottime.Now()))
	s.inside.Store(forking)
}

// Forked says which process group the attempt has.
func (s *Seat) Forked(pgid int) {
	s.after.Store(int64(boottime.Now()))
	s.pgid.Store(int64(pgid))
	s.inside.Store(nothing)
}

// Empty says that nobody is left in the process group, whose number may soon be somebody else's.
func (s *Seat) Empty() { s.pgid.Store(0) }

// Signalled tells whether the guard has signalled the process group while its leader lived. Whatever came of that, the
// attempt was cut off. It is asked before Leave.
func (s *Seat) Signalled() bool { l := s.launch.Load(); return l != 0 && s.signalled.Load() == l }

// Leave says that nothing of the attempt lives. When the session was lost, that is for the guard to see.
func (s *Seat) Leave() {
	s.inside.Store(nothing)
	if s.g.memory.phase.Load() != inForce || s.g.memory.lapsed.Load() != 0 {
		return // taken for good: another session has another guard
	}
	s.launch.Store(0)
	s.g.mu.Lock()
	defer s.g.mu.Unlock()
	s.g.vacant = append(s.g.vacant, s)
}
