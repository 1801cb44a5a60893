package cli

import (
	"bytes"
	"context"
	"crypto/tls"
	"crypto/x509"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"net"
	"net/http"
	"net/url"
	"strconv"
	"strings"
	"time"

	"github.com/spf13/cobra"
)

// defaultServer is the address of `dev` and of a `serve` without settings.
const defaultServer = "http://127.0.0.1:8610"

// remote calls the public API of a cluster.
type remote struct {
	*console
	output
	server string
	token  string // empty: none
	http   http.Client
}

// newRemote adds the flags that all API commands share.
func newRemote(c *console, cmd *cobra.Command, formats ...string) *remote {
	r := &remote{
		console: c, http: http.Client{
			Timeout:       time.Minute,
			CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
		},
	}

	r.output.flags(cmd, formats...)
	cmd.Flags().StringVar(&r.server, "server", defaultServer, "URL of a node (GOCRONTAB_SERVER)")
	cmd.Flags().StringVar(&r.token, "token", "",
		"API token; ps shows it to all users, so prefer GOCRONTAB_TOKEN or GOCRONTAB_TOKEN_FILE (default that of dev)")
	cmd.Flags().String("context", "", "named cluster to use (GOCRONTAB_CONTEXT; see "+program()+" context)")
	_ = cmd.RegisterFlagCompletionFunc("context", completeContexts)
	cmd.PreRunE = func(cmd *cobra.Command, _ []string) error { return r.settle(cmd) }
	return r
}

// settle determines the base URL and the token from flags, variables and contexts.
func (r *remote) settle(cmd *cobra.Command) error {
	if err := checkClientVariables(); err != nil {
		return err
	}
	if err := fromContext(cmd.Flags()); err != nil {
		return err
	}
	if err := takeEnv(cmd.Flags(), []string{"server"}, clientSecrets); err != nil {
		return err
	}

	r.server, _ = cmd.Flags().GetString("server")
	r.token, _ = cmd.Flags().GetString("token")
	r.token = strings.TrimSpace(r.token)
	if strings.HasPrefix(r.server, ":") {
		r.server = "127.0.0.1" + r.server
	}
	if !strings.Contains(r.server, "://") {
		r.server = "http://" + r.server
	}

	r.server = strings.TrimRight(r.server, "/")
	if u, err := url.Parse(r.server); err != nil || u.Host == "" || u.Scheme != "http" && u.Scheme != "https" {
		return usageError("server %q: want a URL such as %s", r.server, defaultServer)
	}
	if r.token == "" {
		r.token = knownToken(r.server)
	}

	return nil
}

// maxAnswer bounds the response body, in bytes. The output of a run has at most about ten
// kilobytes.
const maxAnswer = 64 << 20

// call sends a request and returns the response body, or a *apiProblem.
func (r *remote) call(ctx context.Context, method, path string, query url.Values, body any) ([]byte, error) {
	_, answer, err := r.send(ctx, method, path, query, body)
	return answer, err
}

// send is like call, and also returns the header.
func (r *remote) send(
	ctx context.Context, method, path string, query url.Values, body any,
) (http.Header, []byte, error) {
	return r.sendWith(ctx, nil, method, path, query, body)
}

// sendWith is like send, with additional request headers.
func (r *remote) sendWith(
	ctx context.Context, header http.Header, method, path string, query url.Values, body any,
) (http.Header, []byte, error) {
	var payload io.Reader
	media := "application/json"
	if d, ok := body.(document); ok {
		payload, media = bytes.NewReader(d.data), d.media
	} else if body != nil {
		b, err := json.Marshal(body)
		if err != nil {
			return nil, nil, err
		}
		payload = bytes.NewReader(b)
	}

	target := r.server + path
	if len(query) > 0 {
		target += "?" + query.Encode()
	}

	req, err := http.NewRequestWithContext(ctx, method, target, payload)
	if err != nil {
		return nil, nil, err
	}

	maps.Copy(req.Header, header)
	if body != nil {
		req.Header.Set("Content-Type", media)
	}

	req.Header.Set("Accept", "application/json, application/problem+json, text/plain")
	if r.token != "" {
		req.Header.Set("Authorization", "Bearer "+r.token)
	}

	resp, err := r.paced(req)
	if err != nil {
		return nil, nil, r.unreachable(method, err)
	}
	defer resp.Body.Close()

	answer, err := io.ReadAll(io.LimitReader(resp.Body, maxAnswer))
	if err != nil {
		return nil, nil, fmt.Errorf("read the response of %s: %w", r.server, err)
	}

	if resp.StatusCode < 200 || resp.StatusCode > 299 {
		return nil, nil, readProblem(resp, answer)
	}

	return resp.Header, answer, nil
}

// maxPaced bounds the attempts of a request that is rate limited.
const maxPaced = 10

// limitProblem is the problem type when an app is at a limit. That may last, so the command reports
// it immediately.
const limitProblem = "urn:go-crontab:problem:app-limit"

