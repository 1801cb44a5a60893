package client

import (
	"bytes"
	"context"
	"crypto/x509"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"strconv"
	"sync/atomic"
	"time"

	"go-crontab/api/view"
)

// Client calls the API of a cluster. It uses one node at a time, and changes to another node when
// that node cannot answer. It is safe for concurrent use.
type Client struct {
	servers []string
	inUse   atomic.Int32 // index of the server that answered last
	token   string
	http    *http.Client
	timeout *time.Duration // replaces the timeout of http
	roots   *x509.CertPool // of the default HTTP client; nil: the system's authorities
}

// Option changes how a client works.
type Option func(*Client)

// WithToken sends an API token with each request.
func WithToken(token string) Option { return func(c *Client) { c.token = token } }

// WithTimeout limits the time of each request, except streams. The default is a minute.
func WithTimeout(d time.Duration) Option { return func(c *Client) { c.timeout = &d } }

// WithHTTP replaces the default HTTP client, whose timeout is a minute.
func WithHTTP(h *http.Client) Option { return func(c *Client) { c.http = h } }

// timeout is longer than a change through the API takes while MySQL fails over.
const timeout = time.Minute

// New makes a client of a cluster. It does not connect. server is the URL of a node, such as
// http://127.0.0.1:8610. It may also list the URLs of several nodes with commas between them; the
// client tries them in turn. A change that a node may have carried out is sent to another node only
// if it has a key.
func New(server string, options ...Option) (*Client, error) {
	servers, err := parseServers(server)
	if err != nil {
		return nil, err
	}

	own := &http.Client{
		Timeout: timeout,
		// If a redirect were followed, a change would arrive as a GET and look successful.
		CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
	}

	c := &Client{servers: servers, http: own}
	for _, o := range options {
		o(c)
	}
	if c.http == own {
		own.Transport = c.transport()
	}
	if c.timeout != nil {
		h := *c.http // the caller's client stays unchanged
		h.Timeout = *c.timeout
		c.http = &h
	}

	return c, nil
}

// Problem is an error response of the API (RFC 9457). A Type never changes its meaning. Errors has
// one entry, with a code, for each invalid field.
type Problem struct {
	view.Problem
	Foreign string // status of an answer that no go-crontab node sent; then Type and Detail are empty
	Server  string // host and port of the server that answered
}

// OfProxy reports whether the answer came from a proxy that has lost the node behind it, or has
// none. The node may have carried out the request.
func (p *Problem) OfProxy() bool {
	return p.Foreign != "" && (p.Status == http.StatusBadGateway || p.Status == http.StatusServiceUnavailable ||
		p.Status == http.StatusGatewayTimeout)
}

// IsNotFound reports whether an error means that the object does not exist.
func IsNotFound(err error) bool { return hasStatus(err, http.StatusNotFound) }

// IsExists reports whether an error means that the name is taken.
func IsExists(err error) bool {
	var p *Problem
	return errors.As(err, &p) && p.IsType("exists")
}

// IsAway reports whether an error means that the node cannot answer now. Nothing was changed.
// Another node may answer, or the same node a moment later.
func IsAway(err error) bool { return hasStatus(err, http.StatusServiceUnavailable) && !IsUnknown(err) }

// IsUnknown reports whether an error means that nobody knows whether a change was made.
func IsUnknown(err error) bool {
	var p *Problem
	return errors.As(err, &p) && p.IsType("unknown-outcome")
}

func hasStatus(err error, status int) bool {
	var p *Problem
	return errors.As(err, &p) && p.Status == status
}

// maxAnswer bounds the response body, in bytes.
const maxAnswer = 64 << 20

// Request is a request of the API. Package view has the types of the answers.
type Request struct {
	Method string
	Path   string // such as /api/v1/jobs
	Query  url.Values
	Body   any    // sent as JSON unless nil; a [Document] is sent unchanged
	Key    string // Idempotency-Key: requests with the same key are carried out once
	Match  string // If-Match: the version that the object must have; otherwise the answer is 412
}

// Document is a request body that is sent unchanged.
type Document struct {
	Media string // media type
	Data  []byte
}

