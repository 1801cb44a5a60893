package api

import (
	"context"
	"errors"
	"fmt"
	"math"
	"net/http"
	"strconv"
	"strings"
	"time"

	"go-crontab/api/view"
	"go-crontab/job"
	"go-crontab/job/problem"
	"go-crontab/sql/read"
)

// getOutput: GET /api/v1/runs/{id}/output. While the run executes, the answer is the output so far,
// a second or two late. To follow the output, a client asks again from the value of next in the
// last answer.
//
// The form of the answer depends on the request:
//   - If the client accepts a stream, a stream: see streamOutput.
//   - If from or pieces is given, or only JSON is accepted, JSON.
//   - With raw, the bytes as they are. With raw and from, only the first piece without a gap;
//     headers give its place.
//   - Otherwise text for people.
func (s *Server) getOutput(w http.ResponseWriter, r *http.Request) error {
	q := newQuery(r)
	raw, pieces := isTrue(q.word(rawOutput)), isTrue(q.word(piecesOutput))
	from, following := q.offset(outputFrom)
	if raw && pieces {
		q.wrong("pieces", problem.NotWith, "raw")
	}
	if err := q.err(); err != nil {
		return err
	}

	if wantsEvents(r) {
		return s.streamOutput(w, r, outputForm{raw, pieces}, from)
	}

	o, err := s.readOutput(r, from)
	if err != nil {
		return err
	}

	if !raw && (following || pieces || wantsJSON(r)) {
		return s.outputAsJSON(w, r, o, pieces, from)
	}

	w.Header().Set("Output-State", o.state())
	if o.missing.Coming {
		w.Header().Set("Output-Pending", "true")
	}
	if raw {
		w.Header().Set("Content-Type", "application/octet-stream")
		w.Header().Set("Content-Disposition", `attachment; filename="output"`)
		if following {
			return s.firstPiece(w, r, o, from)
		}
		return s.writeOutput(w, r, o, func(p job.Piece) []byte { return p.Data }, nil)
	}

	w.Header().Set("Content-Type", "text/plain; charset=utf-8")
	t := outputTexts{}
	return s.writeOutput(w, r, o, func(p job.Piece) []byte { return t.add(p) }, func() []byte { return t.end(o) })
}

func isTrue(word string) bool { return word == "1" || word == "true" }

// runOutput is a run and what is needed to read its output.
type runOutput struct {
	run     read.Run
	live    []job.Piece // while it executes
	missing read.MissingParts
}

// truncated reports whether a part of the output is not stored and never will be.
func (o *runOutput) truncated() bool {
	return o.run.Output.Bytes > o.run.Kept || o.missing.Count > 0 && !o.missing.Coming
}

func (o *runOutput) state() string {
	if o.run.Executing {
		return running
	}
	return ended
}

// eachPiece calls yield with each piece of an output, starting at the byte offset from. It stops at
// the first error of yield.
func (s *Server) eachPiece(ctx context.Context, o *runOutput, from int64, yield func(job.Piece) error) error {
	if !o.run.Executing {
		return s.cfg.DB.Pieces(ctx, &o.run, from, yield)
	}
	for _, p := range job.From(o.live, from) {
		if err := yield(p); err != nil {
			return err
		}
	}
	return nil
}

// errEnough is the error with which yield stops eachPiece early.
var errEnough = errors.New("the answer is full")

// jsonOutput limits the output in one JSON answer, in bytes.
const jsonOutput = 512 << 10

