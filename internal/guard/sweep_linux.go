package guard

import (
	"bytes"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"time"

	"go-crontab/internal/boottime"

	"golang.org/x/sys/unix"
)

// sweeper finds what belongs to the session's running commands and signals it.
type sweeper struct {
	marker  []byte
	cgroups string
	began   ticks
	node    int
	spared  []int // processes that are never signalled: init, the guard, and the node while it lives

	known    map[int]*member // found by earlier sweeps, by number
	asked    map[int]bool    // groups that had their SIGTERM
	last     []taken
	forked   map[int64]bool           // launches of which a process was seen
	unclear  map[int]time.Duration    // processes without an environment, and since when they are
	hung     map[question]chan answer // those that the kernel has not answered yet
	readFile func(string) ([]byte, error)
	lively   time.Duration // when something of ours was last found, or the first sweep began
}

// member is a process that belongs to a command.
type member struct {
	start ticks
	asked bool // it had its SIGTERM
}

func newSweeper(o *orders) sweeper {
	return sweeper{
		marker: []byte(o.Marker), cgroups: o.Cgroups, began: ticksOf(time.Duration(o.Began)) - slack,
		node: o.PID, spared: []int{1, os.Getpid(), o.PID},
		known: map[int]*member{}, asked: map[int]bool{}, unclear: map[int]time.Duration{}, forked: map[int64]bool{},
		hung: map[question]chan answer{}, readFile: os.ReadFile,
	}
}

// changed tells whether the seats are others than at the last sweep.
func (s *sweeper) changed(seats []taken) bool { return !slices.Equal(seats, s.last) }

// found says what a sweep has found.
type found struct {
	clean bool // nothing that lives, or may be about to
	fresh int  // processes that were not known
}

// signals says what a sweep is to do to what it finds.
type signals struct {
	kill   bool // SIGKILL to all; else, once, SIGTERM
	groups bool // to the process groups of the commands
	others bool // to what has left them
}

// sweep signals everything that belongs to the commands in the seats.
func (s *sweeper) sweep(seats []taken, to signals) found {
	s.last = seats
	all, vanished, err := processes()
	if err != nil {
		s.blindly(seats, to)
		return found{}
	}
	running := map[int64]bool{}
	for _, t := range seats {
		running[t.launch] = true
	}
	ours, out := s.members(all, seats, running, vanished)
	s.children(all, seats, s.node)
	out.clean = out.clean && len(ours) == 0
	if to.kill {
		s.killCgroups(all, running)
	}
	for _, t := range seats {
		if t.pgid == 0 || !holds(all, t) {
			continue
		}
		if leader := all[int(t.pgid)]; leader != nil && leader.alive() && (to.kill || to.groups) {
			t.seat.signalled.Store(t.launch)
		}
		switch {
		case to.kill:
			_ = unix.Kill(-int(t.pgid), unix.SIGKILL) // all of it at once: nobody in there forks between us
		case to.groups && !s.asked[int(t.pgid)]:
			s.asked[int(t.pgid)] = true
			_ = unix.Kill(-int(t.pgid), unix.SIGTERM)
			_ = unix.Kill(-int(t.pgid), unix.SIGCONT)
		}
	}
	for pid, how := range ours {
		m := s.known[pid]
		if m == nil || m.start != all[pid].start {
			m = &member{start: all[pid].start}
			s.known[pid] = m
			out.fresh++
		}
		switch {
		case to.kill:
			send(all[pid], unix.SIGKILL)
		case to.others && !m.asked && how == byItself:
			m.asked = true
			send(all[pid], unix.SIGTERM)
			send(all[pid], unix.SIGCONT)
		}
	}
	return out
}

// Why a process is one of ours. Who is in a command's own process group is signalled with that.
const (
	byItself = 1 + iota
	byGroup
)

