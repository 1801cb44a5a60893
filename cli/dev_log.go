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

// lines merges the output of several writers to a terminal, line by line. Each line begins with a
// name. Writers never wait for the terminal, so the nodes can always write to their pipes.
type lines struct {
	w        io.Writer
	coloured bool
}

// newLines returns lines that writes to w. When a write to w fails, it calls broken once.
func newLines(w io.Writer, broken func(error)) *lines {
	l := &lines{w: w, coloured: colourful(w)}
	if queue, ok := w.(*logqueue.Writer); ok {
		queue.Failed = broken
		queue.Notice = func(n int) []byte {
			return []byte(l.tagged("dev", bold, fmt.Sprintf("%d lines were dropped because this output was not read",
				n)))
		}
	}
	return l
}

// print writes a text; all its lines get the prefix.
func (l *lines) print(name string, c colour, text string) { l.raw(l.tagged(name, c, text)) }

// tagged prefixes each line with a name.
func (l *lines) tagged(name string, c colour, text string) string {
	var b strings.Builder
	for line := range strings.Lines(text) {
		tag := fmt.Sprintf("%-9s", "["+name+"]")
		b.WriteString(painter(l.coloured)(c, tag) + strings.TrimRight(line, "\r\n") + "\n")
	}
	return b.String()
}

// raw writes a text unchanged and in one piece.
func (l *lines) raw(text string) { _, _ = io.WriteString(l.w, text) }

// copyLog prints the log of a process until it ends. It formats JSON records for people, and prints
// other lines such as a panic unchanged.
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

// parseRecord parses a record of slog's JSON handler, and keeps the order of its fields. It omits
// the node's own name.
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

// readable restores durations, which slog's JSON handler writes in nanoseconds.
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
