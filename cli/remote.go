package cli

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"net"
	"net/http"
	"net/url"
	"strings"
	"time"

	"go-crontab/api/view"
	"go-crontab/client"

	"github.com/spf13/cobra"
)

// defaultServer is the address of `dev`, and of `serve` with its default settings.
const defaultServer = "http://127.0.0.1:8610"

// remote calls the public API of a cluster.
type remote struct {
	*console
	output
	server  string         // URL of a node, or of several with commas between them
	token   string         // empty: none
	context string         // of --context
	roots   *x509.CertPool // nil: the system's authorities
	api     *client.Client
}

// newRemote adds the flags that all API commands share.
func newRemote(c *console, cmd *cobra.Command, formats ...string) *remote {
	r := newConnection(c, cmd)
	r.output.flags(cmd, formats...)
	return r
}

// newConnection is like newRemote, for a command without an output format.
func newConnection(c *console, cmd *cobra.Command) *remote {
	r := &remote{console: c}
	cmd.Flags().StringVar(&r.server, "server", defaultServer,
		"URL of a node, or of several, separated by commas, to use one that answers (GOCRONTAB_SERVER)")
	cmd.Flags().StringVar(&r.token, "token", "",
		"API token; ps shows it to all users, so prefer GOCRONTAB_TOKEN or GOCRONTAB_TOKEN_FILE (default that of dev)")
	cmd.Flags().String("ca-cert", "",
		"PEM file with the authorities to trust instead of the system's (GOCRONTAB_CA_CERT)")
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

	secrets := clientSecrets
	if cmd.Flags().Changed("context") {
		r.context, _ = cmd.Flags().GetString("context")
		secrets = nil // see fromContext
	}
	if err := takeEnv(cmd.Flags(), []string{"server", "ca-cert"}, secrets); err != nil {
		return err
	}

	r.server, _ = cmd.Flags().GetString("server")
	r.server = normalServers(r.server)
	if err := checkServers(r.server); err != nil {
		return err
	}
	r.token, _ = cmd.Flags().GetString("token")
	r.token = strings.TrimSpace(r.token)
	if r.token == "" {
		r.token = tokenOfDev(r.server)
	}

	if file, _ := cmd.Flags().GetString("ca-cert"); file != "" {
		var err error
		if r.roots, err = readAuthorities(file); err != nil {
			return err
		}
	}

	if err := r.connect(time.Minute); err != nil {
		return usageError("%w", err)
	}
	return nil
}

// connect makes the client of the server.
func (r *remote) connect(timeout time.Duration) (err error) {
	r.api, err = client.New(r.server, client.WithToken(r.token), client.WithTimeout(timeout),
		client.WithRootCAs(r.roots))
	return err
}

// call sends a request and returns the response body, or a *apiProblem.
func (r *remote) call(ctx context.Context, method, path string, query url.Values, body any) ([]byte, error) {
	_, answer, err := r.send(ctx, client.Request{Method: method, Path: path, Query: query, Body: body})
	return answer, err
}

// send is like call, and also returns the header.
func (r *remote) send(ctx context.Context, q client.Request) (http.Header, []byte, error) {
	answer, header, err := r.api.Do(ctx, q)
	return header, answer, r.explain(q.Method, err)
}

// explain converts an error of the client to an error for people with an exit code.
func (r *remote) explain(method string, err error) error {
	var (
		p *client.Problem
		u *url.Error
	)

	if several, is := err.(interface{ Unwrap() []error }); is { // one for each server
		var all []error
		for _, err := range several.Unwrap() {
			all = append(all, r.explain(method, err))
		}
		return errors.Join(all...)
	}

	switch {
	case errors.As(err, &p):
		return r.refused(method, p)
	case errors.As(err, &u):
		return r.unreachable(method, r.failedAt(u.URL), u.Err)
	}
	return err
}

// unreachable explains in plain words why a server sent no response.
func (r *remote) unreachable(method, server string, err error) error {
	var (
		dns    *net.DNSError
		ca     x509.UnknownAuthorityError
		broken *tls.CertificateVerificationError
	)
	switch {
	case errors.Is(err, connectionRefused):
		err = fmt.Errorf("no node answers at %s: %w", server, connectionRefused)
	case errors.As(err, &dns):
		err = fmt.Errorf("no node answers at %s: the host name %s is unknown", server, dns.Name)
	case errors.Is(err, http.ErrSchemeMismatch):
		return withHint(fmt.Errorf("%s speaks plain HTTP, not TLS", server),
			"to use HTTP:  export GOCRONTAB_SERVER=http%s",
			strings.TrimPrefix(server, "https"))
	case errors.As(err, &ca):
		return withHint(fmt.Errorf("%s: its certificate is signed by an unknown authority", server),
			"to trust the authority:  export GOCRONTAB_CA_CERT=CA.pem, or --ca-cert CA.pem\n"+
				"in a context:            %s context add NAME --ca-cert CA.pem", program())
	case errors.As(err, &broken):
		return fmt.Errorf("%s: its certificate is not valid: %w", server, broken.Err)
	case isLost(err) && method != http.MethodGet:
		return fmt.Errorf("%s did not answer: %w; it is unknown whether the request was carried out", server, err)
	case isLost(err):
		return fmt.Errorf("%s did not answer: %w", server, err)
	default:
		err = fmt.Errorf("no node answers at %s: %w", server, err)
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

const maxPage = 200 // the most that the API returns at once

// list reads the first limit items of a list, or the whole list if limit is 0. If the list is empty
// because a filter names an app or node that does not exist, it prints a note.
func list[T any](
	ctx context.Context, r *remote, path string, query url.Values, limit int,
) (items []T, raw view.Page[json.RawMessage], err error) {
	items, raw, err = listQuietly[T](ctx, r, path, query, limit)
	if err == nil && len(items) == 0 {
		r.noteUnknown(ctx, query)
	}
	return items, raw, err
}

// listQuietly is like list, but prints no note about an empty list.
func listQuietly[T any](
	ctx context.Context, r *remote, path string, query url.Values, limit int,
) (items []T, raw view.Page[json.RawMessage], err error) {
	raw.Items = []json.RawMessage{}
	q := url.Values{}
	maps.Copy(q, query)

	for {
		ask := maxPage
		if limit > 0 {
			ask = min(ask, limit-len(items))
		}

		q.Set("limit", fmt.Sprint(ask))
		p, _, err := get[view.Page[json.RawMessage]](ctx, r, path, q)
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

// table prints a table that fits the width of the terminal.
func (r *remote) table(t *table) error {
	return t.print(r.out, terminalWidth(r.out), colourful(r.out))
}
