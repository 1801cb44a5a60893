package cli

import (
	"context"
	"encoding/json"
	"errors"
	"io"
	"net"
	"net/http"
	"net/url"
	"strings"
	"syscall"
	"time"

	"github.com/google/uuid"
)

// once is ask for what must not be done twice. The request has a key under which it is carried out once, however often it is
// sent; so it is sent again when its answer is lost.
func once[T any](ctx context.Context, r *remote, path string, query url.Values, body any) (v T, raw json.RawMessage, err error) {
	header := http.Header{"Idempotency-Key": {uuid.NewString()}}
	var began time.Time // when an answer was lost first
	for {
		if _, raw, err = r.sendWith(ctx, header, http.MethodPost, path, query, body); err == nil {
			v, err = decode[T](r, path, raw)
			return v, raw, err
		}
		switch {
		case began.IsZero() && isLost(err):
			began = time.Now()
			r.notef("%v\nasking again, under the same key: it is done once\n", err)
		case began.IsZero(), !passing(err) && !isLost(err), time.Since(began) > followPatience:
			return v, nil, err
		}
		select {
		case <-ctx.Done():
			return v, nil, err
		case <-time.After(time.Second):
		}
	}
}

// isLost tells whether a request may have been carried out although it was not answered.
func isLost(err error) bool {
	var (
		p    *apiProblem
		op   *net.OpError
		slow net.Error
	)
	switch {
	case errors.As(err, &p):
		return strings.HasSuffix(p.Type, ":unknown-outcome") || p.Status == http.StatusBadGateway || p.Status == http.StatusGatewayTimeout // those are a proxy's
	case errors.As(err, &op) && op.Op == "dial":
		return false
	}
	return errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF) || errors.Is(err, connectionReset) || errors.Is(err, connectionAborted) || errors.Is(err, syscall.EPIPE) ||
		errors.As(err, &slow) && slow.Timeout()
}

// patience is for how long a node that does not answer is asked again: it may be restarted, or another one behind the same address
// takes over. One that waits for MySQL is waited for as long as that takes.
type patience struct{ silent time.Time }

// lasts tells whether to ask once more behind an error, or its absence.
func (p *patience) lasts(err error) bool {
	switch {
	case err == nil, isStatus(err, http.StatusServiceUnavailable):
		p.silent = time.Time{}
		return true
	case !passing(err) && !isLost(err):
		return false
	case p.silent.IsZero():
		p.silent = time.Now()
	}
	return time.Since(p.silent) <= followPatience
}
