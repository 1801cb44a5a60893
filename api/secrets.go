package api

import (
	"context"
	"errors"
	"net/http"

	"go-crontab/api/view"
	"go-crontab/internal/auth"
	"go-crontab/internal/secret"
	"go-crontab/job"
	"go-crontab/job/problem"
	"go-crontab/sql"
)

// The states of a key.
const (
	keyCurrent = "current"
	keyOld     = "old"
	keyUnknown = "unknown"
)

func (s *Server) viewSecret(row *secret.Row) view.Secret {
	state := keyUnknown
	switch ids := s.cfg.SecretKeys.IDs(); {
	case len(ids) > 0 && ids[0] == row.Key:
		state = keyCurrent
	case s.cfg.SecretKeys.Has(row.Key):
		state = keyOld
	}
	return view.Secret{
		Name: row.Name, App: row.App, Key: row.Key, KeyState: state, Created: row.Created.Time(),
		Updated: row.Updated.Time(), By: row.By,
	}
}

// listSecrets: GET /api/v1/secrets
func (s *Server) listSecrets(w http.ResponseWriter, r *http.Request) error {
	q := newQuery(r)
	f := secret.Filter{Apps: auth.Of(r.Context()).Sees()}
	limit := q.limit()
	if c := q.cursor("secrets"); c != nil {
		f.After = c.ID
	}
	if err := q.err(); err != nil {
		return err
	}

	f.Limit = limit + 1 // one more row shows whether there is a next page
	rows, err := secret.List(s.cfg.DB.Reader(r.Context()), f)
	if err != nil {
		return err
	}

	p := view.Page[view.Secret]{Items: []view.Secret{}}
	rows, p.Next = oneMore("secrets", rows, limit, func(r *secret.Row) int64 { return r.ID })
	for i := range rows {
		p.Items = append(p.Items, s.viewSecret(&rows[i]))
	}

	return answer(w, http.StatusOK, p)
}

// maxSecretBody has room for the largest secret with each byte written as \u0000.
const maxSecretBody = 6*job.MaxSecret + 4<<10

// putSecret: PUT /api/v1/secrets/{name}
func (s *Server) putSecret(w http.ResponseWriter, r *http.Request) error {
	name, err := secretName(r)
	if err != nil {
		return err
	}

	body, err := readObject(r)
	if err != nil {
		return err
	}

	n, err := secretFields(newFields(body))
	if err != nil {
		return err
	}

	n.Name = name
	if err := mayKeep(r.Context(), n.AppSecret); err != nil {
		return err
	}

	ctx, err := wanted(r, "secret")
	if err != nil {
		return err
	}

	isNew, err := s.secrets.Put(ctx, n)
	if err != nil {
		return lookAt(noKey(err), "You can safely repeat the request.")
	}

	// The change is committed. If the secret cannot be read back, or was deleted already, the
	// answer must not look like a failed change.
	row := secret.Row{Name: name, App: n.App}
	if rows, err := secret.List(s.cfg.DB.Reader(r.Context()), secret.Filter{Only: n.AppSecret, Limit: 1}); err == nil &&
		len(rows) == 1 {
		row = rows[0]
	}

	status := http.StatusOK
	if isNew {
		status = http.StatusCreated
	}
	return answer(w, status, s.viewSecret(&row))
}

// secretFields reads a secret. Mistakes do not repeat the input, which may be the secret's value.
func secretFields(f *fields) (n secret.New, err error) {
	v, given := f.take("value")
	text, isText := v.(string)
	switch {
	case !given:
		f.wrong("value", problem.Missing)
	case !isText:
		f.wrong("value", problem.ValueNotText)
	}

	n.Value = text
	if v, there := f.object["app"]; there && v != nil {
		f.text("app", &n.App)
	}

	f.ignore("app")
	f.refuse("name", "key", "key_state", "created", "updated", "updated_by")
	return n, f.done()
}

// secretName returns the name in the path.
func secretName(r *http.Request) (job.Secret, error) {
	text, err := param(r, "name")
	if err != nil {
		return "", err
	}
	name := job.Secret(text)
	if err := name.Check(); err != nil {
		return "", invalidFields(job.Problems{{Field: "name", Text: problem.Of(err)}})
	}
	return name, nil
}

// mayKeep returns why the caller may not change a secret, or nil. It does not check whether the
// secret exists. So callers learn no names of secrets in apps that they cannot see.
func mayKeep(ctx context.Context, which job.AppSecret) error {
	p := auth.Of(ctx)
	switch {
	case p.May(admin), which.App != "" && p.MayIn(admin, which.App):
		return nil
	case which.App == "":
		return forbid(p,
			"The secret %s is for all apps, which needs the role %s without a limit to apps (choose an app "+
				"of yours to avoid that)", which.Name, admin)
	}

	return forbid(p, "This needs the role %s in app %s", admin, cutShort(which.App))
}

// noKey turns the error of a node that has no key into a problem.
func noKey(err error) error {
	if errors.Is(err, secret.ErrNoKey) {
		return noSecretKey.problem(
			"Ask another node, or start this one with --secret-key-file. Create the key file with go-crontab secret " +
				"keygen, and use the same file on all nodes.")
	}
	return err
}

// deleteSecret: DELETE /api/v1/secrets/{name}
func (s *Server) deleteSecret(w http.ResponseWriter, r *http.Request) error {
	name, err := secretName(r)
	if err != nil {
		return err
	}

	q := newQuery(r)
	which := job.AppSecret{App: q.text(secretAppParam), Name: name}
	if err := q.err(); err != nil {
		return err
	}
	if err := mayKeep(r.Context(), which); err != nil {
		return err
	}

	err = s.secrets.Delete(r.Context(), which)
	switch {
	case errors.Is(err, sql.ErrNotFound) && which.App == "":
		return notFound.problem(
			"There is no secret %q for all apps. For the secret of an app, add app=APP. GET /api/v1/secrets lists them.",
			cutShort(string(name)))
	case errors.Is(err, sql.ErrNotFound):
		return notFound.problem("The app %q has no secret %q. GET /api/v1/secrets lists them.", cutShort(which.App),
			cutShort(string(name)))
	case err != nil:
		return lookAt(err, "GET /api/v1/secrets shows whether it still exists.")
	}

	w.WriteHeader(http.StatusNoContent)
	return nil
}

// rotateSecrets: POST /api/v1/secrets/rotate
func (s *Server) rotateSecrets(w http.ResponseWriter, r *http.Request) error {
	if err := readNothing(r); err != nil {
		return err
	}

	done, err := s.secrets.Rotate(r.Context())
	if err != nil {
		return lookAt(noKey(err), "Repeat the request to seal the remaining secrets.")
	}

	v := view.Rotated{Key: done.Key, Rotated: done.Rotated, Failed: []view.FailedSecret{}}
	for _, f := range done.Failed {
		v.Failed = append(v.Failed, view.FailedSecret{Name: f.Name, App: f.App, Why: f.Why})
	}

	return answer(w, http.StatusOK, v)
}
