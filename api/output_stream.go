package api

import (
	"encoding/base64"
	"errors"
	"net/http"
	"strconv"
	"time"

	"go-crontab/job"
	"go-crontab/sql/read"
)

// outputLook is between looks at what a run has written, which its node writes down as often.
const outputLook = 500 * time.Millisecond

// outputEvent is a part of the output of a run.
type outputEvent struct {
	From  int64   `json:"from" doc:"The byte at which it begins."`
	Next  int64   `json:"next" doc:"The byte behind it."`
	Text  *string `json:"text,omitempty" doc:"What it says, without 'raw'."`
	Bytes string  `json:"bytes,omitempty" doc:"The bytes in base64, with 'raw'."`
}

// outputEnd is how a run ended.
type outputEnd struct {
	Outcome    job.Outcome `json:"outcome"`
	ReasonCode string      `json:"reason_code,omitempty"`
	Reason     string      `json:"reason,omitempty"`
	ExitCode   *int        `json:"exit_code,omitempty"`
	Signal     string      `json:"signal,omitempty"`
	Bytes      int64       `json:"bytes"`
	Truncated  bool        `json:"truncated"`
}

// streamOutput answers with what a run writes as it comes, and at last with how it ended. The id of each message is the
// byte behind it: whoever connects again, to whichever node, goes on there.
func (s *Server) streamOutput(w http.ResponseWriter, r *http.Request, raw bool, from int64) error {
	if last := r.Header.Get(lastEventID); last != "" {
		n, err := strconv.ParseInt(last, 10, 64)
		if err != nil || n < 0 {
			return invalidField(lastEventID, "%q is not a number of bytes from 0", cutShort(last))
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
		if err = st.idle(nil, outputLook); err != nil {
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
			pieces = nil // the database is away: it may be back at the next look
		}
	}
	return st.over(err)
}

// sendOutput sends what there is behind a byte, and how the run ended if it has. It returns the byte behind that.
func (st *stream) sendOutput(run *read.Run, pieces []job.Piece, raw bool, from int64) (int64, error) {
	var parts []outputEvent
	if raw {
		for _, p := range job.From(pieces, from) {
			parts = append(parts, outputEvent{From: p.At, Next: p.End(), Bytes: base64.StdEncoding.EncodeToString(p.Data)})
		}
	} else if text, next := outputText(run, pieces, from); next > from {
		parts = append(parts, outputEvent{From: from, Next: next, Text: &text})
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
	return from, st.send("end", strconv.FormatInt(from, 10), outputEnd{
		Outcome: run.Outcome, ReasonCode: string(run.Reason.Code), Reason: run.Reason.Text,
		ExitCode: run.ExitCode, Signal: run.Signal, Bytes: run.Output.Bytes, Truncated: run.Output.Bytes > run.Kept,
	})
}
