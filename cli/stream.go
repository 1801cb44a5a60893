package cli

import (
	"context"
	"net/http"
	"net/url"

	"go-crontab/internal/sse"
)

// follower returns a reader of an API stream. The reader reconnects when the connection breaks.
func (r *remote) follower(path string, query url.Values) *sse.Follower {
	f := r.api.Stream(path, query)
	open := f.Open
	f.Open = func(ctx context.Context, last string) (*http.Response, error) {
		resp, err := open(ctx, last)
		return resp, r.explain(http.MethodGet, err)
	}

	f.Passes, f.Patience, f.Pause = mayPass, 0, followEvery
	return f
}
