//go:build faults

package faults

import (
	"fmt"
	"math"
	"os"
	"os/exec"
	"strings"
	"testing"
	"time"
)

// apartVariable is set in the process that has a separate network.
const apartVariable = "GOCRONTAB_FAULTS_APART"

// apart runs the test again in a process with a separate network, and reports whether this is that
// process.
func apart(r *report) bool {
	t := r.t
	t.Helper()
	if os.Getenv(apartVariable) != "" {
		return true
	}
	if out, err := exec.Command("unshare", "--net", "true").CombinedOutput(); err != nil {
		r.skip("no network of its own can be had here: %v %s", err, strings.TrimSpace(string(out)))
	}

	cmd := exec.Command("unshare", "--net", os.Args[0], "-test.run=^"+t.Name()+"$", "-test.timeout=20m")
	cmd.Env = append(os.Environ(), apartVariable+"=1", binaryVariable+"="+binary,
		fmt.Sprintf("%s=%d", seedVariable, seed))
	out, err := cmd.CombinedOutput()
	if err != nil {
		t.Errorf("%v\n%s", err, out)
	}

	for line := range strings.Lines(string(out)) {
		if verdict, said, ok := strings.Cut(line, r.injected+": "); ok {
			said, _, _ = strings.Cut(said, " (seed ")
			if strings.HasPrefix(verdict, "SKIP ") {
				r.skip("%s", said)
			}
			r.figure("%s", said)
			r.invalid = strings.HasPrefix(verdict, "INVALID ")
		}
	}

	return false
}

// lose makes the loopback lose a share of all packets. It works without netem: a classifier picks
// packets by the kernel's random numbers (BPF: load one, compare, choose the class), and the queue
// of their class has no room.
func lose(t *testing.T, share float64) {
	t.Helper()
	sh := func(line string) {
		t.Helper()
		if out, err := exec.Command("sh", "-c", line).CombinedOutput(); err != nil {
			t.Fatalf("%s: %v %s", line, err, out)
		}
	}

	sh("tc qdisc del dev lo root 2>/dev/null || true")
	if share == 0 {
		return
	}

	sh("tc qdisc add dev lo root handle 1: htb default 1")
	sh("tc class add dev lo parent 1: classid 1:1 htb rate 10gbit quantum 60000")
	sh("tc class add dev lo parent 1: classid 1:2 htb rate 10gbit quantum 60000")
	sh("tc qdisc add dev lo parent 1:2 handle 20: bfifo limit 1")
	sh(fmt.Sprintf("tc filter add dev lo parent 1: protocol all prio 1 bpf bytecode"+
		" '4,32 0 0 4294963256,53 1 0 %d,6 0 0 65538,6 0 0 0'", int64(share*math.MaxUint32)))
}

// lost returns the number of lost packets.
func lost(t *testing.T) (n int) {
	t.Helper()
	out, err := exec.Command("tc", "-s", "qdisc", "show", "dev", "lo").Output()
	if err != nil {
		t.Fatal(err)
	}
	_, rest, _ := strings.Cut(string(out), "bfifo")
	_, rest, _ = strings.Cut(rest, "dropped ")
	_, _ = fmt.Sscanf(rest, "%d", &n)
	return n
}

// TestF15Loss loses random packets between the nodes and MySQL, and between clients and the nodes.
func TestF15Loss(t *testing.T) {
	t.Parallel()

	r := scenario(t, "F15", "5 % of all packets lost, then 20 %")
	if !apart(r) {
		return
	}
	if out, err := exec.Command("ip", "link", "set", "lo", "up").CombinedOutput(); err != nil {
		r.skip("no loopback: %v %s", err, out)
	}

	c := newCluster(r)
	c.start(3)
	l := c.mixed()
	time.Sleep(5 * time.Second)
	before := c.sessions()
	long := time.Duration(times(20, 180)) * time.Second
	lose(t, 0.05)
	time.Sleep(long)
	c.same(before, "5 % of the packets were lost")
	five := lost(t)
	lose(t, 0.2)
	time.Sleep(long)
	twenty := lost(t)
	lose(t, 0)
	c.together(60 * time.Second)

	if five < 50 || twenty < 100 {
		t.Errorf("only %d and %d packets were lost", five, twenty)
	}

	r.figure("%d and %d packets", five, twenty)
	l.check(0)
}
