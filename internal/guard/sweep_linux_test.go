package guard

import (
	"fmt"
	"os"
	"os/exec"
	"strings"
	"testing"
	"time"

	"go-crontab/internal/boottime"

	"golang.org/x/sys/unix"
)

func TestParseStat(t *testing.T) {
	t.Parallel()
	const rest = " 0 -1 4194304 1 2 3 4 5 6 7 8 20 0 3 0 12345 99"
	for line, want := range map[string]*process{
		"12 (bash) S 1 12 13" + rest: {
			pid: 12, ppid: 1, pgrp: 12, session: 13, state: 'S', flags: 4194304, threads: 3, start: 12345,
		},
		"12 (a) Z 1 ) R 4 5 6" + rest: {
			pid: 12, ppid: 4, pgrp: 5, session: 6, state: 'R', flags: 4194304, threads: 3, start: 12345,
		},
		"12 (a":                            nil,
		"":                                 nil,
		"12 (a) S 1 2 3 4 5 6 7 8 9 10 11": nil,
	} {
		got, err := parseStat(12, []byte(line))
		if (err == nil) != (want != nil) || err == nil && *got != *want {
			t.Errorf("%q: got %+v, %v, want %+v", line, got, err, want)
		}
	}

	for name, c := range map[string]struct {
		p    process
		want bool
	}{
		"a sleeper":                           {process{state: 'S', threads: 1}, true},
		"a stopped one":                       {process{state: 'T', threads: 1}, true},
		"a zombie":                            {process{state: 'Z', threads: 1}, false},
		"a zombie whose other threads run on": {process{state: 'Z', threads: 2}, true},
		"one that is gone":                    {process{state: 'X'}, false},
	} {
		if got := c.p.alive(); got != c.want {
			t.Errorf("%s: alive %v, want %v", name, got, c.want)
		}
	}
}

// TestHolds checks that a process group counts as an attempt's only while no other group can have
// its number.
func TestHolds(t *testing.T) {
	t.Parallel()
	at := taken{run: 1, pgid: 50, before: 100 * clockTick, after: 103 * clockTick}
	for name, c := range map[string]struct {
		all  []process
		want bool
	}{
		"its leader":                          {[]process{{pid: 50, pgrp: 50, start: 101}}, true},
		"its leader, by the clock's rounding": {[]process{{pid: 50, pgrp: 50, start: 99}}, true},
		"a leader that is younger":            {[]process{{pid: 50, pgrp: 50, start: 200}}, false},
		"a leader that is older":              {[]process{{pid: 50, pgrp: 50, start: 20}}, false},
		"the number is that of another's": {
			[]process{{pid: 50, pgrp: 7, start: 200}, {pid: 60, pgrp: 50, start: 102}}, false,
		},
		"members of a leader that is dead":     {[]process{{pid: 60, pgrp: 50, start: 300}}, true},
		"members that are older than the fork": {[]process{{pid: 60, pgrp: 50, start: 20}}, false},
		"nobody":                               {nil, true},
	} {
		all := map[int]*process{}
		for i := range c.all {
			all[c.all[i].pid] = &c.all[i]
		}
		if got := holds(all, at); got != c.want {
			t.Errorf("%s: got %v, want %v", name, got, c.want)
		}
	}
}

func TestCounterIn(t *testing.T) {
	t.Parallel()
	marker := []byte("L=abc-")
	for env, want := range map[string]int64{
		"A=1\x00L=abc-12\x00B=2\x00": 12,
		"L=abc-7":                    7,
		"XL=abc-7\x00":               0,
		"L=abc-x\x00":                0,
		"L=abd-7\x00":                0,
		"A=L=abc-7\x00":              0,
		"":                           0,
	} {
		if got := counterIn([]byte(env), marker); got != want {
			t.Errorf("%q: got %d, want %d", env, got, want)
		}
	}
}

// TestAProcessThatHangs has the kernel not answer for one process. The others must be found all the
// same, and no sweep is clean before the answer.
func TestAProcessThatHangs(t *testing.T) {
	t.Parallel()
	token := fmt.Sprintf("8%06d001", os.Getpid())
	marker := "GOCRONTAB_SEAT=hangs-" + token + "-"
	var all [2]*exec.Cmd
	for i := range all {
		all[i] = exec.Command("sleep", token)
		all[i].Env = []string{fmt.Sprint(marker, i+1)}
		if err := all[i].Start(); err != nil {
			t.Fatal(err)
		}
		defer func() { _ = all[i].Process.Kill(); _ = all[i].Wait() }()
	}

	hangs, ours := all[0].Process.Pid, all[1].Process.Pid
	s := newSweeper(&orders{PID: os.Getpid(), Marker: marker, Began: int64(boottime.Now() - time.Minute)})
	resume := make(chan struct{})
	s.readFile = func(file string) ([]byte, error) {
		if strings.HasPrefix(file, fmt.Sprintf("/proc/%d/", hangs)) {
			<-resume
		}
		return os.ReadFile(file)
	}

	seats := []taken{{run: 1}, {run: 2}}
	for end := time.Now().Add(20 * time.Second); s.known[ours] == nil; { // it may not have executed its program yet
		if got := s.sweep(seats, signals{}); got.clean {
			t.Error("it is clean, and somebody is not known")
		}
		if time.Now().After(end) {
			t.Fatal("one that hangs hides another")
		}
	}

	if s.known[hangs] != nil {
		t.Error("found by what nobody could read")
	}

	close(resume)
	for end := time.Now().Add(20 * time.Second); s.known[hangs] == nil; s.sweep(seats, signals{}) {
		if time.Now().After(end) {
			t.Fatal("it does not hang any more, and is not found")
		}
	}
}

