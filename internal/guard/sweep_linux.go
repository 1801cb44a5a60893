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

// sweeper finds and signals the processes of the session's running commands.
type sweeper struct {
	marker  []byte
	cgroups string
	began   ticks
	node    int
	spared  []int // never signalled: init, the guard, and the node while it lives

	known    map[int]*member // processes of earlier sweeps, by number
	asked    map[int]bool    // groups that had a SIGTERM
	last     []taken
	forked   map[int64]bool           // runs of which a process was seen
	unclear  map[int]time.Duration    // processes whose environment is still empty, and when that was first seen
	hung     map[question]chan answer // reads of /proc that the kernel has not answered yet
	readFile func(string) ([]byte, error)
	lively   time.Duration // when a process of ours was last found; none was found: the first sweep
}

// member is a process of a command.
type member struct {
	start ticks
	asked bool // it had a SIGTERM
}

func newSweeper(o *orders) sweeper {
	return sweeper{
		marker: []byte(o.Marker), cgroups: o.Cgroups, began: ticksOf(time.Duration(o.Began)) - slack,
		node: o.PID, spared: []int{1, os.Getpid(), o.PID},
		known: map[int]*member{}, asked: map[int]bool{}, unclear: map[int]time.Duration{}, forked: map[int64]bool{},
		hung: map[question]chan answer{}, readFile: os.ReadFile,
	}
}

// changed reports whether the seats have changed since the last sweep.
func (s *sweeper) changed(seats []taken) bool { return !slices.Equal(seats, s.last) }

// found is the result of a sweep.
type found struct {
	clean bool // no process of ours lives, and none can appear unseen
	fresh int  // number of processes that were not known before
}

// signals selects the signals of a sweep.
type signals struct {
	kill   bool // SIGKILL to all processes; otherwise SIGTERM, once
	groups bool // to the commands' process groups
	others bool // to processes outside their groups
}

// sweep signals all processes of the commands in the seats.
func (s *sweeper) sweep(seats []taken, to signals) found {
	s.last = seats
	all, vanished, err := processes()
	if err != nil {
		s.blindly(seats, to)
		return found{}
	}

	running := map[int64]bool{}
	for _, t := range seats {
		running[t.run] = true
	}

	// Find the processes.
	ours, out := s.members(all, seats, running, vanished)
	s.children(all, seats, s.node)
	out.clean = out.clean && len(ours) == 0

	if to.kill {
		s.killCgroups(all, running)
	}

	// Signal the process groups.
	for _, t := range seats {
		if t.pgid == 0 || !holds(all, t) {
			continue
		}
		if leader := all[int(t.pgid)]; leader != nil && leader.alive() && (to.kill || to.groups) {
			t.seat.signalled.Store(t.run)
		}

		switch {
		case to.kill:
			_ = unix.Kill(-int(t.pgid), unix.SIGKILL) // all at once, so that none forks in between
		case to.groups && !s.asked[int(t.pgid)]:
			s.asked[int(t.pgid)] = true
			_ = unix.Kill(-int(t.pgid), unix.SIGTERM)
			_ = unix.Kill(-int(t.pgid), unix.SIGCONT)
		}
	}

	// Signal the processes outside the groups.
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

// The reasons why a process is ours, that is, belongs to a command. Processes in a command's own
// group get the group's signals.
const (
	byItself = 1 + iota
	byGroup
)

// members finds the living processes of running commands.
func (s *sweeper) members(
	all map[int]*process, seats []taken, running map[int64]bool, vanished bool,
) (ours map[int]int, out found) {
	ours, out = map[int]int{}, found{clean: true}
	now := boottime.Now()
	if s.lively == 0 {
		s.lively = now
	}

	// Judge each process by its group, by earlier sweeps, and by its environment.
	groups := map[int]bool{}
	for _, t := range seats {
		if t.pgid != 0 && holds(all, t) {
			groups[int(t.pgid)] = true
		}
	}

	ended := map[int]bool{} // processes that ended attempts have left on purpose
	for pid, p := range all {
		run, state := s.runOf(p)
		if state == marked {
			s.forked[run] = true
		}

		switch {
		case slices.Contains(s.spared, pid) || !p.alive():
		case groups[p.pgrp]:
			ours[pid] = byGroup
		case s.known[pid] != nil && s.known[pid].start == p.start, state == marked && running[run]:
			ours[pid] = byItself
		case state == marked:
			ended[pid] = true
		// Here out.clean is false, so the guard does not bury. Peers take over when the session
		// expires.
		case state == unknown && s.settling(p, now), state == hanging:
			out.clean = false
		case state == gone:
			vanished = true
		}
	}

	// Add the processes in cgroups.
	for _, pid := range s.inCgroups() {
		if p := all[pid]; p != nil && p.alive() && ours[pid] == 0 && !ended[pid] && !slices.Contains(s.spared, pid) {
			ours[pid] = byItself
		}
	}

	// Add relatives of our processes until there are no more.
	for grown := true; grown; {
		grown = false
		for pid, p := range all {
			if ours[pid] == 0 && !ended[pid] && p.alive() && !slices.Contains(s.spared, pid) &&
				s.related(all, ours, p) {
				ours[pid], grown = byItself, true
			}
		}
	}

	// A process that ended during the listing may have been ours, and may have left a child that
	// is not in the list. On a busy machine some process ends during each listing. So this counts
	// only for a while after a process of ours was last found.
	if len(ours) > 0 {
		s.lively = now
	} else if vanished && now-s.lively < settleTime {
		out.clean = false
	}

	return ours, out
}

// children finds attempts that have forked although their process group is not recorded yet. The
// process of such an attempt is a child of the node and leads its own group. It started after the
// fork began, and belongs to no other attempt. The node forks one attempt at a time.
func (s *sweeper) children(all map[int]*process, seats []taken, node int) {
	others := map[int64]bool{}
	for _, t := range seats {
		others[t.pgid] = true
	}

	for _, t := range seats {
		for pid, p := range all {
			if t.inside == forking && p.ppid == node && p.pgrp == pid && p.start >= ticksOf(t.before)-slack &&
				!others[int64(pid)] && !slices.Contains(s.spared, pid) {
				s.forked[t.run] = true
			}
		}
	}
}

// related reports whether a process has a relative that is or was ours: its parent, or the leader
// of its group or session.
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

		// The number of a dead leader stays taken as long as its group has a process.
		if k := s.known[leader]; k != nil && all[leader] == nil && k.start <= p.start {
			return true
		}
	}

	return false
}

