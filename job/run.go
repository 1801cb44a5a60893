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

// State says how far a run is.
type State string

// States, in the order of a run's trip.
const (
	Idle      State = "idle"      // nobody's: any node may claim it
	Prepared  State = "prepared"  // claimed by a session, in its heap
	Executing State = "executing" // its start is committed
	Waiting   State = "waiting"   // due, and something must end before it starts
	Ended     State = "ended"     // it has an outcome
)

// RunKind says where a run comes from.
type RunKind string

// Kinds of runs.
const (
	FromSchedule RunKind = "schedule"
	Manual       RunKind = "manual"   // somebody asked for it
	FromBackfill RunKind = "backfill" // somebody asked for a range of due times
)

// Launch identifies one start of a run: the run, and how often it was claimed. It is the fencing token of every write that
// follows: each claim raises the count, so a write that names an older launch changes nothing.
type Launch struct {
	Run   int64
	Claim int32
}

// IsZero reports whether there is no run.
func (l Launch) IsZero() bool { return l.Run == 0 }

// String is "<run>-<claim>".
func (l Launch) String() string {
	return strconv.FormatInt(l.Run, 10) + "-" + strconv.FormatInt(int64(l.Claim), 10)
}

// LogValue makes log lines show String, in any format.
func (l Launch) LogValue() slog.Value { return slog.StringValue(l.String()) }

// ParseLaunch reads what String wrote.
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

// RunID is the id of a run as people and programs see it: a whole number above zero, as text.
func RunID(id int64) string { return strconv.FormatInt(id, 10) }

// ParseRunID reads what RunID wrote.
func ParseRunID(s string) (int64, error) {
	id, err := strconv.ParseInt(s, 10, 64)
	if err != nil || id < 1 || RunID(id) != s {
		return 0, fmt.Errorf("run id %q: want a whole number above zero", s)
	}
	return id, nil
}

// Outcome says how a run ended.
type Outcome int8

// The outcomes. A run that was never started ends skipped (a policy said no), missed (nobody could start it in
// time) or superseded; lost means that its node vanished and nobody knows what the command did.
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

// Outcomes lists the words for all outcomes.
func Outcomes() []string { return outcomes[1:] }

// ParseOutcome reads what String wrote.
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

// Result is what an executor reports about one attempt that was started.
type Result struct {
	Outcome  Outcome
	Reason   Reason
	ExitCode *int   // nil when there is none: a signal, or not a command
	Signal   string // "SIGKILL" …, "" when the command exited by itself
	Output   Output
}

// Run is the durable record of one attempt, or of a counted range of due times that were never attempted.
type Run struct {
	Launch   Launch
	JobID    int64
	App      string // of its job, "" where that is not at hand
	Due      Micros
	Until    Micros // last due time it stands for; equals Due unless Count > 1
	Count    int64  // due times it stands for, 1 or more
	Kind     RunKind
	Request  int64 // who asked for it; zero: the schedule
	Attempt  int
	Final    bool
	Started  Micros // zero when never started
	Ended    Micros
	Lateness int64 // microseconds from when it should have started to Started
	Node     string
	Session  uuid.UUID // which started or ended it
	Result
}
