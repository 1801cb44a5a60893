package cli

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"log/slog"
	"strings"
	"time"

	"go-crontab/internal/logqueue"
)

// lines is a terminal that several write to, a line at a time, each with its name in front. Nobody waits for it: what
// the nodes write to their pipes is read even if nobody reads the terminal.
type lines struct {
	w        io.Writer
	coloured bool
}

// newLines writes to w. broken is called once, when w cannot be written any more.
func newLines(w io.Writer, broken func(error)) *lines {
	l := &lines{w: w, coloured: colourful(w)}
	if queue, ok := w.(*logqueue.Writer); ok {
		queue.Failed = broken
		queue.Notice = func(n int) []byte {
			return []byte(l.tagged("dev", bold, fmt.Sprintf("%d lines were dropped while nobody read this", n)))
		}
	}
	return l
}

// print writes text, whose further lines stand below its first.
func (l *lines) print(name string, c colour, text string) { l.raw(l.tagged(name, c, text)) }

// tagged puts a name in front of each line.
func (l *lines) tagged(name string, c colour, text string) string {
	var b strings.Builder
	for line := range strings.Lines(text) {
		tag := fmt.Sprintf("%-9s", "["+name+"]")
		b.WriteString(painter(l.coloured)(c, tag) + strings.TrimRight(line, "\r\n") + "\n")
	}
	return b.String()
}

// raw writes text as it is, in one piece.
func (l *lines) raw(text string) { _, _ = io.WriteString(l.w, text) }

// copyLog prints a process's log until it ends: its JSON as people read it, anything else, such as a panic, as it is.
func (l *lines) copyLog(name string, c colour, r io.Reader) {
	handler := textHandler(writerFunc(func(b []byte) { l.print(name, c, string(b)) }), slog.LevelDebug, l.coloured)
	for in := bufio.NewReader(r); ; {
		line, err := in.ReadBytes('\n')
		if record, ok := parseRecord(line, name); ok {
			_ = handler.Handle(context.Background(), record)
		} else if len(line) > 0 {
			l.print(name, c, string(line))
		}
		if err != nil {
			return
		}
	}
}

type writerFunc func([]byte)

func (f writerFunc) Write(b []byte) (int, error) {
	f(b)
	return len(b), nil
}

// parseRecord reads what slog's JSON handler wrote, keeping the order of its fields. That it is about the node itself
// need not be said again.
func parseRecord(line []byte, node string) (record slog.Record, ok bool) {
	dec := json.NewDecoder(bytes.NewReader(line))
	dec.UseNumber()
	if token, err := dec.Token(); err != nil || token != json.Delim('{') {
		return record, false
	}

	for dec.More() {
		key, err := dec.Token()
		if err != nil {
			return record, false
		}

		var value any
		if err := dec.Decode(&value); err != nil {
			return record, false
		}

		text, _ := value.(string)
		switch key {
		case slog.TimeKey:
			record.Time, _ = time.Parse(time.RFC3339Nano, text)
		case slog.LevelKey:
			ok = record.Level.UnmarshalText([]byte(text)) == nil
		case slog.MessageKey:
			record.Message = text
		default:
			if key == "node" && text == node {
				continue
			}
			record.AddAttrs(slog.Any(fmt.Sprint(key), readable(key, value)))
		}
	}

	return record, ok
}

// readable turns a duration back into text: slog's JSON has it in nanoseconds.
func readable(key json.Token, value any) any {
	n, ok := value.(json.Number)
	if !ok {
		return value
	}

	switch key {
	case "in", "grace", "took", "age", "lead", "lateness", "expiry":
		if ns, err := n.Int64(); err == nil {
			return time.Duration(ns)
		}
	}
	return n.String()
}
