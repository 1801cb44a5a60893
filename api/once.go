package api

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"time"

	"go-crontab/internal/auth"
	"go-crontab/job"
	"go-crontab/sql"
	"go-crontab/sql/trip"
)

// once carries out a request with an Idempotency-Key once, even if the client sends it repeatedly
// within a day. The key is written in the same transaction as the first change of the request, so
// both are committed or neither. The answer is kept, too. A repeated request gets this answer from
// any node.
//
// If the node dies after the change and before keeping the answer, a repeated request finds a key
// without an answer. Then the request is carried out again without the key. Most changes are
// idempotent, so this is safe. There are two exceptions. A repeated creation is answered with the
// object that was created. For runs of many jobs, the answer is kept in the transaction of the
// change itself.
//
// A refused request has changed nothing. Neither the request nor its key is stored, so the client
// may send it again.
func (s *Server) once(op *operation, h handler) handler {
	if op == nil || !op.once {
		return h
	}
	return func(w http.ResponseWriter, r *http.Request) error {
		key, err := idempotencyKey(r)
		switch {
		case err != nil:
			return err
		case key == "":
			return h(w, r)
		}

		body, err := readBody(r)
		if err != nil {
			return err
		}

		o := &job.Once{Key: key, Digest: digestOf(r, body), Kind: op.id}
		var sealed *sealer
		if op.sealed {
			if sealed, err = s.newSealer(r, o); err != nil {
				return err
			}
		}

		copyOf := func() *http.Request {
			r := r.Clone(r.Context())
			r.Body = io.NopCloser(bytes.NewReader(body))
			return r
		}

		replayed, err := s.replay(w, r, o, sealed, false)
		if replayed || err != nil {
			return err
		}

		// No answer is kept yet, so carry out the request, and keep its answer.
		kept := &keptAnswer{ResponseWriter: w}
		err = h(kept, copyOf().WithContext(job.WithOnce(r.Context(), o)))
		if err != nil && !o.Done {
			// An earlier request with the same key may have made the change. Then this request was
			// refused because the change was made already.
			replayed, replayErr := s.replay(w, copyOf(), o, sealed, true)
			switch {
			case replayed:
				return nil
			case replayErr != nil:
				return replayErr
			case errors.Is(err, job.ErrRepeated):
				return h(w, copyOf())
			}

			return err
		}

		if err == nil {
			s.keep(r.Context(), o, kept, sealed)
		}
		return err
	}
}

// digestOf identifies a request: its caller, method, path, query, precondition and body.
func digestOf(r *http.Request, body []byte) [32]byte {
	h := sha256.New()
	parts := []string{
		auth.Of(r.Context()).Key(), r.Method, r.URL.EscapedPath(), r.URL.RawQuery, r.Header.Get(ifMatch),
	}
	for _, part := range parts {
		fmt.Fprintf(h, "%d %s\n", len(part), part)
	}
	h.Write(body)
	return [32]byte(h.Sum(nil))
}

const (
	maxKept   = 1 << 20                // bytes of the largest answer that is kept
	replayFor = 3 * time.Second        // how long a repeated request waits for the original answer
	replayGap = 100 * time.Millisecond // between attempts to read that answer
	keepFor   = 5 * time.Second        // time limit for storing an answer
)

// replay gives the kept answer to a request, and reports whether there was an answer. It reports
// false if the request was never made, or if its answer is unknown. If made is set, the request was
// made, and replay waits for the answer.
func (s *Server) replay(w http.ResponseWriter, r *http.Request, o *job.Once, sealed *sealer, made bool) (bool, error) {
	for end := time.Now().Add(replayFor); ; {
		a, err := answerTo(s.cfg.DB.Reader(r.Context()), o.Key)
		switch {
		case errors.Is(err, sql.ErrNotFound):
			return false, nil
		case err != nil:
			return false, err
		case a.Digest != o.Digest:
			return false, job.ErrKeyReused
		case a.Status != 0 && sealed != nil:
			if a.Body, err = sealed.open(a.Body); err != nil {
				return false, lostToken()
			}
			return true, writeKept(w, &a)
		case a.Status != 0:
			return true, writeKept(w, &a)
		case !made:
			return false, nil // the change itself checks the key and reports it
		case time.Now().After(end) && a.Kind == createJobDoc.id:
			return s.replayCreation(w, r, a.JobID)
		case time.Now().After(end) && a.Kind == createCalendarDoc.id:
			return s.replayCalendar(w, r)
		case time.Now().After(end) && a.Kind == createTokenDoc.id:
			return false, lostToken()
		case time.Now().After(end):
			return false, nil
		}

		select {
		case <-r.Context().Done():
			return false, context.Cause(r.Context())
		case <-time.After(replayGap):
		}
	}
}

