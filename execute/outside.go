package execute

import (
	"context"
	"fmt"
	"net"
	"net/http"
	"time"

	"go-crontab/job"
)

// Dial connects to host:port.
type Dial func(ctx context.Context, network, addr string) (net.Conn, error)

// NewDial returns a function for the connections of a node's other requests. It connects only to
// addresses that HTTP jobs may call. See HTTPConfig.
func NewDial(cfg HTTPConfig) (Dial, error) {
	g, err := newGuard(cfg)
	if err != nil {
		return nil, err
	}
	return g.dial, nil
}

func newGuard(cfg HTTPConfig) (*guard, error) {
	g := &guard{machine: thisMachine, resolver: cfg.Resolver}
	for _, text := range cfg.Allow {
		a, err := parseAllowance(text)
		if err != nil {
			return nil, fmt.Errorf("allow HTTP to %w", err)
		}
		g.allow = append(g.allow, a)
	}
	return g, nil
}

// Mask replaces the values of secrets in a text by stars, in all forms that are also hidden in the output of jobs.
func Mask(text string, values map[job.Secret]string) string { return newMasker(values).text(text) }

// Sign signs a request like an HTTP job's. It returns the name and the value of a header.
func Sign(secret []byte, at time.Time, key string, req *http.Request, body string) (header, value string) {
	return signatureHeader, signature(secret, Signed{
		At: at, ID: key, Method: req.Method, Host: req.URL.Host, Target: req.URL.RequestURI(), Body: body,
	})
}
