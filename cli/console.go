package cli

import (
	"bufio"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
	"time"

	"go-crontab/internal/logqueue"

	"golang.org/x/term"
)

// console holds the streams of a command.
type console struct {
	in       io.Reader
	out, err io.Writer
	timezone string // from --timezone, see zone; empty: not given
	lost     error  // the first failed write to out
}

func (c *console) printf(format string, args ...any) {
	if _, err := fmt.Fprintf(c.out, format, args...); err != nil && c.lost == nil {
		c.lost = fmt.Errorf("write the result: %w", err)
	}
}

// notef prints a message that is not part of the result.
func (c *console) notef(format string, args ...any) { fmt.Fprintf(c.err, format, args...) }

// complain prints the error that ended a command, and a hint.
func (c *console) complain(err error) {
	paint := painter(colourful(c.err))
	c.notef("%s %v\n", paint(red, "error:"), err)
	for line := range strings.Lines(hintOf(err)) {
		c.notef("  %s\n", strings.TrimRight(line, "\n"))
	}
}

// queueLog puts queues before standard output and standard error. A process calls it if it must
// never wait for the reader of its log. Such a process flushes the queues before it exits.
func (c *console) queueLog() {
	c.out, c.err = logqueue.New(c.out, logqueue.Room), logqueue.New(c.err, logqueue.Room)
}

// flushLimit limits how long an exiting process waits for a slow reader of its log.
const flushLimit = time.Second

// flush writes the queued output.
func (c *console) flush() {
	for _, w := range []io.Writer{c.err, c.out} {
		if queue, ok := w.(*logqueue.Writer); ok {
			queue.Flush(flushLimit)
		}
	}
}

// terminal returns the file descriptor of a reader or writer if it is a terminal.
func terminal(stream any) (fd int, ok bool) {
	if queue, queued := stream.(*logqueue.Writer); queued {
		stream = queue.Target()
	}
	f, ok := stream.(*os.File)
	if !ok {
		return 0, false
	}
	fd = int(f.Fd())
	return fd, term.IsTerminal(fd)
}

// terminalWidth returns the width of the terminal, or 0 if w is not a terminal.
func terminalWidth(w io.Writer) int {
	fd, ok := terminal(w)
	if !ok {
		return 0
	}
	width, _, err := term.GetSize(fd)
	if err != nil {
		return 0
	}
	return width
}

// colourful reports whether output to w should be coloured.
func colourful(w io.Writer) bool {
	_, ok := terminal(w)
	return ok && os.Getenv("NO_COLOR") == "" && os.Getenv("TERM") != "dumb"
}

// colour is an SGR parameter; "" means no colour.
type colour string

const (
	bold   colour = "1"
	faint  colour = "2"
	red    colour = "31"
	green  colour = "32"
	yellow colour = "33"
	blue   colour = "34"
	purple colour = "35"
	cyan   colour = "36"
)

// painter returns a function that colours a text. If on is false, the function returns the text
// unchanged.
func painter(on bool) func(colour, string) string {
	return func(c colour, s string) string {
		if !on || c == "" || s == "" {
			return s
		}
		return "\x1b[" + string(c) + "m" + s + "\x1b[0m"
	}
}

// confirm asks for confirmation. Without a terminal it returns true: the command line was explicit.
func (c *console) confirm(format string, args ...any) bool {
	if _, ok := terminal(c.in); !ok {
		return true
	}
	c.notef(format+" [y/N] ", args...)
	line, _ := bufio.NewReader(c.in).ReadString('\n')
	answer := strings.ToLower(strings.TrimSpace(line))
	return answer == "y" || answer == "yes"
}

// program returns the name by which this program was called, so that hints can be copied to a
// shell.
func program() string {
	if name := os.Args[0]; strings.HasSuffix(filepath.Base(name), "go-crontab") {
		return name
	}
	return "go-crontab"
}
