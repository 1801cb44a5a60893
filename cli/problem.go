package cli

import (
	"errors"
	"fmt"
	"net/http"
	"strings"

	"go-crontab/client"
	"go-crontab/internal/manifest"
	"go-crontab/job"
)

// apiProblem is an error response of the API (RFC 9457).
type apiProblem struct {
	*client.Problem
	Errors []fieldProblem
}

type fieldProblem struct {
	job.Problem

	at   manifest.Place // place in the file that the request was made from
	name string         // name of the field in the file
}

func (p *apiProblem) Error() string {
	var parts []string
	detail := p.Detail
	if len(p.Errors) > 0 {
		detail = "" // the detail repeats the errors in one line
	}

	for _, s := range []string{p.Title, detail} {
		if s != "" && (len(parts) == 0 || !strings.EqualFold(parts[0], s)) {
			parts = append(parts, plain(s))
		}
	}

	s := strings.Join(parts, ": ")
	if p.Status >= 500 && p.RequestID != "" {
		s += " (request_id " + plain(p.RequestID) + ")"
	}
	for _, e := range p.Errors {
		s += fmt.Sprintf("\n  %s: %s", plain(e.Field), plain(e.Message))
	}
	return s
}

// refused converts an error response to an error with an exit code.
func (r *remote) refused(method string, sent *client.Problem) error {
	if sent.OfProxy() {
		p := *sent
		p.Title = fmt.Sprintf("%s, a proxy, answers %q", sent.Server, sent.Foreign)
		if method != http.MethodGet {
			p.Title += "; it is unknown whether the request was carried out"
		}
		return &exitError{code: exitFailed, err: &apiProblem{Problem: &p}}
	}
	if sent.Foreign != "" {
		return &exitError{
			code: exitFailed,
			err:  fmt.Errorf("%s is not a go-crontab node: it answers %q", sent.Server, sent.Foreign),
			hint: "check the address in --server, GOCRONTAB_SERVER or the context",
		}
	}

	p := &apiProblem{Problem: sent}
	for _, e := range sent.Errors {
		p.Errors = append(p.Errors, fieldProblem{Problem: e})
	}

	e := &exitError{code: exitFailed, err: p}
	switch {
	case p.Status == http.StatusNotFound:
		e.code = exitNotFound
	case p.Status == http.StatusUnauthorized && r.token == "" && r.context != "":
		e.code = exitUnauthorized
		e.hint = fmt.Sprintf("the context %s has no token, and with --context no variable sets one\n"+
			"to give it one:  %s context add %s --token-file FILE", plain(r.context), program(), quote(r.context))
	case p.Status == http.StatusUnauthorized && r.token == "":
		e.code = exitUnauthorized
		e.hint = "give a token:      export GOCRONTAB_TOKEN=…, or GOCRONTAB_TOKEN_FILE=FILE\n" +
			"the first token:   " + program() + " migrate --bootstrap\n" +
			"a further token:   " + program() + " token create NAME --role operator"
	case p.Status == http.StatusUnauthorized:
		e.code = exitUnauthorized
		e.hint = "check that the token belongs to this cluster; it comes from --token, GOCRONTAB_TOKEN,\n" +
			"GOCRONTAB_TOKEN_FILE, the context or dev\nto create a token:  " + program() + " token create NAME --role operator"
	case p.Status == http.StatusForbidden:
		e.code = exitUnauthorized
		if strings.HasSuffix(p.Type, ":forbidden") {
			e.hint = "to see what this token may do:  " + program() + " token show"
		}
	case p.Status == http.StatusServiceUnavailable && !strings.HasSuffix(p.Type, ":unknown-outcome"):
		e.hint = "the node is starting, stopping, or cannot reach MySQL: see its log, or use another node with --server"
	case p.Status < 500:
		e.code = exitRefused
	}

	return e
}

// isStatus reports whether err is an error response with this status.
func isStatus(err error, status int) bool {
	p := (*apiProblem)(nil)
	return errors.As(err, &p) && p.Status == status
}
