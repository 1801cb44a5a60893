package client

import (
	"bytes"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/url"
	"strings"
	"time"

	"go-crontab/api/view"
)

// dialing limits how long the client tries to connect to one of several servers. A machine that is
// off does not refuse connections, so the client would wait long.
const dialing = 5 * time.Second

// WithRootCAs trusts these certificate authorities instead of the system's. It has no effect
// together with [WithHTTP].
func WithRootCAs(roots *x509.CertPool) Option { return func(c *Client) { c.roots = roots } }

// transport returns the transport of the default HTTP client. nil means Go's own transport.
func (c *Client) transport() http.RoundTripper {
	if c.roots == nil && len(c.servers) == 1 {
		return nil
	}

	t := &http.Transport{Proxy: http.ProxyFromEnvironment, ForceAttemptHTTP2: true}
	if standard, is := http.DefaultTransport.(*http.Transport); is { // the program may have replaced it
		t = standard.Clone()
	}
	if c.roots != nil {
		t.TLSClientConfig = &tls.Config{RootCAs: c.roots, MinVersion: tls.VersionTLS12}
	}
	if len(c.servers) > 1 {
		t.DialContext = (&net.Dialer{Timeout: dialing}).DialContext
	}
	return t
}

// parseServers reads one or several URLs with commas between them.
func parseServers(text string) (servers []string, err error) {
	for _, one := range strings.Split(text, ",") {
		one = strings.TrimRight(strings.TrimSpace(one), "/")
		u, err := url.Parse(one)
		if err != nil || u.Host == "" || u.Scheme != "http" && u.Scheme != "https" {
			return nil, fmt.Errorf("server %q: want a URL such as http://127.0.0.1:8610", one)
		}
		servers = append(servers, u.String())
	}
	return servers, nil
}

// do sends a request to the server that answered last. If that server cannot carry out the request,
// do sends it to the others in turn. If no server answers, the error joins the errors of all
// servers.
func (c *Client) do(h *http.Client, req *http.Request) (*http.Response, error) {
	first := int(c.inUse.Load())
	var failed []error
	for tried := range c.servers {
		i := (first + tried) % len(c.servers)
		sent, err := c.addressed(req, c.servers[i], tried > 0)
		if err != nil {
			return nil, err
		}

		resp, err := h.Do(sent)
		if tried < len(c.servers)-1 && isForAnother(req, resp, err) {
			if err == nil {
				err = refusalOf(resp)
			}
			failed = append(failed, err)
			continue
		}

		if err == nil {
			c.inUse.Store(int32(i))
		} else if len(failed) > 0 {
			err = errors.Join(append(failed, err)...)
		}
		return resp, err
	}
	return nil, errors.New("the client has no server") // New refuses that
}

// refusalOf reads and closes an error response.
func refusalOf(resp *http.Response) error {
	defer resp.Body.Close()
	said, err := io.ReadAll(io.LimitReader(resp.Body, maxAnswer))
	if err != nil {
		return err
	}
	return readProblem(resp, said)
}

// addressed returns the request for a server. Requests are made for the first server.
func (c *Client) addressed(req *http.Request, server string, again bool) (*http.Request, error) {
	if again && req.GetBody != nil {
		body, err := req.GetBody()
		if err != nil {
			return nil, err
		}
		req.Body = body
	}
	if server == c.servers[0] {
		return req, nil
	}

	u, err := url.Parse(server + strings.TrimPrefix(req.URL.String(), c.servers[0]))
	if err != nil {
		return nil, err
	}

	other := req.Clone(req.Context())
	other.URL, other.Host = u, u.Host
	return other, nil
}

// isForAnother reports whether another server may be asked. It may if this server did not carry out
// the request, or if carrying it out again does no harm.
func isForAnother(req *http.Request, resp *http.Response, err error) bool {
	if req.Context().Err() != nil {
		return false
	}
	harmless := req.Method == http.MethodGet || req.Header.Get("Idempotency-Key") != ""
	if err != nil {
		return harmless || isUnsent(err)
	}

	switch resp.StatusCode {
	case http.StatusServiceUnavailable:
		said, err := io.ReadAll(io.LimitReader(resp.Body, maxAnswer))
		resp.Body.Close()
		resp.Body = io.NopCloser(bytes.NewReader(said))
		// A proxy before the server may answer 503 although it has passed the request on.
		return harmless || err == nil && bytes.Contains(said, []byte(view.ProblemType)) &&
			!bytes.Contains(said, []byte(view.ProblemType+"unknown-outcome"))
	case http.StatusBadGateway, http.StatusGatewayTimeout: // of a proxy
		return harmless
	}
	return false
}

// isUnsent reports whether an error happened before the request was sent.
func isUnsent(err error) bool {
	var (
		op   *net.OpError
		cert *tls.CertificateVerificationError
	)
	return errors.As(err, &op) && op.Op == "dial" || errors.As(err, &cert)
}