// paced sends a request, and repeats it after a pause while it is rate limited. A rate-limited
// request was not carried out.
func (r *remote) paced(req *http.Request) (*http.Response, error) {
	for try := 1; ; try++ {
		resp, err := r.http.Do(req)
		if err != nil || resp.StatusCode != http.StatusTooManyRequests || try == maxPaced {
			return resp, err
		}

		said, err := io.ReadAll(io.LimitReader(resp.Body, maxAnswer))
		resp.Body.Close()
		resp.Body = io.NopCloser(bytes.NewReader(said))
		if err != nil || bytes.Contains(said, []byte(limitProblem)) {
			return resp, err
		}

		after, err := strconv.Atoi(resp.Header.Get("Retry-After"))
		if err != nil || after < 1 || after > 60 {
			after = 1
		}

		if req.GetBody != nil {
			if req.Body, err = req.GetBody(); err != nil {
				return nil, err
			}
		}

		select {
		case <-req.Context().Done():
			return nil, context.Cause(req.Context())
		case <-time.After(time.Duration(after) * time.Second):
		}
	}
}

// unreachable explains in plain words why there was no response.
func (r *remote) unreachable(method string, err error) error {
	var u *url.Error
	if errors.As(err, &u) {
		err = u.Err // drop the method and the address
	}

	var (
		dns    *net.DNSError
		ca     x509.UnknownAuthorityError
		broken *tls.CertificateVerificationError
	)
	switch {
	case errors.Is(err, connectionRefused):
		err = fmt.Errorf("no node answers at %s: %w", r.server, connectionRefused)
	case errors.As(err, &dns):
		err = fmt.Errorf("no node answers at %s: the host name %s is unknown", r.server, dns.Name)
	case errors.Is(err, http.ErrSchemeMismatch):
		return withHint(fmt.Errorf("%s speaks plain HTTP, not TLS", r.server),
			"to use HTTP:  export GOCRONTAB_SERVER=http%s",
			strings.TrimPrefix(r.server, "https"))
	case errors.As(err, &ca):
		return withHint(fmt.Errorf("%s: its certificate is signed by an unknown authority", r.server),
			"to trust it:  export SSL_CERT_FILE=CA.pem (on Linux), or add the authority to the system's certificates")
	case errors.As(err, &broken):
		return fmt.Errorf("%s: its certificate is not valid: %w", r.server, broken.Err)
	case isLost(err) && method != http.MethodGet:
		return fmt.Errorf("%s did not answer: %w; it is unknown whether the request was carried out", r.server, err)
	case isLost(err):
		return fmt.Errorf("%s did not answer: %w", r.server, err)
	default:
		err = fmt.Errorf("no node answers at %s: %w", r.server, err)
	}

	return withHint(err,
		"to start a trial cluster:  %s dev\nto use another node:       export GOCRONTAB_SERVER=http://HOST:8610",
		program())
}

// get reads an object, decoded and raw.
func get[T any](ctx context.Context, r *remote, path string, query url.Values) (v T, raw json.RawMessage, err error) {
	return ask[T](ctx, r, http.MethodGet, path, query, nil)
}

// ask sends a request and returns the object in the response, decoded and raw.
func ask[T any](
	ctx context.Context, r *remote, method, path string, query url.Values, body any,
) (v T, raw json.RawMessage, err error) {
	if raw, err = r.call(ctx, method, path, query, body); err != nil {
		return v, nil, err
	}
	v, err = decode[T](r, path, raw)
	return v, raw, err
}

// decode parses a response.
func decode[T any](r *remote, path string, raw []byte) (v T, err error) {
	if err := json.Unmarshal(raw, &v); err != nil {
		return v, fmt.Errorf("cannot read the response of %s: %w", r.server+path, err)
	}
	return v, nil
}

// page is a page of a list. As raw it is also the -o json output of the whole list.
type page[T any] struct {
	Items []T    `json:"items"`
	Next  string `json:"next,omitempty"`
}

const maxPage = 200 // the most that the API returns at once

// list reads a list to its end, or its first limit items unless limit is 0. It explains an empty
// list if a filter names an app or node that does not exist.
func list[T any](
	ctx context.Context, r *remote, path string, query url.Values, limit int,
) (items []T, raw page[json.RawMessage], err error) {
	items, raw, err = listQuietly[T](ctx, r, path, query, limit)
	if err == nil && len(items) == 0 {
		r.noteUnknown(ctx, query)
	}
	return items, raw, err
}

// listQuietly is list without that explanation.
func listQuietly[T any](
	ctx context.Context, r *remote, path string, query url.Values, limit int,
) (items []T, raw page[json.RawMessage], err error) {
	raw.Items = []json.RawMessage{}
	q := url.Values{}
	maps.Copy(q, query)

	for {
		ask := maxPage
		if limit > 0 {
			ask = min(ask, limit-len(items))
		}

		q.Set("limit", fmt.Sprint(ask))
		p, _, err := get[page[json.RawMessage]](ctx, r, path, q)
		if err != nil {
			return nil, raw, err
		}

		for _, item := range p.Items {
			var v T
			if err := json.Unmarshal(item, &v); err != nil {
				return nil, raw, fmt.Errorf("cannot read the response of %s: %w", r.server+path, err)
			}
			items = append(items, v)
		}

		raw.Items, raw.Next = append(raw.Items, p.Items...), p.Next
		if p.Next == "" || limit > 0 && len(items) >= limit {
			return items, raw, nil
		}

		q.Set("cursor", p.Next)
	}
}

// table prints a table in the width of the terminal.
func (r *remote) table(t *table) error {
	return t.print(r.out, terminalWidth(r.out), colourful(r.out))
}
