package api

import (
	"errors"
	"net/http"
	"strconv"
	"time"

	"go-crontab/internal/auth"
	"go-crontab/job"
	"go-crontab/job/problem"
	"go-crontab/sql"
)

// tokenView is a token as clients see it: without its text, which is not stored.
type tokenView struct {
	ID       string    `json:"id" doc:"Its id."`
	Name     string    `json:"name" doc:"The name of its holder, as in the audit."`
	Role     auth.Role `json:"role" doc:"The role of the token."`
	Apps     []string  `json:"apps,omitempty" doc:"The only apps in which the role applies. Absent: all apps and the whole cluster."`
	State    string    `json:"state" enum:"active,expired,revoked" doc:"Whether the token is valid."`
	Created  string    `json:"created" format:"date-time" doc:"When it was created."`
	By       string    `json:"created_by" doc:"Who created it."`
	Expires  string    `json:"expires,omitempty" format:"date-time" doc:"When it expires. Absent: it is valid until it is revoked."`
	Revoked  string    `json:"revoked,omitempty" format:"date-time" doc:"When it was revoked."`
	Used     string    `json:"last_used,omitempty" format:"date-time" doc:"When it was last used, to about a minute. Absent if it was never used."`
	UsedFrom string    `json:"last_used_from,omitempty" doc:"The address from which it was last used."`
}

// newTokenView is a token that was just created.
type newTokenView struct {
	tokenView
	Token string `json:"token" doc:"The token itself, to send as Authorization: Bearer TOKEN. It is shown only this once."`
}

// The states of a token.
const (
	tokenActive  = "active"
	tokenExpired = "expired"
	tokenRevoked = "revoked"
)

func viewOfToken(t *auth.TokenRow, now job.Micros) tokenView {
	v := tokenView{
		ID: strconv.FormatInt(t.ID, 10), Name: t.Name, Apps: t.Apps, State: tokenActive, Created: stamp(t.Created),
		By:      t.By,
		Expires: stamp(t.Expires), Revoked: stamp(t.Revoked), Used: stamp(t.Used), UsedFrom: t.UsedFrom,
	}

	// A row edited by hand may have an unknown role. It permits nothing, and is shown so.
	v.Role, _ = auth.ParseRole(t.Role)
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

	v := newTokenView{viewOfToken(&t, job.MicrosOf(now)), token}
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
			spec.Role = viewer // so that the missing role is not reported too
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

	f.Limit = limit + 1 // one more shows whether there is a next page
	rows, err := auth.Tokens(s.cfg.DB.Reader(r.Context()), f)
	if err != nil {
		return err
	}

	p := page[tokenView]{Items: []tokenView{}}
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

// revokeToken: DELETE /api/v1/tokens/{id}. The row stays and can still be read.
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
