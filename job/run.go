package job

import (
	"encoding/json"
	"fmt"
	"log/slog"
	"strconv"
	"strings"

	"go-crontab/job/problem"

	"github.com/google/uuid"
)

// State is the state of a run.
type State string

// States, in the order in which a run passes through them.
const (
	Idle      State = "idle"      // any node may claim it
	Prepared  State = "prepared"  // claimed by a session, in its heap
	Executing State = "executing" // its start is committed
	Waiting   State = "waiting"   // due, but another run must end first
	Ended     State = "ended"     // it has an outcome
)

// RunKind is the origin of a run.
type RunKind string

// Kinds of runs.
const (
	FromSchedule RunKind = "schedule"
	Manual       RunKind = "manual"   // requested by a user
	FromBackfill RunKind = "backfill" // requested by a user, for a range of due times
	FromUpstream RunKind = "after"    // the end of another job's run made it due
)

// Launch identifies one start of a run: the run and its claim count. It is the fencing token of
// every later write. Each claim raises the count, so a write with an older launch changes nothing.
type Launch struct {
	Run   int64
	Claim int32
}

// IsZero reports whether there is no run.
func (l Launch) IsZero() bool { return l.Run == 0 }

// String returns "<run>-<claim>".
func (l Launch) String() string {
	return strconv.FormatInt(l.Run, 10) + "-" + strconv.FormatInt(int64(l.Claim), 10)
}

// LogValue makes log lines show String, in any format.
func (l Launch) LogValue() slog.Value { return slog.StringValue(l.String()) }

// ParseLaunch parses the output of String.
func ParseLaunch(s string) (Launch, error) {
	run, claim, _ := strings.Cut(s, "-")
	id, err1 := strconv.ParseInt(run, 10, 64)
	n, err2 := strconv.ParseInt(claim, 10, 32)
	l := Launch{Run: id, Claim: int32(n)}
	if err1 != nil || err2 != nil || id < 1 || n < 0 || l.String() != s {
		return Launch{}, fmt.Errorf("launch %q: want <run>-<claim>", s)
	}
	return l, nil
}

// RunID formats the id of a run for people and programs: a whole number above zero, as text.
func RunID(id int64) string { return strconv.FormatInt(id, 10) }

// ParseRunID parses the output of RunID.
func ParseRunID(s string) (int64, error) {
	id, err := strconv.ParseInt(s, 10, 64)
	if err != nil || id < 1 || RunID(id) != s {
		return 0, fmt.Errorf("run id %q: want a whole number above zero", s)
	}
	return id, nil
}

// Outcome says how a run ended.
type Outcome int8

// The outcomes. A run that never started becomes skipped (a policy refused it), missed (no node
// could start it in time) or superseded. A command that reports that there was nothing to do is
// skipped, too. Lost means that the node vanished, so the result of the command is unknown.
const (
	Succeeded Outcome = 1 + iota
	Failed
	TimedOut
	Killed
	Lost
	Skipped
	Missed
	Superseded

	LastOutcome = Superseded
)

var outcomes = [...]string{"", "succeeded", "failed", "timed_out", "killed", "lost", "skipped", "missed", "superseded"}

func (o Outcome) String() string {
	if o < 1 || int(o) >= len(outcomes) {
		return fmt.Sprintf("outcome(%d)", int8(o))
	}
	return outcomes[o]
}

// Wrong reports whether a due time with this outcome needs attention: the last attempt failed, or
// the due time was lost or missed. A person intends a kill, and a policy intends a skip.
func (o Outcome) Wrong() bool { return o == Failed || o == TimedOut || o == Lost || o == Missed }

// Unsuccessful are the outcomes of runs that began and did not succeed.
func Unsuccessful() []Outcome { return []Outcome{Failed, TimedOut, Killed, Lost} }

// Outcomes lists the words for all outcomes.
func Outcomes() []string { return outcomes[1:] }

// ParseOutcome parses the output of String.
func ParseOutcome(s string) (Outcome, error) {
	for i, name := range outcomes {
		if i > 0 && name == s {
			return Outcome(i), nil
		}
	}
	return 0, problem.Errorf(problem.NotAnOutcome, s, strings.Join(outcomes[1:], ", "))
}

// MarshalJSON writes the word.
func (o Outcome) MarshalJSON() ([]byte, error) { return json.Marshal(o.String()) }

// UnmarshalJSON reads the word.
func (o *Outcome) UnmarshalJSON(b []byte) error {
	var s string
	if err := json.Unmarshal(b, &s); err != nil {
		return err
	}

	v, err := ParseOutcome(s)
	if err != nil {
		return err
	}

	*o = v
	return nil
}

// Result is an executor's report about one attempt.
type Result struct {
	Outcome  Outcome
	Reason   Reason
	ExitCode *int   // nil after a signal, or if it was not a command
	Signal   string // such as "SIGKILL"; "" if the command exited by itself
	Output   Output
}

// Run is the durable record of one attempt, or of a counted range of due times that were never
// attempted.
type Run struct {
	Launch   Launch
	JobID    int64
	App      string // of its job; may be left empty
	Due      Micros
	Until    Micros // last due time that the run covers; Due unless Count > 1
	Count    int64  // covered due times, at least 1
	Kind     RunKind
	Request  int64 // the request that made the run; zero: the schedule
	Attempt  int
	Given    *Given // nil: nothing
	Final    bool
	Started  Micros // zero when never started
	Ended    Micros
	Lateness int64 // microseconds from the planned start to Started
	Node     string
	Session  uuid.UUID // the session that started or ended it
	Result
}