// settling reports whether a process without an environment may get one soon, because the kernel
// may still be loading its program (exec).
func (s *sweeper) settling(p *process, now time.Duration) bool {
	since, seen := s.unclear[p.pid]
	if !seen {
		since = now
		s.unclear[p.pid] = now
	}
	return now-since < settleTime
}

// settleTime bounds the time that the kernel takes to load a program.
const settleTime = time.Second

// The results of reading a process's environment.
const (
	foreign = iota // it has no run of this session in its environment
	marked         // it has such a run
	unknown        // there is no environment yet
	gone           // the process has just ended
	hanging        // the kernel does not answer
)

// runOf returns the run in the environment of a process, and the result of reading that
// environment.
func (s *sweeper) runOf(p *process) (int64, int) {
	if !p.alive() || p.start < s.began || p.kernel() {
		return 0, foreign
	}

	env, err := s.ask(p, "environ")
	if err == nil && len(env) == 0 {
		if line, err := s.ask(p, "cmdline"); err == nil && len(line) == 0 {
			return 0, unknown
		}
		env, err = s.ask(p, "environ") // it may have executed a program in between
	}

	switch {
	case err == errHangs:
		return 0, hanging
	case errors.Is(err, fs.ErrNotExist) || errors.Is(err, unix.ESRCH):
		return 0, gone
	case err != nil:
		return 0, foreign // another user's process
	}

	if n := counterIn(env, s.marker); n != 0 {
		return n, marked
	}
	return 0, foreign
}

// question is a read of one file of a process in /proc.
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

// patience bounds the wait for one answer. The unanswered questions share it, so that a hundred
// hanging processes delay the killing no longer than one.
const patience = 50 * time.Millisecond

// ask reads a file of a process, but gives up if the kernel does not answer soon. If a thread of
// the process waits for a page from a dead file server, the memory of the process is locked. A
// reader of its environment then waits as long, and meanwhile the commands would live on. The
// group, parent or cgroup may still show that the process is ours.
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

// counterIn returns the counter that follows the marker in an environment, or 0.
func counterIn(env, marker []byte) int64 {
	for pair := range bytes.SplitSeq(env, []byte{0}) {
		if counter, ok := bytes.CutPrefix(pair, marker); ok {
			n, _ := strconv.ParseInt(string(counter), 10, 64)
			return n
		}
	}
	return 0
}

// holds reports whether a process group is still the group of the attempt. The group's leader must
// have begun during the fork. If the leader is dead, no process in the group may be older than the
// fork.
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

// blindly signals groups when /proc cannot be read.
func (s *sweeper) blindly(seats []taken, to signals) {
	sig := unix.SIGTERM
	if to.kill {
		sig = unix.SIGKILL
	}

	for _, t := range seats {
		if ask := to.groups && !s.asked[int(t.pgid)]; t.pgid > 1 && (to.kill || ask) {
			s.asked[int(t.pgid)] = true
			t.seat.signalled.Store(t.run)
			_ = unix.Kill(-int(t.pgid), sig)
		}
	}
}

// send signals a process. If another process has its number by now, send does nothing.
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

	_ = unix.Kill(p.pid, sig) // a kernel without pidfds
}

// cgroupDirs lists the session's cgroups and their descendants.
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

// killCgroups kills all processes of the session's cgroups at once. If an ended attempt left a
// process in a cgroup on purpose, killCgroups spares that cgroup.
func (s *sweeper) killCgroups(all map[int]*process, running map[int64]bool) {
	for _, dir := range s.cgroupDirs() {
		pids := procsOf(dir)
		keep := slices.ContainsFunc(pids, func(pid int) bool {
			p := all[pid]
			if p == nil {
				return false
			}
			run, state := s.runOf(p)
			return state == marked && !running[run]
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

// removeCgroups removes the session's cgroups, children first. A cgroup with processes stays.
func (s *sweeper) removeCgroups() {
	dirs := s.cgroupDirs()
	slices.SortFunc(dirs, func(a, b string) int { return len(b) - len(a) })
	for _, dir := range dirs {
		_ = unix.Rmdir(dir)
	}
}