// members finds the living processes that belong to running commands.
func (s *sweeper) members(all map[int]*process, seats []taken, running map[int64]bool, vanished bool) (ours map[int]int, out found) {
	ours, out = map[int]int{}, found{clean: true}
	now := boottime.Now()
	if s.lively == 0 {
		s.lively = now
	}
	groups := map[int]bool{}
	for _, t := range seats {
		if t.pgid != 0 && holds(all, t) {
			groups[int(t.pgid)] = true
		}
	}
	ended := map[int]bool{} // of attempts that left it behind on purpose
	for pid, p := range all {
		launch, state := s.launch(p)
		if state == marked {
			s.forked[launch] = true
		}
		switch {
		case slices.Contains(s.spared, pid) || !p.alive():
		case groups[p.pgrp]:
			ours[pid] = byGroup
		case s.known[pid] != nil && s.known[pid].start == p.start, state == marked && running[launch]:
			ours[pid] = byItself
		case state == marked:
			ended[pid] = true
		case state == unknown && s.settling(p, now), state == hanging: // who takes over then waits for the expiry
			out.clean = false
		case state == gone:
			vanished = true
		}
	}
	for _, pid := range s.inCgroups() {
		if p := all[pid]; p != nil && p.alive() && ours[pid] == 0 && !ended[pid] && !slices.Contains(s.spared, pid) {
			ours[pid] = byItself
		}
	}
	for grown := true; grown; {
		grown = false
		for pid, p := range all {
			if ours[pid] == 0 && !ended[pid] && p.alive() && !slices.Contains(s.spared, pid) && s.related(all, ours, p) {
				ours[pid], grown = byItself, true
			}
		}
	}
	// Who ended under our eyes may have been one of ours that left a child behind which the list does not hold. Where
	// processes come and go all the time somebody always does: then this ends a while after the last of ours.
	if len(ours) > 0 {
		s.lively = now
	} else if vanished && now-s.lively < settleTime {
		out.clean = false
	}
	return ours, out
}

// children notes which of the attempts whose group is not known have been forked after all: a child of the node leads a
// group, began as they were being forked, and is none of the others'. Only one is forked at a time.
func (s *sweeper) children(all map[int]*process, seats []taken, node int) {
	others := map[int64]bool{}
	for _, t := range seats {
		others[t.pgid] = true
	}
	for _, t := range seats {
		for pid, p := range all {
			if t.inside == forking && p.ppid == node && p.pgrp == pid && p.start >= ticksOf(t.before)-slack && !others[int64(pid)] && !slices.Contains(s.spared, pid) {
				s.forked[t.launch] = true
			}
		}
	}
}

// related tells whether the parent of a process, or who made its group or session, is one of ours, or was.
func (s *sweeper) related(all map[int]*process, ours map[int]int, p *process) bool {
	if parent := all[p.ppid]; parent != nil && ours[p.ppid] != 0 && parent.start <= p.start {
		return true
	}
	for _, leader := range []int{p.pgrp, p.session} {
		if leader == p.pid {
			continue
		}
		if ours[leader] != 0 {
			return true
		}
		// The number of a leader that is dead stays taken as long as somebody is in the group.
		if k := s.known[leader]; k != nil && all[leader] == nil && k.start <= p.start {
			return true
		}
	}
	return false
}

// settling tells whether a process without an environment may be about to get one: it is just executing a program.
func (s *sweeper) settling(p *process, now time.Duration) bool {
	since, seen := s.unclear[p.pid]
	if !seen {
		since = now
		s.unclear[p.pid] = now
	}
	return now-since < settleTime
}

// settleTime is how long the kernel may take to load a program.
const settleTime = time.Second

// What is known of a process's environment.
const (
	foreign = iota // it names no launch of this session
	marked         // it does
	unknown        // there is none: it may come
	gone           // the process was there, and has ended
	hanging        // nobody can say for now
)

// launch reads the launch off the environment of a process.
func (s *sweeper) launch(p *process) (int64, int) {
	if !p.alive() || p.start < s.began || p.kernel() {
		return 0, foreign
	}
	env, err := s.ask(p, "environ")
	if err == nil && len(env) == 0 {
		if line, err := s.ask(p, "cmdline"); err == nil && len(line) == 0 {
			return 0, unknown
		}
		env, err = s.ask(p, "environ") // it may have begun a program between the two
	}
	switch {
	case err == errHangs:
		return 0, hanging
	case errors.Is(err, fs.ErrNotExist) || errors.Is(err, unix.ESRCH):
		return 0, gone
	case err != nil:
		return 0, foreign // another user's
	}
	if n := counterIn(env, s.marker); n != 0 {
		return n, marked
	}
	return 0, foreign
}

// question is a file of a process.
type question struct {
	pid   int
	start ticks
	file  string
}

type answer struct {
	text []byte
	err  error
}

var errHangs = errors.New("the kernel does not answer")

// patience is how long one question may take. Behind others that are not answered it is less: what is to be killed does not
// wait for each of a hundred.
const patience = 50 * time.Millisecond

// ask reads a file of a process, but does not wait for one whose memory is locked: while a thread of it waits for a page of
// a file server that is gone, whoever asks for its environment waits as well, for as long. The commands must not live on
// because of it. If it is one of ours, its group, its parent or its cgroup may still tell.
func (s *sweeper) ask(p *process, file string) ([]byte, error) {
	q := question{p.pid, p.start, file}
	if answered := s.hung[q]; answered != nil {
		select {
		case a := <-answered:
			delete(s.hung, q)
			return a.text, a.err
		default:
			return nil, errHangs
		}
	}
	answered := make(chan answer, 1)
	go func() {
		text, err := s.readFile("/proc/" + strconv.Itoa(p.pid) + "/" + file)
		answered <- answer{text, err}
	}()
	select {
	case a := <-answered:
		return a.text, a.err
	case <-time.After(patience / time.Duration(1+len(s.hung))):
		s.hung[q] = answered
		return nil, errHangs
	}
}

