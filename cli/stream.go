package cli

import (
	"context"
	"io"
	"net/http"
	"net/url"
	"time"

	"go-crontab/internal/sse"
)

// streamQuiet is three times the longest silence of a healthy node.
const streamQuiet = 45 * time.Second

// follower returns a reader of an API stream that survives broken connections.
func (r *remote) follower(path string, query url.Values) *sse.Follower {
	h := r.http
	h.Timeout = 0 // a stream has no end
	return &sse.Follower{
		Open: func(ctx context.Context, last string) (*http.Response, error) {
			target := r.server + path
			if len(query) > 0 {
				target += "?" + query.Encode()
			}

			req, err := sse.Request(ctx, target, last, r.token)
			if err != nil {
				return nil, err
			}

			resp, err := h.Do(req)
			if err != nil {
				return nil, r.unreachable(http.MethodGet, err)
			}
			if resp.StatusCode >= 200 && resp.StatusCode <= 299 {
				return resp, nil
			}
			defer resp.Body.Close()

			body, err := io.ReadAll(io.LimitReader(resp.Body, maxAnswer))
			if err != nil {
				return nil, r.unreachable(http.MethodGet, err)
			}

			return nil, readProblem(resp, body)
		},
		Passes: mayPass, Quiet: streamQuiet, Pause: followEvery,
	}
}