// Do makes a request for which there is no method. It returns the body and the header of a
// successful response. Any other response is a [*Problem].
//
// If the server refuses a request because there are too many, Do waits as long as the server asks
// for, and sends the request again, in up to ten attempts. That is safe, because the request was
// not carried out. In all other cases a request is sent again only to another server, see New.
func (c *Client) Do(ctx context.Context, r Request) ([]byte, http.Header, error) {
	var payload io.Reader
	media := "application/json"
	if d, ok := r.Body.(Document); ok {
		payload, media = bytes.NewReader(d.Data), d.Media
	} else if r.Body != nil {
		b, err := json.Marshal(r.Body)
		if err != nil {
			return nil, nil, err
		}
		payload = bytes.NewReader(b)
	}

	req, err := http.NewRequestWithContext(ctx, r.Method, c.target(r.Path, r.Query), payload)
	if err != nil {
		return nil, nil, err
	}

	req.Header.Set("Accept", "application/json, application/problem+json, application/octet-stream, text/plain")
	for name, value := range map[string]string{"Idempotency-Key": r.Key, "If-Match": r.Match} {
		if value != "" {
			req.Header.Set(name, value)
		}
	}
	if r.Body != nil {
		req.Header.Set("Content-Type", media)
	}
	if c.token != "" {
		req.Header.Set("Authorization", "Bearer "+c.token)
	}

	resp, err := c.paced(req)
	if err != nil {
		return nil, nil, err
	}
	defer resp.Body.Close()

	answer, err := io.ReadAll(io.LimitReader(resp.Body, maxAnswer))
	if err != nil {
		return nil, nil, fmt.Errorf("read the response of %s: %w", resp.Request.URL.Host, err)
	}

	if resp.StatusCode < 200 || resp.StatusCode > 299 {
		return nil, nil, readProblem(resp, answer)
	}

	return answer, resp.Header, nil
}

func (c *Client) target(path string, query url.Values) string {
	if len(query) == 0 {
		return c.servers[0] + path
	}
	return c.servers[0] + path + "?" + query.Encode()
}

// maxPaced limits how often a request is sent that the server refuses because there are too many.
const maxPaced = 10

// paced sends a request. If the server refuses it because there are too many, paced waits and sends
// it again. If an app is at one of its limits, paced returns that problem at once, because the
// limit may last.
func (c *Client) paced(req *http.Request) (*http.Response, error) {
	for try := 1; ; try++ {
		resp, err := c.do(c.http, req)
		if err != nil || resp.StatusCode != http.StatusTooManyRequests || try == maxPaced {
			return resp, err
		}

		said, err := io.ReadAll(io.LimitReader(resp.Body, maxAnswer))
		resp.Body.Close()
		resp.Body = io.NopCloser(bytes.NewReader(said))
		if err != nil || bytes.Contains(said, []byte(view.ProblemType+"app-limit")) {
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

func readProblem(resp *http.Response, body []byte) error {
	p := &Problem{}
	if err := json.Unmarshal(body, &p.Problem); err != nil || p.Title == "" && p.Detail == "" {
		p = &Problem{Foreign: resp.Status}
		p.Title = "the response is " + resp.Status + ", not that of a go-crontab node"
	}
	p.Status = resp.StatusCode // the status line is authoritative
	if resp.Request != nil {
		p.Server = resp.Request.URL.Host
	}
	return p
}

// ask makes a request and decodes the response.
func ask[T any](ctx context.Context, c *Client, r Request) (*T, error) {
	b, _, err := c.Do(ctx, r)
	if err != nil {
		return nil, err
	}
	v := new(T)
	if err := json.Unmarshal(b, v); err != nil {
		return nil, fmt.Errorf("%s %s: cannot read the response: %w", r.Method, r.Path, err)
	}
	return v, nil
}

// pageSize is the most items that the API returns in one page.
const pageSize = "200"

// list yields the items of a list page by page. If a request fails, it yields the error and stops.
func list[T any](ctx context.Context, c *Client, path string, query url.Values) func(yield func(*T, error) bool) {
	return func(yield func(*T, error) bool) {
		q := url.Values{"limit": {pageSize}}
		for name, v := range query {
			q[name] = v
		}

		for {
			p, err := ask[view.Page[*T]](ctx, c, Request{Method: http.MethodGet, Path: path, Query: q})
			if err != nil {
				yield(nil, err)
				return
			}

			for _, item := range p.Items {
				if !yield(item, nil) {
					return
				}
			}

			if p.Next == "" {
				return
			}

			q.Set("cursor", p.Next)
		}
	}
}

// put adds a query parameter. If the value is empty, it adds none.
func put(q url.Values, name, value string) {
	if value != "" {
		q.Set(name, value)
	}
}

func putTime(q url.Values, name string, t time.Time) {
	if !t.IsZero() {
		q.Set(name, t.Format(time.RFC3339Nano))
	}
}
