package client

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"strings"
	"time"

	"go-crontab/job"
)

// Client calls the API of a cluster through a single node. It is safe for concurrent use.
type Client struct {
	server string
	token  string
	http   *http.Client
}

// Option changes how a client works.
type Option func(*Client)

// WithToken sends an API token with each request.
func WithToken(token string) Option { return func(c *Client) { c.token = token } }

// WithHTTP replaces the default HTTP client, whose timeout is a minute.
func WithHTTP(h *http.Client) Option { return func(c *Client) { c.http = h } }

// timeout is longer than the API needs for a change while MySQL fails over.
const timeout = time.Minute

// New makes a client of a node's API, such as http://127.0.0.1:8610. It does not connect.
func New(server string, options ...Option) (*Client, error) {
	u, err := url.Parse(server)
	if err != nil || u.Host == "" || u.Scheme != "http" && u.Scheme != "https" {
		return nil, fmt.Errorf("server %q: want a URL such as http://127.0.0.1:8610", server)
	}

	c := &Client{server: strings.TrimRight(server, "/"), http: &http.Client{
		Timeout: timeout,
		// A redirected change would arrive as a GET and look successful.
		CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
	}}

	for _, o := range options {
		o(c)
	}
	return c, nil
}

// Problem is an error response of the API (RFC 9457).
type Problem struct {
	Type      string        `json:"type"` // urn:go-crontab:problem:…; never changes
	Title     string        `json:"title"`
	Status    int           `json:"status"`
	Detail    string        `json:"detail"`
	Errors    []job.Problem `json:"errors"` // one for each invalid field
	RequestID string        `json:"request_id"`
}

func (p *Problem) Error() string {
	if p.Detail == "" {
		return p.Title
	}
	return p.Title + ": " + p.Detail
}

// IsType reports whether the problem has the type with this name, such as "exists".
func (p *Problem) IsType(name string) bool { return strings.HasSuffix(p.Type, ":problem:"+name) }

// IsNotFound reports whether an error means that the object does not exist.
func IsNotFound(err error) bool { return hasStatus(err, http.StatusNotFound) }

// IsExists reports whether an error means that the name is taken.
func IsExists(err error) bool {
	var p *Problem
	return errors.As(err, &p) && p.IsType("exists")
}

// IsAway reports whether an error means that the node cannot answer now. Nothing was changed.
// Another node may answer, and so may the same node a moment later.
func IsAway(err error) bool { return hasStatus(err, http.StatusServiceUnavailable) && !IsUnknown(err) }

// IsUnknown reports whether an error means that a change may or may not have been made.
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

type request struct {
	method, path string
	query        url.Values
	body         any    // sent as JSON unless nil
	key          string // Idempotency-Key
}

// send makes a request and returns the body and the header of a successful response.
func (c *Client) send(ctx context.Context, r request) ([]byte, http.Header, error) {
	var payload io.Reader
	if r.body != nil {
		b, err := json.Marshal(r.body)
		if err != nil {
			return nil, nil, err
		}
		payload = bytes.NewReader(b)
	}

	target := c.server + r.path
	if len(r.query) > 0 {
		target += "?" + r.query.Encode()
	}

	req, err := http.NewRequestWithContext(ctx, r.method, target, payload)
	if err != nil {
		return nil, nil, err
	}

	req.Header.Set("Accept", "application/json, application/problem+json, application/octet-stream")
	if r.body != nil {
		req.Header.Set("Content-Type", "application/json")
	}
	if r.key != "" {
		req.Header.Set("Idempotency-Key", r.key)
	}
	if c.token != "" {
		req.Header.Set("Authorization", "Bearer "+c.token)
	}

	resp, err := c.http.Do(req)
	if err != nil {
		return nil, nil, err
	}
	defer resp.Body.Close()

	answer, err := io.ReadAll(io.LimitReader(resp.Body, maxAnswer))
	if err != nil {
		return nil, nil, fmt.Errorf("%s %s: read the response: %w", r.method, r.path, err)
	}

	if resp.StatusCode < 200 || resp.StatusCode > 299 {
		return nil, nil, readProblem(resp, answer)
	}

	return answer, resp.Header, nil
}

func readProblem(resp *http.Response, body []byte) error {
	p := &Problem{}
	if err := json.Unmarshal(body, p); err != nil || p.Title == "" {
		return &Problem{
			Status: resp.StatusCode, Title: "the response is " + resp.Status + ", not that of a go-crontab node",
		}
	}
	p.Status = resp.StatusCode // the status line is authoritative
	return p
}

// ask makes a request and decodes the response.
func ask[T any](ctx context.Context, c *Client, r request) (*T, error) {
	b, _, err := c.send(ctx, r)
	if err != nil {
		return nil, err
	}
	v := new(T)
	if err := json.Unmarshal(b, v); err != nil {
		return nil, fmt.Errorf("%s %s: cannot read the response: %w", r.method, r.path, err)
	}
	return v, nil
}

// page is a response to a list request.
type page[T any] struct {
	Items []T    `json:"items"`
	Next  string `json:"next"`
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
			p, err := ask[page[*T]](ctx, c, request{method: http.MethodGet, path: path, query: q})
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

// put adds a query parameter that is not empty.
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