// outputAsJSON answers with the output from a byte offset on. Of a long output it answers with the
// first part.
func (s *Server) outputAsJSON(w http.ResponseWriter, r *http.Request, o *runOutput, asPieces bool, from int64) error {
	run := &o.run
	v := view.Output{
		ID: job.RunID(run.ID), State: o.state(), From: from, Next: from, Bytes: max(from, run.Output.Bytes),
		Pending: o.missing.Coming,
	}
	if !run.Executing {
		v.Outcome, v.Bytes, v.Lines = run.Outcome, run.Output.Bytes, run.Output.LineCount()
		v.HTTP = httpView(run)
	}

	stamps, err := stampsOf(run)
	if err != nil {
		return err
	}
	v.MarksStderr = stamps.Apart

	var pieces []job.Piece
	size := 0
	err = s.eachPiece(r.Context(), o, from, func(p job.Piece) error {
		if size > 0 && size+len(p.Data) > jsonOutput {
			return errEnough
		}
		pieces = append(pieces, p)
		size += len(p.Data)
		return nil
	})
	all := err == nil
	if err != nil && err != errEnough {
		return err
	}

	if asPieces && !outputRemoved(run) {
		v.Pieces = append([]view.OutputEvent{}, pieceViews(pieces, from, stamps, all && !run.Executing)...)
		if n := len(v.Pieces); n > 0 {
			v.Next = v.Pieces[n-1].Next
		}
	} else {
		v.Text, v.Next = outputText(run, pieces, from, all)
	}
	return answer(w, http.StatusOK, v)
}

// missingParts finds parts of an output that are announced but not stored yet. Call it before
// reading the pieces: if no part is missing now, none is missing among the pieces.
func (s *Server) missingParts(ctx context.Context, run *read.Run) (m read.MissingParts, err error) {
	if run.Executing || run.Output.Parts == 0 {
		return m, nil
	}
	now, err := s.now()
	if err != nil {
		return m, err
	}
	return s.cfg.DB.MissingParts(ctx, run, job.MicrosOf(now))
}

// stampsOf returns the stamps of an output. The run's node keeps them in memory until the run ends.
// So the stamps are unknown while a run executes, and if its node died.
func stampsOf(run *read.Run) (job.Stamps, error) {
	if len(run.Output.Stamps) == 0 && (run.Executing || run.Outcome == job.Lost) {
		return job.Stamps{From: math.MaxInt64}, nil
	}
	m, err := job.DecodeStamps(run.Output.Stamps)
	if err != nil {
		err = fmt.Errorf("run %d: %w", run.ID, err)
	}
	return m, err
}

// pieceViews turns pieces into text with true line numbers and stamps.
func pieceViews(pieces []job.Piece, from int64, stamps job.Stamps, over bool) []view.OutputEvent {
	var out []view.OutputEvent
	reading, lines := job.Reading{Next: from}, job.NewLineStamps(stamps)
	stamped := stamps.Apart || len(stamps.List) > 0 || stamps.From > 0
	for _, p := range pieces {
		t := reading.Add(p)
		if t.Next == t.From {
			continue
		}
		text := string(t.Data)
		e := view.OutputEvent{From: t.From, Next: t.Next, Line: t.Line + 1, Text: &text}
		if stamped {
			for _, l := range lines.Of(p) {
				e.Stamps = append(e.Stamps, []int64{l.Line, l.Millis, int64(flag(l.Stderr))})
			}
		}
		out = append(out, e)
	}

	if t := reading.End(); over && len(t.Data) > 0 {
		text := string(t.Data)
		out = append(out, view.OutputEvent{From: t.From, Next: t.Next, Line: t.Line + 1, Text: &text})
	}
	return out
}

func flag(b bool) int {
	if b {
		return 1
	}
	return 0
}

// firstPiece answers with the bytes from an offset on. It ends at the first gap.
func (s *Server) firstPiece(w http.ResponseWriter, r *http.Request, o *runOutput, from int64) error {
	first := job.Piece{At: from}
	err := s.eachPiece(r.Context(), o, from, func(p job.Piece) error {
		first = p
		return errEnough
	})
	if err != nil && err != errEnough {
		return err
	}

	w.Header().Set("Output-From", strconv.FormatInt(first.At, 10))
	w.Header().Set("Output-Next", strconv.FormatInt(first.End(), 10))
	w.Write(first.Data)
	return nil
}

