package api

import (
	"cmp"
	"context"
	"net/http"
	"slices"

	"go-crontab/api/view"
	"go-crontab/internal/auth"
	"go-crontab/sql"
)

// handlers lists three kinds of handlers: those of any node, those that a job names which the
// caller may see, and disabled handlers.
func (s *Server) handlers(ctx context.Context) ([]*view.Handler, error) {
	off, err := s.cfg.DB.HandlersOff(ctx)
	if err != nil {
		return nil, err
	}

	sessions, err := s.cfg.DB.Sessions(ctx)
	if err != nil {
		return nil, err
	}

	jobs, err := s.cfg.DB.HandlerJobs(ctx, auth.Of(ctx).Sees())
	if err != nil {
		return nil, err
	}

	byKey := map[string]*view.Handler{}

	handler := func(key string) *view.Handler {
		if byKey[key] == nil {
			byKey[key] = &view.Handler{Key: key, Nodes: []string{}, Jobs: jobs[key]}
		}
		return byKey[key]
	}

	for key := range jobs {
		handler(key)
	}

	for _, x := range sessions {
		for _, key := range x.Handlers {
			if v := handler(key); !slices.Contains(v.Nodes, x.Node) {
				v.Nodes = append(v.Nodes, x.Node)
			}
		}
	}

	for _, h := range off {
		v := handler(h.Name)
		v.Disabled, v.Reason, v.By, v.Since = true, h.Reason, h.Who, instant(h.Since)
	}

	out := make([]*view.Handler, 0, len(byKey))
	for _, v := range byKey {
		slices.Sort(v.Nodes)
		out = append(out, v)
	}

	slices.SortFunc(out, func(a, b *view.Handler) int { return cmp.Compare(a.Key, b.Key) })
	return out, nil
}

// listHandlers: GET /api/v1/handlers
func (s *Server) listHandlers(w http.ResponseWriter, r *http.Request) error {
	out, err := s.handlers(r.Context())
	if err != nil {
		return err
	}
	return answer(w, http.StatusOK, view.Page[*view.Handler]{Items: out})
}

// disableHandler: POST /api/v1/handlers/{key}/disable. The handler need not exist on any node or in
// any job.
func (s *Server) disableHandler(w http.ResponseWriter, r *http.Request) error {
	reason, err := readReason(r)
	if err != nil {
		return err
	}
	return s.onHandler(w, r, func(ctx context.Context, e Editor, key string) error {
		return e.DisableHandler(ctx, key, reason)
	})
}

// enableHandler: POST /api/v1/handlers/{key}/enable
func (s *Server) enableHandler(w http.ResponseWriter, r *http.Request) error {
	if err := readNothing(r); err != nil {
		return err
	}
	return s.onHandler(w, r, func(ctx context.Context, e Editor, key string) error { return e.EnableHandler(ctx, key) })
}

func (s *Server) onHandler(w http.ResponseWriter, r *http.Request,
	do func(context.Context, Editor, string) error) error {
	key, err := param(r, "key")
	if err != nil {
		return err
	}

	e, err := s.editor()
	if err != nil {
		return err
	}
	if err := do(r.Context(), e, key); err != nil {
		return lookAt(err, "GET /api/v1/handlers shows the current state. You can safely repeat the request.")
	}

	all, err := s.handlers(r.Context())
	if err != nil { // the change is committed
		return &sql.Unknown{Err: err}
	}

	for _, v := range all {
		if v.Key == key {
			return answer(w, http.StatusOK, v)
		}
	}

	return answer(w, http.StatusOK, &view.Handler{Key: key, Nodes: []string{}})
}