// replayCreation answers with the job that the request created.
func (s *Server) replayCreation(w http.ResponseWriter, r *http.Request, id int64) (bool, error) {
	j, err := s.jobByID(r.Context(), id)
	if err != nil {
		return false, err
	}
	return true, s.created(w, r, &j)
}

// replayCalendar answers with the calendar that the request created.
func (s *Server) replayCalendar(w http.ResponseWriter, r *http.Request) (bool, error) {
	body, err := readObject(r)
	if err != nil {
		return false, err
	}

	name := calendarFields(newFields(body)).Name
	c, err := trip.CalendarNamed(s.cfg.DB.Reader(r.Context()), name)
	if errors.Is(err, sql.ErrNotFound) {
		err = noCalendar(name)
	}
	if err != nil {
		return false, err
	}

	return true, showCalendar(w, true, &c)
}

// lostToken is the problem of a request for a token that was created, but whose text is lost.
func lostToken() error {
	return exists.problem(
		"An earlier request has created the token, but its text is lost. Revoke the token, and create "+
			"another one with a new %s.", keyHeader)
}

const replayedHeader = "Idempotency-Replayed"

// keptHeaders are the headers that are kept with an answer.
var keptHeaders = []string{"Content-Type", "Location", "ETag"}

func writeKept(w http.ResponseWriter, a *storedAnswer) error {
	var header map[string]string
	if err := json.Unmarshal([]byte(a.Header), &header); err != nil {
		return fmt.Errorf("kept answer: %w", err)
	}

	for name, value := range header {
		w.Header().Set(name, value)
	}

	w.Header().Set(replayedHeader, "true")
	w.WriteHeader(a.Status)
	w.Write(a.Body) // an error means that the client is gone
	return nil
}

// keep stores an answer. An error is not returned to the client, whose change is committed. keep
// continues even if the client disconnects.
func (s *Server) keep(ctx context.Context, o *job.Once, kept *keptAnswer, sealed *sealer) {
	if kept.status == 0 || kept.body.Len() > maxKept || o.Done && o.Answer != nil {
		return
	}

	header := map[string]string{}
	for _, name := range keptHeaders {
		if v := kept.Header().Get(name); v != "" {
			header[name] = v
		}
	}

	text, _ := json.Marshal(header) // marshalling texts cannot fail
	a := job.KeptAnswer{Status: kept.status, Header: string(text), Body: kept.body.Bytes()}
	if sealed != nil {
		a.Body = sealed.seal(a.Body)
	}

	bounded, cancel := context.WithTimeout(context.WithoutCancel(ctx), keepFor)
	defer cancel()
	if err := keepAnswer(bounded, s.cfg.DB.DB, o, a); err != nil {
		s.cfg.Log.Warn("cannot store the answer to a request with an Idempotency-Key", "error", err)
	}
}

// answerKnown makes a change keep its answer in the same transaction. The transaction calls v,
// which returns the body, to be encoded as JSON, and the path of the created object ("": none).
func answerKnown(r *http.Request, status int, v func() (body any, location string)) {
	o := job.OnceOf(r.Context())
	if o == nil {
		return
	}

	o.Answer = func() job.KeptAnswer {

		var body bytes.Buffer
		what, location := v()
		encode(&body, what)

		header := map[string]string{"Content-Type": "application/json"}
		if location != "" {
			header["Location"] = location
		}

		text, _ := json.Marshal(header) // marshalling texts cannot fail
		return job.KeptAnswer{Status: status, Header: string(text), Body: body.Bytes()}
	}
}

// keptAnswer records an answer, up to maxKept bytes.
type keptAnswer struct {
	http.ResponseWriter
	status int
	body   bytes.Buffer
}

func (k *keptAnswer) WriteHeader(status int) {
	k.status = status
	k.ResponseWriter.WriteHeader(status)
}

func (k *keptAnswer) Write(b []byte) (int, error) {
	if k.status == 0 {
		k.status = http.StatusOK
	}
	if k.body.Len() <= maxKept {
		k.body.Write(b)
	}
	return k.ResponseWriter.Write(b)
}

// Unwrap is used by http.ResponseController.
func (k *keptAnswer) Unwrap() http.ResponseWriter { return k.ResponseWriter }