// TestSendToAnother checks that a number that another process has by now is not signalled.
func TestSendToAnother(t *testing.T) {
	t.Parallel()
	self, err := stat(os.Getpid(), nil)
	if err != nil {
		t.Fatal(err)
	}

	stale := *self
	stale.start--
	send(&stale, unix.SIGKILL) // a wrong signal would kill the test itself
	send(&process{pid: 1 << 30, start: 1}, unix.SIGKILL)
	time.Sleep(10 * time.Millisecond)
}

// TestBeforeTheSession checks that a process older than the session belongs to no command, whatever
// its environment says.
func TestBeforeTheSession(t *testing.T) {
	t.Parallel()
	cmd := exec.Command("sleep", "60")
	cmd.Env = []string{"L=abc-7"}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}

	defer func() { _ = cmd.Process.Kill(); _ = cmd.Wait() }()
	p, err := stat(cmd.Process.Pid, nil)
	if err != nil {
		t.Fatal(err)
	}

	s := newSweeper(&orders{PID: 1, Marker: "L=abc-"})
	if run, state := s.runOf(p); state != marked || run != 7 {
		t.Errorf("got run %d, state %d, want 7, marked", run, state)
	}

	s.began = p.start + 1
	if _, state := s.runOf(p); state != foreign {
		t.Errorf("of one that is older than the session: got state %d, want foreign", state)
	}
}

// TestMayBegin distinguishes nodes that were stopped in the middle of a fork, before a fork, and in
// a handler.
func TestMayBegin(t *testing.T) {
	t.Parallel()
	const node = 40

	fork := taken{run: 1, inside: forking, before: 100 * clockTick}
	for name, c := range map[string]struct {
		seats []taken
		all   []process
		want  bool
	}{
		"nobody is inside": {[]taken{{run: 1, pgid: 50}}, nil, false},
		"about to fork":    {[]taken{fork}, nil, true},
		"it has forked, and the child is dead": {
			[]taken{fork}, []process{{pid: 50, ppid: node, pgrp: 50, start: 101, state: 'Z', threads: 1}}, false,
		},
		"the child is another attempt's": {
			[]taken{fork, {run: 2, pgid: 50}},
			[]process{{pid: 50, ppid: node, pgrp: 50, start: 101, state: 'S'}}, true,
		},
		"the child is older": {
			[]taken{fork}, []process{{pid: 50, ppid: node, pgrp: 50, start: 20, state: 'S'}}, true,
		},
		"a child that leads no group": {
			[]taken{fork}, []process{{pid: 50, ppid: node, pgrp: node, start: 101, state: 'S'}}, true,
		},
		"a handler": {[]taken{{run: 1, inside: working}}, nil, true},
		"a handler, and a child of the program's": {
			[]taken{{run: 1, inside: working}},
			[]process{{pid: 50, ppid: node, pgrp: 50, start: 101, state: 'S'}}, true,
		},
	} {
		all := map[int]*process{}
		for i := range c.all {

			all[c.all[i].pid] = &c.all[i]
		}
		w := &watcher{sweeper: newSweeper(&orders{PID: node})}
		w.children(all, c.seats, node)

		if got := w.mayBegin(c.seats); got != c.want {
			t.Errorf("%s: got %v, want %v", name, got, c.want)
		}
	}
}

// TestVanished checks that a look during which a process ended is not clean, as it may have missed
// a child of that process. This holds only for a while after the last find of a process of ours,
// since on a busy machine some process always ends.
func TestVanished(t *testing.T) {
	s := newSweeper(&orders{Marker: "GOCRONTAB_TEST_VANISHED="})
	look := func(vanished bool) bool {
		_, out := s.members(map[int]*process{}, nil, nil, vanished)
		return out.clean
	}
	if look(true) {
		t.Error("a first look that somebody vanished from is clean")
	}
	if !look(false) {
		t.Error("a look that nobody vanished from is not clean")
	}

	s.lively -= settleTime
	if !look(true) {
		t.Error("who vanishes long after the last of ours still counts")
	}
}
