package api

import (
	"fmt"
	"net/http"
	"strconv"
	"strings"

	"go-crontab/api/view"
	"go-crontab/job"
	"go-crontab/job/problem"
	"go-crontab/sql/read"
)

// getOutput: GET /api/v1/runs/{id}/output. While the run executes, this is the output so far, a
// second or two late. A client that follows it asks for the bytes from next of the last answer on.
//
// The form of the answer depends on the request. A stream if the client accepts one, see
// streamOutput. JSON if from is given, or if only JSON is accepted. With raw, the bytes as they
// are; with raw and from, only the first piece without a gap, whose place the headers give. Text
// for people otherwise.
func (s *Server) getOutput(w http.ResponseWriter, r *http.Request) error {
	q := newQuery(r)
	raw := q.word(rawOutput)
	from, following := q.offset(outputFrom)
	if err := q.err(); err != nil {
		return err
	}

	isRaw := raw == "1" || raw == "true"
	if wantsEvents(r) {
		return s.streamOutput(w, r, isRaw, from)
	}

	run, pieces, err := s.readOutput(r, from)
	if err != nil {
		return err
	}

	state := ended
	if run.Executing {
		state = running
	}

	switch {
	case isRaw:
		w.Header().Set("Content-Type", "application/octet-stream")
		w.Header().Set("Content-Disposition", `attachment; filename="output"`)
		w.Header().Set("Output-State", state)
		if following {
			pieces = pieces[:min(1, len(pieces))]
			first := job.Piece{At: from}
			if len(pieces) > 0 {
				first = pieces[0]
			}
			w.Header().Set("Output-From", strconv.FormatInt(first.At, 10))
			w.Header().Set("Output-Next", strconv.FormatInt(first.End(), 10))
		}

		for _, p := range pieces {
			w.Write(p.Data)
		}

		return nil
	case following || wantsJSON(r):
		v := view.Output{ID: job.RunID(run.ID), State: state, From: from, Bytes: max(from, run.Output.Bytes)}
		v.Text, v.Next = outputText(&run, pieces, from)
		if !run.Executing {
			v.Outcome, v.Bytes = run.Outcome, run.Output.Bytes
		}
		return answer(w, http.StatusOK, v)
	}

	text, _ := outputText(&run, pieces, 0)
	w.Header().Set("Content-Type", "text/plain; charset=utf-8")
	w.Header().Set("Output-State", state)
	w.Write([]byte(text))
	return nil
}

// outputText is a run's output from a byte on for people, and the byte to ask for next.
func outputText(run *read.Run, pieces []job.Piece, from int64) (text string, next int64) {
	if outputRemoved(run) && from < run.Output.Bytes {
		return removedText(run), run.Output.Bytes
	}
	return job.PiecesText(pieces, from, !run.Executing)
}

// removedText replaces output that was removed.
func removedText(run *read.Run) string {
	return fmt.Sprintf("… %d bytes were removed, because app %s was at its limit of kept output …\n", run.Output.Bytes,
		run.App)
}

// readOutput reads a run and its output from a byte on.
func (s *Server) readOutput(r *http.Request, from int64) (read.Run, []job.Piece, error) {
	// Read the pieces before the run: the pieces are deleted when it ends, so if it still executes
	// afterwards, they are complete.
	written, err := s.writtenSoFar(r, from)
	if err != nil {
		return read.Run{}, nil, err
	}

	run, err := s.oneRun(r)
	if err != nil {
		return run, nil, err
	}
	if !run.Executing {
		return run, job.From(run.Output.Pieces(), from), nil
	}
	if len(written) > 0 {
		run.Output.Bytes = written[len(written)-1].End()
	}

	return run, job.From(job.Join(written), from), nil
}

// writtenSoFar reads the pieces of an executing run; none if it does not execute.
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
