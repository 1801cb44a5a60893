package api

import (
	"errors"
	"net/http"
	"strconv"
	"time"

	"go-crontab/api/view"
	"go-crontab/internal/auth"
	"go-crontab/job"
	"go-crontab/job/problem"
	"go-crontab/sql"
)

// The states of a token.
const (
	tokenActive  = "active"
	tokenExpired = "expired"
	tokenRevoked = "revoked"
)

func viewOfToken(t *auth.TokenRow, now job.Micros) view.Token {
	v := view.Token{
		ID: strconv.FormatInt(t.ID, 10), Name: t.Name, Apps: t.Apps, State: tokenActive, Created: t.Created.Time(),
		By:      t.By,
		Expires: instant(t.Expires), Revoked: instant(t.Revoked), Used: instant(t.Used), UsedFrom: t.UsedFrom,
	}

	// The role may be unknown, because the row was changed outside the program. An unknown role
	// permits nothing, and is shown as no role.
	role, _ := auth.ParseRole(t.Role)
	v.Role = roleOf(role)
	switch {
	case t.Revoked != 0:
		v.State = tokenRevoked
	case t.Expires != 0 && t.Expires <= now:
		v.State = tokenExpired
	}

	return v
}

// createToken: POST /api/v1/tokens
func (s *Server) createToken(w http.ResponseWriter, r *http.Request) error {
	body, err := readObject(r)
	if err != nil {
		return err
	}

	now, err := s.now()
	if err != nil {
		return err
	}

	spec, err := tokenFields(body, now)
	if err != nil {
		return err
	}

	t, token, err := s.issuer.Create(r.Context(), spec)
	switch {
	case errors.Is(err, sql.ErrExists):
		return exists.problem("A token with this name already exists. Revoke it, or choose another name.")
	case err != nil:
		return lookAt(err,
			"GET /api/v1/tokens?name=%s shows whether it was created. If so, revoke it and create another: "+
				"its text is lost.", spec.Name)
	}

	v := view.NewToken{Token: viewOfToken(&t, job.MicrosOf(now)), Text: token}
	w.Header().Set("Location", "/api/v1/tokens/"+v.ID)
	return answer(w, http.StatusCreated, v)
}

// never is the expiry of a token that is valid until it is revoked.
const never = "never"

func tokenFields(body map[string]any, now time.Time) (auth.Spec, error) {
	f, spec, role := newFields(body), auth.Spec{Life: auth.DefaultLife}, ""
	f.text("name", &spec.Name)
	f.text("role", &role)
	f.texts("apps", &spec.Apps)
	if list, ok := body["apps"].([]any); ok && len(list) == 0 {
		f.wrong("apps", problem.NoApps) // an empty list must never mean all apps
	}

	if role != "" {
		var err error
		if spec.Role, err = auth.ParseRole(role); err != nil {
			f.put("role", problem.Of(err))
			spec.Role = viewer // otherwise the missing role would be reported, too
		}
	}

	if v, given := f.take("expires"); given && v != nil {
		text, _ := v.(string)
		until, ok := endOf(text, now)
		switch {
		case text == never:
			spec.Life = 0
		case ok:
			spec.Life, spec.Expires = 0, job.MicrosOf(until)
		default:
			f.want("expires", v, advised(problem.WantExpiry, text))
		}
	}

	return spec, f.done()
}

// listTokens: GET /api/v1/tokens
func (s *Server) listTokens(w http.ResponseWriter, r *http.Request) error {
	q := newQuery(r)
	f := auth.TokenFilter{Name: q.text(tokenName), Living: q.word(tokenRevokedToo) != "true"}

	limit := q.limit()
	if c := q.cursor("tokens"); c != nil {
		f.After = c.ID
	}
	if err := q.err(); err != nil {
		return err
	}

	now, err := s.now()
	if err != nil {
		return err
	}

	f.Limit = limit + 1 // one more row shows whether there is a next page
	rows, err := auth.Tokens(s.cfg.DB.Reader(r.Context()), f)
	if err != nil {
		return err
	}

	p := view.Page[view.Token]{Items: []view.Token{}}
	rows, p.Next = oneMore("tokens", rows, limit, func(r *auth.TokenRow) int64 { return r.ID })
	for i := range rows {
		p.Items = append(p.Items, viewOfToken(&rows[i], job.MicrosOf(now)))
	}

	return answer(w, http.StatusOK, p)
}

// tokenID returns the token id in the path.
func tokenID(r *http.Request) (int64, error) { return pathID(r, noToken) }

func noToken(id string) error {
	return notFound.problem("There is no token %q; GET /api/v1/tokens lists them.", cutShort(id))
}

// getToken: GET /api/v1/tokens/{id}
func (s *Server) getToken(w http.ResponseWriter, r *http.Request) error {
	id, err := tokenID(r)
	if err != nil {
		return err
	}

	now, err := s.now()
	if err != nil {
		return err
	}

	rows, err := auth.Tokens(s.cfg.DB.Reader(r.Context()), auth.TokenFilter{ID: id, Limit: 1})
	if err != nil {
		return err
	}
	if len(rows) == 0 {
		return noToken(strconv.FormatInt(id, 10))
	}

	return answer(w, http.StatusOK, viewOfToken(&rows[0], job.MicrosOf(now)))
}

// revokeToken: DELETE /api/v1/tokens/{id}. The token's row stays readable.
func (s *Server) revokeToken(w http.ResponseWriter, r *http.Request) error {
	id, err := tokenID(r)
	if err != nil {
		return err
	}

	switch err := s.issuer.Revoke(r.Context(), id); {
	case errors.Is(err, sql.ErrNotFound):
		return noToken(strconv.FormatInt(id, 10))
	case err != nil:
		return lookAt(err, "GET /api/v1/tokens/%d shows whether it is still valid. You can safely repeat the request.", id)
	}

	s.gate.Forget()
	w.WriteHeader(http.StatusNoContent)
	return nil
}
