// Package ledger is for tests of whole clusters. It records actual executions in a file, outside of
// MySQL, and compares them with the history and with the expected due times.
//
// Every attempt writes a line when it starts, some lines while it lives, and a line when it ends.
// Its lines stay, however it is killed. A line is a single write to a file opened for appending, so
// lines of different processes do not mix. Instants come from the machine's clock, which all
// processes of a test share.
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

// Kind is the event that a line reports about an attempt.
type Kind string

// The kinds of lines.
const (
	Start Kind = "start"
	Alive Kind = "alive" // it still lived then
	End   Kind = "end"   // it has done all its work
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

// Open uses the file at path and creates it if it does not exist. The path must not need quoting in
// bash.
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

// Path returns the path of the file.
func (l *Ledger) Path() string { return l.path }

// Append adds an entry in a single write. It opens the file each time, as a command does.
func (l *Ledger) Append(e Entry) error {
	f, err := os.OpenFile(l.path, os.O_APPEND|os.O_WRONLY, 0)
	if err != nil {
		return err
	}
	_, err = f.WriteString(e.line())
	return errors.Join(err, f.Close())
}

// Now returns the current instant by the clock of ledgers.
func Now() job.Micros { return job.MicrosOf(time.Now()) }

func (e Entry) line() string {
	return strings.Join([]string{string(e.Kind), e.App, e.Job, e.Due.String(), strconv.Itoa(e.Attempt), e.Launch,
		strconv.FormatInt(int64(e.At), 10), strconv.Itoa(e.PID), strconv.Itoa(e.Exit)}, "\t") + "\n"
}

// Entries reads all lines in the order in which they were written. It fails on a torn line.
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

// sign is the interval between two signs of life of a command.
const sign = 50 * time.Millisecond

// Command returns the text of a bash command that works for the given time, records its end, and
// exits with a code. It needs no other program, only a fork. A command killed at any point leaves a
// start without an end, and signs of life up to that point.
func (l *Ledger) Command(work time.Duration, exit int) string {
	until := fmt.Sprintf(`until=$((${EPOCHREALTIME/[.,]/} + %d))
exec 9<> <(:)
while ((${EPOCHREALTIME/[.,]/} < until)); do read -rt 0.0%d -u 9; say alive 0; done`,
		work.Microseconds(), sign.Milliseconds())
	if work == 0 {
		until = ":"
	}
	return l.wrapped(until, strconv.Itoa(exit))
}

// Wrap returns a command that records when a script starts, when it ends, and its exit code.
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
