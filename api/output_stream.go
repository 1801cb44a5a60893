package api

import (
	"errors"
	"net/http"
	"strconv"
	"strings"
	"time"

	"go-crontab/api/view"
	"go-crontab/job"
	"go-crontab/job/problem"
)

// outputEvery is the interval between reads of a run's output. Its node writes output at the same
// interval.
const outputEvery = 500 * time.Millisecond

// outputForm is the form of the output in a stream. The default is text for people.
type outputForm struct{ raw, pieces bool }

// streamOutput sends the output of a run while the run writes it. Its last message says how the run
// ended. If the output is large, the last message waits until the run's node has stored all parts,
// or is not expected to store more. The id of a message is the offset of the next byte. So a client
// can reconnect to any node and continue at that byte.
func (s *Server) streamOutput(w http.ResponseWriter, r *http.Request, form outputForm, from int64) error {
	if last := r.Header.Get(lastEventID); last != "" {
		n, err := strconv.ParseInt(last, 10, 64)
		if err != nil || n < 0 {
			return invalidField(lastEventID, problem.NotAnOffset, cutShort(last))
		}
		from = n
	}

	o, err := s.readOutput(r, from)
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
		if !o.missing.Coming { // otherwise the stream would skip the missing parts
			if from, err = st.sendOutput(o, form, from); err != nil || !o.run.Executing {
				break
			}
		}
		if err = st.idle(nil, outputEvery); err != nil {
			break
		}

		bounded, cancel := st.bounded()
		next, readErr := s.readOutput(bounded, from)
		cancel()

		var p *Problem
		switch {
		case readErr == nil:
			o = next
		case errors.As(readErr, &p):
			err = &farewell{p.Title + ": " + p.Detail} // the run was removed
		default:
			o.live = nil // the database does not answer now, but it may answer the next read
		}
	}

	return st.over(err)
}

// sendOutput sends the output from a byte offset on. If the run has ended, it also sends how. It
// returns the offset of the next byte.
func (st *stream) sendOutput(o *runOutput, form outputForm, from int64) (int64, error) {
	run := &o.run
	send := func(e view.OutputEvent) error {
		err := st.send("output", strconv.FormatInt(e.Next, 10), e)
		if err == nil {
			from = e.Next
		}
		return err
	}

	if err := st.sendPieces(o, form, from, send); err != nil {
		return from, err
	}
	if run.Executing {
		return from, nil
	}
	return from, st.send("end", strconv.FormatInt(from, 10), view.OutputEnd{
		Outcome: run.Outcome, ReasonCode: string(run.Reason.Code), Reason: run.Reason.Text,
		ExitCode: run.ExitCode, Signal: run.Signal, Bytes: run.Output.Bytes, Truncated: o.truncated(),
	})
}

// sendPieces sends the output from a byte offset on, one message for each piece.
func (st *stream) sendPieces(o *runOutput, form outputForm, from int64, send func(view.OutputEvent) error) error {
	run := &o.run
	if !form.raw && outputRemoved(run) {
		if text, next := outputText(run, nil, from, true); next > from {
			return send(view.OutputEvent{From: from, Next: next, Text: &text})
		}
		return nil
	}

	reading, within := job.Reading{Next: from}, from > 0
	sendText := func(t job.Text) error {
		if t.Next == from {
			return nil
		}

		e := view.OutputEvent{From: from, Next: t.Next}
		text := string(t.Data)
		if form.pieces {
			e.From, e.Line = t.From, t.Line+1
		} else {
			text = t.String(within)
		}
		e.Text, from, within = &text, t.Next, !strings.HasSuffix(text, "\n")
		return send(e)
	}

	err := st.s.eachPiece(st.r.Context(), o, from, func(p job.Piece) error {
		if form.raw {
			return send(view.OutputEvent{From: p.At, Next: p.End(), Bytes: p.Data})
		}
		return sendText(reading.Add(p))
	})
	if err != nil || form.raw || run.Executing {
		return err
	}
	return sendText(reading.End())
}
