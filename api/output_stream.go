package api

import (
	"errors"
	"net/http"
	"strconv"
	"time"

	"go-crontab/api/view"
	"go-crontab/job"
	"go-crontab/job/problem"
	"go-crontab/sql/read"
)

// outputEvery is the interval between reads of a run's output. Its node writes output at the same
// interval.
const outputEvery = 500 * time.Millisecond

// streamOutput sends the output of a run while it is written, and finally how the run ended. The id
// of a message is the offset of the next byte. So a client can reconnect to any node and continue
// there.
func (s *Server) streamOutput(w http.ResponseWriter, r *http.Request, raw bool, from int64) error {
	if last := r.Header.Get(lastEventID); last != "" {
		n, err := strconv.ParseInt(last, 10, 64)
		if err != nil || n < 0 {
			return invalidField(lastEventID, problem.NotAnOffset, cutShort(last))
		}
		from = n
	}

	run, pieces, err := s.readOutput(r, from)
	if err != nil {
		return err
	}

	st, err := s.openStream(w, r, may(viewer, ofRun))
	if err != nil {
		return err
	}
	defer st.leave()

	follows, err := st.begin()
	for follows && err == nil {
		if from, err = st.sendOutput(&run, pieces, raw, from); err != nil || !run.Executing {
			break
		}
		if err = st.idle(nil, outputEvery); err != nil {
			break
		}

		bounded, cancel := st.bounded()
		next, written, readErr := s.readOutput(bounded, from)
		cancel()

		var p *Problem
		switch {
		case readErr == nil:
			run, pieces = next, written
		case errors.As(readErr, &p):
			err = &farewell{p.Title + ": " + p.Detail} // the run was removed
		default:
			pieces = nil // the database does not answer; it may at the next read
		}
	}

	return st.over(err)
}

// sendOutput sends the output from a byte on, and how the run ended if it has. It returns the
// offset of the next byte.
func (st *stream) sendOutput(run *read.Run, pieces []job.Piece, raw bool, from int64) (int64, error) {
	var parts []view.OutputEvent
	if raw {
		for _, p := range job.From(pieces, from) {
			parts = append(parts, view.OutputEvent{From: p.At, Next: p.End(), Bytes: p.Data})
		}
	} else if text, next := outputText(run, pieces, from); next > from {
		parts = append(parts, view.OutputEvent{From: from, Next: next, Text: &text})
	}

	for _, p := range parts {
		if err := st.send("output", strconv.FormatInt(p.Next, 10), p); err != nil {
			return from, err
		}
		from = p.Next
	}

	if run.Executing {
		return from, nil
	}
	return from, st.send("end", strconv.FormatInt(from, 10), view.OutputEnd{
		Outcome: run.Outcome, ReasonCode: string(run.Reason.Code), Reason: run.Reason.Text,
		ExitCode: run.ExitCode, Signal: run.Signal, Bytes: run.Output.Bytes, Truncated: run.Output.Bytes > run.Kept,
	})
}
