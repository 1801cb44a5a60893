package execute

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"slices"
	"syscall"
	"time"

	"golang.org/x/sys/unix"

	"go-crontab/job"
)

// command is one attempt after its fork. Execute calls its methods in the order of the command's
// states. It belongs to the goroutine of that Execute. All other code knows only its process
// group.
type command struct {
	Attempt
	group    *group
	pipeWait time.Duration
	pipe     *os.File // our end of stdout, and of stderr unless that is read apart
	stderr   *os.File // our end of stderr; nil: there is one pipe
	fed      func()   // ends the writing of its input; nil without input
	cgroup   *cgroup  // its own; nil: it has none
	kept     *output  // belongs to the reader until drained is closed
	drained  chan struct{}

	outcome job.Outcome      // outcome of our stop; 0: we did not stop it
	why     job.Reason       // of our stop
	kill    <-chan time.Time // fires when SIGKILL is due; nil before SIGTERM and after SIGKILL
	killed  bool             // SIGKILL was sent
	notes   []job.Reason     // added to the reason
}

// untilExit waits for bash, and stops the group when the timeout passes or ctx ends.
func (c *command) untilExit(ctx context.Context) (syscall.WaitStatus, error) {
	c.drained = make(chan struct{})
	go func() {
		defer close(c.drained)
		c.read()
	}()

	exited := make(chan struct{})
	go func() {
		defer close(exited)
		c.group.awaitExit()
	}()

	var timeout <-chan time.Time
	if c.Timeout > 0 {
		t := time.NewTimer(c.Timeout)
		defer t.Stop()
		timeout = t.C
	}

	stopped := ctx.Done()
	for {
		select {
		case <-exited:
			if cause := c.group.killedBy(); c.outcome == 0 && cause != nil {
				c.outcome, c.why = job.Killed, stopReason(cause)
			}
			return c.group.reap()

		case <-timeout:
			timeout, stopped = nil, nil
			c.stop(job.TimedOut, reason(job.ReasonTimeout,
				fmt.Sprintf("the command ran longer than its timeout of %v", c.Timeout)))

		case <-stopped:
			timeout, stopped = nil, nil
			c.stop(job.Killed, stopReason(context.Cause(ctx)))

		case <-c.kill:
			c.kill, c.killed = nil, true
			c.group.signal(unix.SIGKILL)
		}
	}
}

// read reads the output until it ends, or until untilDrained gives up on a process that holds the
// pipe.
func (c *command) read() {
	if c.stderr == nil {
		_ = c.kept.readAll(c.pipe)
		return
	}
	c.readApart()
}

// stop sends SIGTERM and notes the attempt's outcome and reason.
func (c *command) stop(o job.Outcome, why job.Reason) {
	c.outcome, c.why = o, why
	c.terminate()
}

func (c *command) terminate() {
	c.group.signal(unix.SIGTERM)
	c.kill = time.After(c.Grace)
}

// Intervals of untilEmpty's checks. The first intervals are short, because most processes that
// bash leaves are about to end. A check walks the process table only after an interval longer than
// walkFrom.
const (
	firstLook = time.Millisecond
	lastLook  = 256 * time.Millisecond
	walkFrom  = 32 * time.Millisecond
)

// untilEmpty waits for the processes that bash left in its group. It ends them after PipeWait, or
// at once when ctx ends. If we have already sent the group SIGTERM, they get SIGKILL when the rest
// of the grace is over.
func (c *command) untilEmpty(ctx context.Context) {
	defer c.Seat.Empty()
	var patience <-chan time.Time
	var stopped <-chan struct{}
	if c.kill == nil && !c.killed {
		t := time.NewTimer(c.pipeWait)
		defer t.Stop()
		patience, stopped = t.C, ctx.Done()
	}

	for pause := firstLook; !c.group.empty(pause > walkFrom); pause = min(2*pause, lastLook) {
		if c.killed {
			c.group.signal(unix.SIGKILL) // again: a process may have joined the group by setpgid
		}

		select {
		case <-patience:
			patience, stopped = nil, nil
			c.endLeftovers()
		case <-stopped:
			patience, stopped = nil, nil
			c.endLeftovers()
		case <-c.kill:
			c.kill, c.killed = nil, true
		case <-time.After(pause):
		}
	}
}

// unstarted releases the resources of a command that was not forked.
func (c *command) unstarted() {
	for _, pipe := range []*os.File{c.pipe, c.stderr} {
		if pipe != nil {
			_ = pipe.Close()
		}
	}
	if c.fed != nil {
		c.fed()
	}
	if c.cgroup != nil {
		c.cgroup.remove()
	}
}

// leaveCgroup kills the remaining processes in the cgroup and removes the cgroup. Bash and its
// group are dead, so the remaining processes have left the group. A command with shared limits may
// leave no daemon, because the limits end with the cgroup. The first checks kill nothing, because
// the kernel may report the last death a moment late.
func (c *command) leaveCgroup() {
	if c.cgroup == nil {
		return
	}

	said := false
	for pause := firstLook; c.cgroup.populated(); pause = min(2*pause, lastLook) {
		if pause > walkFrom {
			c.cgroup.kill()
			if !said {
				said = true
				c.note(job.ReasonProcessesKilled,
					"it left processes outside its process group, and the node killed them")
			}
		}
		time.Sleep(pause)
	}

	c.notes = append(c.notes, c.cgroup.exceeded()...)
	c.cgroup.remove()
}

