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

	"go-crontab/client"

	"github.com/google/uuid"
)

// once sends a request that must not be carried out twice. An idempotency key makes the server
// carry out the request once. So the request can be sent again when the response is lost.
func once[T any](
	ctx context.Context, r *remote, path string, query url.Values, body any,
) (v T, raw json.RawMessage, err error) {
	q := client.Request{Method: http.MethodPost, Path: path, Query: query, Body: body, Key: uuid.NewString()}
	var began time.Time // when a response was first lost
	for {
		if _, raw, err = r.send(ctx, q); err == nil {
			v, err = decode[T](r, path, raw)
			return v, raw, err
		}

		switch {
		case began.IsZero() && isLost(err) && ctx.Err() == nil:
			began = time.Now()
			r.notef("%v\nretrying; an idempotency key ensures that it is done only once\n", err)
		case began.IsZero(), !mayPass(err) && !isLost(err), time.Since(began) > followPatience:
			return v, nil, err
		}

		select {
		case <-ctx.Done():
			return v, nil, err
		case <-time.After(time.Second):
		}
	}
}

// isLost reports whether a request may have been carried out although there was no response.
func isLost(err error) bool {
	var (
		p    *apiProblem
		op   *net.OpError
		slow net.Error
	)

	switch {
	case errors.As(err, &p):
		return strings.HasSuffix(p.Type, ":unknown-outcome") || p.OfProxy()
	case errors.As(err, &op) && op.Op == "dial":
		return false
	}

	return errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF) || errors.Is(err, connectionReset) ||
		errors.Is(err, connectionAborted) || errors.Is(err, syscall.EPIPE) ||
		errors.As(err, &slow) && slow.Timeout()
}

// patience limits how long a node that does not answer is asked again. The node may be restarting,
// or another node may take over its address. A node that answers 503 is asked again without limit,
// because it may be waiting for MySQL.
type patience struct{ silent time.Time }

// lasts reports whether to ask again after err. A nil err is a success, and resets the patience.
func (p *patience) lasts(err error) bool {
	switch {
	case err == nil, isStatus(err, http.StatusServiceUnavailable) && !isLost(err):
		p.silent = time.Time{}
		return true
	case !mayPass(err) && !isLost(err):
		return false
	case p.silent.IsZero():
		p.silent = time.Now()
	}
	return time.Since(p.silent) <= followPatience
}
