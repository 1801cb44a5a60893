// Package ledger is for tests of whole clusters. It keeps, in a file and so outside of MySQL, what was really executed,
// and holds that, the history, and the due times that should have been, against each other.
//
// Every attempt writes a line when it starts, some while it lives, and one when it ends: whatever kills it, what it has
// written stays. A line is one write to a file that is open for appending, so lines of any number of processes do not
// mix. Instants are the machine's clock, which all processes of a test share.
package ledger

import (
	"bytes"
	"errors"
	"fmt"
	"os"
	"strconv"
	"strings"
	"time"

	"go-crontab/job"
)

// Kind is what a line says of an attempt.
type Kind string

// The kinds of lines.
const (
	Start Kind = "start"
	Alive Kind = "alive" // it still lived then
	End   Kind = "end"   // it has done all that it had to do
)

// Entry is a line of the ledger.
type Entry struct {
	Kind     Kind
	App, Job string
	Due      job.Micros
	Attempt  int
	Launch   string
	At       job.Micros
	PID      int
	Exit     int // of an end: the exit code that follows
}

// Ledger is a file of entries.
type Ledger struct{ path string }

// Open uses the file at path, which is created if it is not there. The path must not need quoting in bash.
func Open(path string) (*Ledger, error) {
	if strings.ContainsAny(path, " \t\n'\"\\$`") {
		return nil, fmt.Errorf("ledger %q: want a path without blanks, quotes, backslashes and dollar signs", path)
	}
	f, err := os.OpenFile(path, os.O_APPEND|os.O_CREATE|os.O_WRONLY, 0o666)
	if err != nil {
		return nil, err
	}
	return &Ledger{path}, f.Close()
}

// Path is where the file is.
func (l *Ledger) Path() string { return l.path }

// Append adds an entry, at once and whole. It opens the file each time, as a command does.
func (l *Ledger) Append(e Entry) error {
	f, err := os.OpenFile(l.path, os.O_APPEND|os.O_WRONLY, 0)
	if err != nil {
		return err
	}
	_, err = f.WriteString(e.line())
	return errors.Join(err, f.Close())
}

// Now is the instant by the clock of ledgers.
func Now() job.Micros { return job.MicrosOf(time.Now()) }

func (e Entry) line() string {
	return strings.Join([]string{string(e.Kind), e.App, e.Job, e.Due.String(), strconv.Itoa(e.Attempt), e.Launch,
		strconv.FormatInt(int64(e.At), 10), strconv.Itoa(e.PID), strconv.Itoa(e.Exit)}, "\t") + "\n"
}

// Entries reads all lines, in the order in which they were written. It fails if one is torn.
func (l *Ledger) Entries() ([]Entry, error) {
	text, err := os.ReadFile(l.path)
	if err != nil {
		return nil, err
	}
	return parse(text)
}

func parse(text []byte) ([]Entry, error) {
	var entries []Entry
	for n := 1; len(text) > 0; n++ {
		line, rest, whole := bytes.Cut(text, []byte("\n"))
		e, err := parseLine(string(line))
		if err == nil && !whole {
			err = errors.New("it has no end")
		}
		if err != nil {
			return nil, fmt.Errorf("line %d of the ledger is torn: %q: %w", n, line, err)
		}
		entries, text = append(entries, e), rest
	}
	return entries, nil
}

func parseLine(line string) (e Entry, err error) {
	w := strings.Split(line, "\t")
	if len(w) != 9 {
		return e, fmt.Errorf("%d fields, want 9", len(w))
	}
	e = Entry{Kind: Kind(w[0]), App: w[1], Job: w[2], Launch: w[5]}
	due, err := time.Parse(time.RFC3339Nano, w[3])
	if err != nil {
		return e, err
	}
	e.Due = job.MicrosOf(due)
	at, err := strconv.ParseInt(w[6], 10, 64)
	if err != nil {
		return e, err
	}
	e.At = job.Micros(at)
	for i, n := range map[int]*int{4: &e.Attempt, 7: &e.PID, 8: &e.Exit} {
		if *n, err = strconv.Atoi(w[i]); err != nil {
			return e, err
		}
	}
	if e.Kind != Start && e.Kind != Alive && e.Kind != End {
		return e, fmt.Errorf("kind %q: want %s, %s or %s", e.Kind, Start, Alive, End)
	}
	return e, nil
}

// sign is how often a command says that it lives.
const sign = 50 * time.Millisecond

// Command is the text of a bash command that works for so long, writes that down, and exits with a code. It needs no
// other program, only a fork. Killed at any point, it leaves a start without an end, and signs of life
// up to then.
func (l *Ledger) Command(work time.Duration, exit int) string {
	until := fmt.Sprintf(`until=$((${EPOCHREALTIME/[.,]/} + %d))
exec 9<> <(:)
while ((${EPOCHREALTIME/[.,]/} < until)); do read -rt 0.0%d -u 9; say alive 0; done`, work.Microseconds(), sign.Milliseconds())
	if work == 0 {
		until = ":"
	}
	return l.wrapped(until, strconv.Itoa(exit))
}

// Wrap is a command that writes down when a script starts and when and how it ends.
func (l *Ledger) Wrap(script string) string { return l.wrapped("(\n"+script+"\n)", "$?") }

func (l *Ledger) wrapped(work, exit string) string {
	return fmt.Sprintf(`export LC_ALL=C
say() { printf '%%s\t%%s\t%%s\t%%s\t%%s\t%%s\t%%s\t%%s\t%%s\n' "$1" "$GOCRONTAB_APP" "$GOCRONTAB_JOB" "$GOCRONTAB_DUE" "$GOCRONTAB_ATTEMPT" "$GOCRONTAB_LAUNCH" "${EPOCHREALTIME/[.,]/}" $$ "$2" >> %s; }
say start 0
%s
exit=%s
say end $exit
exit $exit`, l.path, work, exit)
}
