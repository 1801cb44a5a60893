package job

import (
	"encoding/json"
	"fmt"
	"log/slog"
	"strconv"
	"strings"

	"github.com/google/uuid"
)

// Launch identifies one attempt of one task: the session that claimed it and a counter of that session, never
// reused. It is the fencing token of every later write, the idempotency key, and the id of the run.
type Launch struct {
	Session uuid.UUID
	N       int64
}

// IsZero tells whether no launch was minted.
func (l Launch) IsZero() bool { return l.N == 0 && l.Session == uuid.Nil }

// String is "<session>-<counter>".
func (l Launch) String() string { return l.Session.String() + "-" + strconv.FormatInt(l.N, 10) }

// LogValue makes log lines show String, in any format.
func (l Launch) LogValue() slog.Value { return slog.StringValue(l.String()) }

// ParseLaunch reads what String wrote.
func ParseLaunch(s string) (Launch, error) {
	i := strings.LastIndexByte(s, '-')
	if i < 0 {
		return Launch{}, fmt.Errorf("run id %q: want <session>-<number>", s)
	}
	session, err := uuid.Parse(s[:i])
	if err != nil || len(s[:i]) != 36 {
		return Launch{}, fmt.Errorf("run id %q: want <session>-<number>", s)
	}
	n, err := strconv.ParseInt(s[i+1:], 10, 64)
	if err != nil || n < 1 {
		return Launch{}, fmt.Errorf("run id %q: want <session>-<number>", s)
	}
	return Launch{Session: session, N: n}, nil
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
	return 0, fmt.Errorf("outcome %q: want one of %s", s, strings.Join(outcomes[1:], ", "))
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
	Reason   string // one line, "" when the outcome says it all
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
	Origin   int64  // 0: the schedule; else the request that asked for it
	Attempt  int
	Final    bool
	Started  Micros // zero when never started
	Ended    Micros
	Lateness int64 // microseconds from when it should have started to Started
	Node     string
	Result
}