// counterIn finds the counter behind the marker in an environment, 0 if it is not there.
func counterIn(env, marker []byte) int64 {
	for pair := range bytes.SplitSeq(env, []byte{0}) {
		if counter, ok := bytes.CutPrefix(pair, marker); ok {
			n, _ := strconv.ParseInt(string(counter), 10, 64)
			return n
		}
	}
	return 0
}

// holds tells whether a process group is still that of the attempt: its leader began when it was forked, or is dead and
// nobody in the group is older.
func holds(all map[int]*process, t taken) bool {
	first, last := ticksOf(t.before)-slack, ticksOf(t.after)+slack
	if leader := all[int(t.pgid)]; leader != nil {
		return leader.start >= first && leader.start <= last
	}
	for _, p := range all {
		if p.pgrp == int(t.pgid) && p.start < first {
			return false
		}
	}
	return true
}

// blindly signals groups without a look at who is in there.
func (s *sweeper) blindly(seats []taken, to signals) {
	sig := unix.SIGTERM
	if to.kill {
		sig = unix.SIGKILL
	}
	for _, t := range seats {
		if ask := to.groups && !s.asked[int(t.pgid)]; t.pgid > 1 && (to.kill || ask) {
			s.asked[int(t.pgid)] = true
			t.seat.signalled.Store(t.launch)
			_ = unix.Kill(-int(t.pgid), sig)
		}
	}
}

// send signals a process, unless its number is somebody else's by now.
func send(p *process, sig unix.Signal) {
	fd, err := unix.PidfdOpen(p.pid, 0)
	if err == unix.ESRCH {
		return
	}
	if err == nil {
		defer unix.Close(fd)
	}
	if now, statErr := stat(p.pid, nil); statErr != nil || now.start != p.start {
		return
	}
	if err == nil {
		err = unix.PidfdSendSignal(fd, sig, nil, 0)
		if err == nil || err == unix.ESRCH || err == unix.EPERM {
			return
		}
	}
	_ = unix.Kill(p.pid, sig) // an old kernel
}

// cgroupDirs lists the session's cgroups, and those in them.
func (s *sweeper) cgroupDirs() []string {
	if s.cgroups == "" {
		return nil
	}
	top, _ := filepath.Glob(escape(s.cgroups) + "*")
	var dirs []string
	for _, dir := range top {
		_ = filepath.WalkDir(dir, func(path string, d os.DirEntry, err error) error {
			if err == nil && d.IsDir() {
				dirs = append(dirs, path)
			}
			return nil
		})
	}
	return dirs
}

func escape(path string) string {
	return strings.NewReplacer(`\`, `\\`, `*`, `\*`, `?`, `\?`, `[`, `\[`).Replace(path)
}

func (s *sweeper) inCgroups() []int {
	var pids []int
	for _, dir := range s.cgroupDirs() {
		pids = append(pids, procsOf(dir)...)
	}
	return pids
}

func procsOf(dir string) (pids []int) {
	text, err := os.ReadFile(filepath.Join(dir, "cgroup.procs"))
	if err != nil {
		return nil
	}
	for f := range bytes.FieldsSeq(text) {
		if pid, err := strconv.Atoi(string(f)); err == nil && pid > 0 {
			pids = append(pids, pid)
		}
	}
	return pids
}

// killCgroups kills everything in the session's cgroups at once, but for those in which something lives that an attempt
// left behind on purpose.
func (s *sweeper) killCgroups(all map[int]*process, running map[int64]bool) {
	for _, dir := range s.cgroupDirs() {
		pids := procsOf(dir)
		keep := slices.ContainsFunc(pids, func(pid int) bool {
			p := all[pid]
			if p == nil {
				return false
			}
			launch, state := s.launch(p)
			return state == marked && !running[launch]
		})
		if len(pids) > 0 && !keep {
			_ = writeFile(filepath.Join(dir, "cgroup.kill"), "1")
		}
	}
}

func writeFile(path, text string) error {
	f, err := os.OpenFile(path, os.O_WRONLY, 0)
	if err != nil {
		return err
	}
	defer f.Close()
	_, err = f.WriteString(text)
	return err
}

// removeCgroups removes the session's cgroups, the inner ones first. What is not empty stays.
func (s *sweeper) removeCgroups() {
	dirs := s.cgroupDirs()
	slices.SortFunc(dirs, func(a, b string) int { return len(b) - len(a) })
	for _, dir := range dirs {
		_ = unix.Rmdir(dir)
	}
}
