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

// console is where a command reads and writes.
type console struct {
	in       io.Reader
	out, err io.Writer
	timezone string // of --timezone, see zone; "": none was given
	lost     error  // why something that was asked for could not be written
}

func (c *console) printf(format string, args ...any) {
	if _, err := fmt.Fprintf(c.out, format, args...); err != nil && c.lost == nil {
		c.lost = fmt.Errorf("cannot write what was asked for: %w", err)
	}
}

// notef tells something beside what was asked for.
func (c *console) notef(format string, args ...any) { fmt.Fprintf(c.err, format, args...) }

// complain prints why a command ended, and what to try next.
func (c *console) complain(err error) {
	paint := painter(colourful(c.err))
	c.notef("%s %v\n", paint(red, "error:"), err)
	for line := range strings.Lines(hintOf(err)) {
		c.notef("  %s\n", strings.TrimRight(line, "\n"))
	}
}

// queueLog puts a queue in front of standard output and standard error. A process that must never wait for its reader
// writes through it, and flushes it at its end.
func (c *console) queueLog() {
	c.out, c.err = logqueue.New(c.out, logqueue.Room), logqueue.New(c.err, logqueue.Room)
}

// flushLimit bounds how long a process that ends waits for whoever reads its log.
const flushLimit = time.Second

// flush writes what waits in the queues, if there are any.
func (c *console) flush() {
	for _, w := range []io.Writer{c.err, c.out} {
		if queue, ok := w.(*logqueue.Writer); ok {
			queue.Flush(flushLimit)
		}
	}
}

// terminal returns the descriptor behind a reader or writer that is a terminal.
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

// terminalWidth is 0 when w is no terminal: then nothing is cut.
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

// colourful tells whether to colour what is written to w.
func colourful(w io.Writer) bool {
	_, ok := terminal(w)
	return ok && os.Getenv("NO_COLOR") == "" && os.Getenv("TERM") != "dumb"
}

// colour is an SGR parameter; "" leaves the text as it is.
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

// painter returns what colours a text, or leaves it alone when on is false.
func painter(on bool) func(colour, string) string {
	return func(c colour, s string) string {
		if !on || c == "" || s == "" {
			return s
		}
		return "\x1b[" + string(c) + "m" + s + "\x1b[0m"
	}
}

// confirm asks a person. Where there is none to ask, the command line was clear enough.
func (c *console) confirm(format string, args ...any) bool {
	if _, ok := terminal(c.in); !ok {
		return true
	}
	c.notef(format+" [y/N] ", args...)
	line, _ := bufio.NewReader(c.in).ReadString('\n')
	answer := strings.ToLower(strings.TrimSpace(line))
	return answer == "y" || answer == "yes"
}

// program is how this binary was called, for hints that can be copied.
func program() string {
	if name := os.Args[0]; strings.HasSuffix(filepath.Base(name), "go-crontab") {
		return name
	}
	return "go-crontab"
}
