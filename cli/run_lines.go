package cli

import (
	"context"
	"fmt"
	"net/url"
	"strconv"
	"strings"
	"time"

	"go-crontab/api/view"
)

// outputLine is a line of the output of a run, or a gap between two lines.
type outputLine struct {
	number int64
	text   string
	millis int64 // from the start of the run to the start of the line; negative: unknown
	stderr bool
	gap    bool
	open   bool // the output so far ends within this line
}

// lineReader puts lines together from the pieces of an output.
type lineReader struct {
	next   int64 // the byte after the last piece
	line   outputLine
	begun  bool // line has some text
	ended  int64
	yield  func(outputLine) error
	stamps [][]int64
}

// piece takes the next piece.
func (l *lineReader) piece(p *view.OutputEvent) error {
	if p.From > l.next {
		if err := l.gap(p); err != nil {
			return err
		}
	}

	l.next = p.Next
	number := p.Line
	l.stamps = p.Stamps
	for text := range strings.SplitAfterSeq(*p.Text, "\n") {
		if text == "" {
			continue
		}
		l.stamp(number)
		l.begun, l.line.number = true, number
		l.line.text += text
		if !strings.HasSuffix(text, "\n") {
			continue
		}
		if err := l.flush(); err != nil {
			return err
		}
		number++
	}
	return nil
}

// stamp sets the time and the stream of the line.
func (l *lineReader) stamp(number int64) {
	for len(l.stamps) > 0 && l.stamps[0][0] <= number {
		l.line.millis, l.line.stderr = l.stamps[0][1], l.stamps[0][2] == 1
		l.stamps = l.stamps[1:]
	}
}

func (l *lineReader) gap(p *view.OutputEvent) error {
	if err := l.flush(); err != nil {
		return err
	}
	text := fmt.Sprintf("… %d bytes dropped …", p.From-l.next)
	if lines := p.Line - 1 - l.ended; l.ended > 0 && lines > 0 {
		text = fmt.Sprintf("… %d bytes dropped, %d lines …", p.From-l.next, lines)
	}
	return l.yield(outputLine{text: text, gap: true})
}

// flush yields the line that is open.
func (l *lineReader) flush() error {
	if !l.begun {
		return nil
	}
	line := l.line
	l.begun, l.line.text = false, ""
	if cut := strings.TrimSuffix(line.text, "\n"); cut != line.text {
		line.text, l.ended = strings.TrimSuffix(cut, "\r"), line.number
	} else {
		l.ended = line.number - 1
	}
	return l.yield(line)
}

// lines yields the lines that the output of a run has so far. It returns the last answer.
func (r *remote) lines(ctx context.Context, run string, yield func(outputLine) error) (last view.Output, err error) {
	l := lineReader{yield: yield}
	for {
		last, _, err = get[view.Output](ctx, r, outputPath(run), url.Values{
			"pieces": {"true"}, "from": {strconv.FormatInt(l.next, 10)},
		})
		if err != nil {
			return last, err
		}
		for i := range last.Pieces {
			if err := l.piece(&last.Pieces[i]); err != nil {
				return last, err
			}
		}
		if len(last.Pieces) == 0 || last.Next >= last.Bytes {
			if last.Text != "" { // a text that replaces removed output
				return last, yield(outputLine{text: strings.TrimSuffix(last.Text, "\n"), gap: true})
			}
			l.line.open = true
			return last, l.flush()
		}
	}
}

// logsFlags choose the lines to print.
type logsFlags struct {
	follow     bool
	last       int
	stderr     bool
	timestamps bool
}

func (f *logsFlags) any() bool { return f.last > 0 || f.stderr || f.timestamps }

// printLines prints the chosen lines of a run. It returns the offset of the next byte.
func (r *remote) printLines(ctx context.Context, run *view.Run, f logsFlags, zone *time.Location) (int64, error) {
	var kept []outputLine
	last, err := r.lines(ctx, run.ID, func(l outputLine) error {
		if f.stderr && !l.stderr && !l.gap {
			return nil
		}
		if f.last == 0 {
			return r.printLine(l, run, f, zone)
		}
		if kept = append(kept, l); len(kept) > 2*f.last+1000 {
			kept = lastLines(kept, f.last)
		}
		return nil
	})
	if err != nil {
		return 0, err
	}

	if f.stderr && !last.MarksStderr && last.Bytes > 0 {
		return 0, fmt.Errorf("run %s has no marks for stderr: "+
			"it ended before the job had output.mark_stderr, or it is still executing", run.ID)
	}
	for _, l := range lastLines(kept, f.last) {
		if err := r.printLine(l, run, f, zone); err != nil {
			return 0, err
		}
	}
	if last.Pending {
		r.notePending()
	}
	return last.Next, nil
}

// lastLines returns the last n lines, with the gaps between them.
func lastLines(lines []outputLine, n int) []outputLine {
	from := len(lines)
	for from > 0 && n > 0 {
		if from--; !lines[from].gap {
			n--
		}
	}
	return lines[from:]
}

func (r *remote) printLine(l outputLine, run *view.Run, f logsFlags, zone *time.Location) error {
	at := ""
	if f.timestamps && !l.gap {
		at = strings.Repeat(" ", len(stampForm))
		if run.Started != nil && l.millis >= 0 {
			at = run.Started.Add(time.Duration(l.millis) * time.Millisecond).In(zone).Format(stampForm)
		}
		at += "  "
	}
	end := "\n"
	if l.open && f.follow {
		end = "" // following continues this line
	}
	_, err := fmt.Fprint(r.out, at, visible(l.text), end)
	return err
}

const stampForm = "2006-01-02T15:04:05.000-07:00"