func (c *command) endLeftovers() {
	if c.outcome == 0 { // a stop of ours gives another reason
		c.note(job.ReasonProcessesEnded, "it left background processes, and the node stopped them")
	}
	c.terminate()
}

// untilDrained waits for the end of the output. A process outside the group may hold the pipe for
// ever. So after PipeWait, untilDrained takes the bytes that are in the pipe and stops reading.
func (c *command) untilDrained() {
	defer c.pipe.Close()
	if c.stderr != nil {
		defer c.stderr.Close()
	}
	if c.fed != nil {
		c.fed()
	}

	select {
	case <-c.drained:
		return
	default:
	}

	t := time.NewTimer(c.pipeWait)
	defer t.Stop()
	select {
	case <-c.drained:
		return
	case <-t.C:
	}

	_ = c.pipe.SetReadDeadline(time.Unix(1, 0)) // wakes the reader, if it waits
	if c.stderr != nil {
		_ = c.stderr.SetReadDeadline(time.Unix(1, 0))
	}
	<-c.drained
	ended := c.takeRest()
	if c.stderr != nil && !c.takeRestOf(c.stderr, true) {
		ended = false
	}
	if !ended {
		c.note(job.ReasonOutputHeld, "a background process still has the output open")
	}
}

// maxRest bounds takeRest against a process that goes on writing. It is larger than a pipe's
// buffer.
const maxRest = 1 << 20

// takeRest reads the bytes that bash wrote before this busy process read them. It does not wait
// for more. ended reports whether the output has ended.
func (c *command) takeRest() (ended bool) { return c.takeRestOf(c.pipe, false) }

func (c *command) takeRestOf(pipe *os.File, stderr bool) (ended bool) {
	raw, err := pipe.SyscallConn()
	if err != nil {
		return false
	}

	_ = raw.Control(func(fd uintptr) {
		for enough := c.kept.came + maxRest; err == nil && c.kept.came < enough; {
			if c.stderr == nil {
				err = c.kept.read(nonblocking(fd))
			} else {
				err = c.kept.readOf(nonblocking(fd), stderr)
			}
		}
	})
	return err == io.EOF
}

// nonblocking reads from a descriptor in non-blocking mode.
type nonblocking int

func (fd nonblocking) Read(p []byte) (int, error) {
	for {
		switch n, err := unix.Read(int(fd), p); {
		case err == unix.EINTR:
		case err != nil:
			return 0, err
		case n == 0:
			return 0, io.EOF
		default:
			return n, nil
		}
	}
}

// result builds the attempt's result. If we stopped the command, bash's exit status does not
// count.
func (c *command) result(status syscall.WaitStatus, reapErr error) job.Result {
	res := job.Result{Outcome: job.Succeeded, Output: c.kept.output()}

	var said job.Reason
	switch {
	case errors.Is(reapErr, unix.ECHILD):
		res.Outcome = job.Failed
		said = reason(job.ReasonExitCodeUnknown, "another part of the program collected the exit status")
	case reapErr != nil:
		res.Outcome = job.Failed
		said = reason(job.ReasonExitCodeUnknown, fmt.Sprintf("the exit status could not be read: %v", reapErr))
	case status.Signaled():
		res.Signal = signalName(status.Signal())
		res.Outcome, said = job.Failed, reason(job.ReasonSignal, "killed by "+res.Signal)
	default:
		code := status.ExitStatus()
		res.ExitCode = &code
		switch {
		case c.Options.Skips(code):
			res.Outcome = job.Skipped
			said = reason(job.ReasonNothingToDo, fmt.Sprintf("exit status %d: nothing to do", code))
		case !c.Options.Succeeds(code):
			res.Outcome, said = job.Failed, reason(job.ReasonExitCode, fmt.Sprintf("exit status %d", code))
		}
	}

	if why, cut := c.kept.cutReason(); cut {
		c.notes = append(c.notes, why)
	}
	if why := exceeded(c.Options.Limits, status); why != (job.Reason{}) {
		c.notes = append(c.notes, why)
	}
	if c.outcome != 0 {
		res.Outcome, said = c.outcome, c.why
	}
	res.Reason = combined(said, c.notes)
	return res
}

// note adds a text to the reason.
func (c *command) note(code job.ReasonCode, text string) {
	c.notes = append(c.notes, reason(code, text))
}

// combined joins said and notes into one reason. If a limit ended the command, the reason has the
// code of that limit. If not, it has the first code that is not empty.
func combined(said job.Reason, notes []job.Reason) job.Reason {
	code, texts := said.Code, []string{said.Text}
	for _, n := range notes {
		texts = append(texts, n.Text)
		switch {
		case code == "",
			(code == job.ReasonSignal || code == job.ReasonExitCode) && slices.Contains(deadlyLimits, n.Code):
			code = n.Code
		}
	}
	return reason(code, texts...)
}

// deadlyLimits are the codes of limits that end a command.
var deadlyLimits = []job.ReasonCode{
	job.ReasonMemoryLimit, job.ReasonMachineMemory, job.ReasonCPULimit, job.ReasonFileSizeLimit,
}

// signalName returns a name such as "SIGKILL"; a real-time signal has only a number.
func signalName(sig syscall.Signal) string {
	if name := unix.SignalName(sig); name != "" {
		return name
	}
	return fmt.Sprintf("SIG%d", int(sig))
}