// writeOutput writes a whole output. Writing may take longer than other answers, so each piece has
// its own deadline. After the first piece, an error can only cut off the answer.
func (s *Server) writeOutput(
	w http.ResponseWriter, r *http.Request, o *runOutput, form func(job.Piece) []byte, end func() []byte,
) error {
	ctx := r.Context()
	if o.run.Output.Parts > 0 {
		ctx = unbounded(ctx)
		if r.ProtoMajor == 1 {
			w.Header().Set("Connection", "close") // a reused connection would keep these deadlines
		}
	}

	begun := false
	err := s.eachPiece(ctx, o, 0, func(p job.Piece) error {
		if o.run.Output.Parts > 0 {
			_ = http.NewResponseController(w).SetWriteDeadline(time.Now().Add(slowWrite))
		}
		begun = true
		_, err := w.Write(form(p))
		return err
	})
	if err != nil {
		if !begun {
			return err
		}
		panic(http.ErrAbortHandler)
	}
	if end != nil {
		w.Write(end())
	}
	return nil
}

// outputTexts turns pieces into text for people, with a line for each gap.
type outputTexts struct {
	reading job.Reading
	open    bool // the text so far ends within a line
}

func (t *outputTexts) add(p job.Piece) []byte { return t.text(t.reading.Add(p)) }

func (t *outputTexts) end(o *runOutput) []byte {
	if outputRemoved(&o.run) {
		return []byte(removedText(&o.run))
	}
	if o.run.Executing {
		return nil
	}
	return t.text(t.reading.End())
}

func (t *outputTexts) text(piece job.Text) (out []byte) {
	if piece.Gap > 0 {
		if t.open {
			out = append(out, '\n')
		}
		out = append(out, piece.GapText()...)
	}
	if out = append(out, piece.Data...); len(out) > 0 {
		t.open = out[len(out)-1] != '\n'
	}
	return out
}

// outputText returns a run's output from a byte offset on as text for people. It also returns the
// offset of the next byte to ask for. all says that the pieces are everything that is stored.
func outputText(run *read.Run, pieces []job.Piece, from int64, all bool) (text string, next int64) {
	if outputRemoved(run) && from < run.Output.Bytes {
		return removedText(run), run.Output.Bytes
	}
	return job.PiecesText(pieces, from, all && !run.Executing)
}

// removedText replaces output that was removed.
func removedText(run *read.Run) string {
	return fmt.Sprintf("… %d bytes were removed, because app %s was at its limit of kept output …\n", run.Output.Bytes,
		run.App)
}

// readOutput reads a run, and the beginning and end of its output. If the run executes, readOutput
// reads the output from a byte offset on.
func (s *Server) readOutput(r *http.Request, from int64) (*runOutput, error) {
	// Read the pieces before the run. The pieces are deleted when the run ends. If the run still
	// executes afterwards, the pieces are complete.
	written, err := s.writtenSoFar(r, from)
	if err != nil {
		return nil, err
	}

	run, err := s.oneRun(r)
	if err != nil {
		return nil, err
	}
	if run.Executing && len(written) > 0 {
		run.Output.Bytes = written[len(written)-1].End()
	}
	missing, err := s.missingParts(r.Context(), &run)
	return &runOutput{run, job.Join(written), missing}, err
}

// writtenSoFar reads the pieces of an executing run. If the run does not execute, it returns none.
func (s *Server) writtenSoFar(r *http.Request, from int64) ([]job.Piece, error) {
	text, err := param(r, "id")
	if err != nil {
		return nil, err
	}

	id, err := job.ParseRunID(text)
	if err != nil {
		return nil, nil // oneRun reports this
	}

	executing, err := s.cfg.DB.ExecutingByID(r.Context(), []int64{id})
	if err != nil || len(executing) == 0 {
		return nil, err
	}
	return s.cfg.DB.Chunks(r.Context(), executing[0].Launch, from)
}

// wantsJSON reports whether a client accepts JSON but no text.
func wantsJSON(r *http.Request) bool {
	accept := r.Header.Get("Accept")
	return strings.Contains(accept, "application/json") && !strings.Contains(accept, "text/") &&
		!strings.Contains(accept, "*/*")
}

// offset returns a byte offset, and whether it is given.
func (q *query) offset(p offsetParam) (n int64, given bool) {
	v := q.given(p.name)
	if v == "" {
		return 0, false
	}
	n, err := strconv.ParseInt(v, 10, 64)
	if err != nil || n < 0 {
		q.wrong(p.name, problem.NotAnOffset, cutShort(v))
	}
	return n, true
}
