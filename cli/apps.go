package cli

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"slices"
	"strings"

	"go-crontab/api"

	"github.com/spf13/cobra"
)

const appsPath = "/api/v1/apps"

// names reads all names of a list that has no pages.
func (r *remote) names(ctx context.Context, path string) (names []string, err error) {
	found, _, err := all[named](ctx, r, path)
	for _, v := range found {
		names = append(names, v.Name)
	}
	return names, err
}

// unknown returns a message that an object does not exist, with a suggestion of a similar name. It
// returns "" if the object exists.
func (r *remote) unknown(ctx context.Context, what, name, path string) (said string, err error) {
	names, err := r.names(ctx, path)
	if err != nil || slices.Contains(names, name) {
		return "", err
	}
	said = fmt.Sprintf("there is no %s %q", what, plain(name))
	if near := api.Nearest(name, names); near != "" {
		said += fmt.Sprintf("; did you mean %q?", plain(near))
	}
	return said, nil
}

// missing turns an error 404 into the error that a named object does not exist, and suggests a
// similar name. path is the API's list of such objects, and command is the command group
// whose `ls` prints the list.
func (r *remote) missing(ctx context.Context, err error, what, name, path, command string) error {
	if !isStatus(err, http.StatusNotFound) {
		return err
	}
	said, failed := r.unknown(ctx, what, name, path)
	if failed != nil || said == "" {
		said = notFound(what, name).Error()
	}
	return &exitError{
		code: exitNotFound, err: errors.New(said),
		hint: fmt.Sprintf("to list %ss:  %s %s ls", what, program(), command),
	}
}

// unknownIn calls unknown for the app and the node of a filter.
func (r *remote) unknownIn(ctx context.Context, filter url.Values) (said string, err error) {
	for field, path := range map[string]string{"app": appsPath, "node": nodesPath} {
		if filter.Has(field) && err == nil && said == "" {
			said, err = r.unknown(ctx, field, filter.Get(field), path)
		}
	}
	return said, err
}

// noteUnknown explains an empty list, if a filter names an app or node that does not exist.
func (r *remote) noteUnknown(ctx context.Context, filter url.Values) {
	if said, err := r.unknownIn(ctx, filter); err == nil && said != "" { // only a hint
		r.notef("%s\n", said)
	}
}

// refuseUnknown returns an error if a filter names an app or node that does not exist.
func (r *remote) refuseUnknown(ctx context.Context, filter url.Values) error {
	said, err := r.unknownIn(ctx, filter)
	if err == nil && said != "" {
		err = &exitError{code: exitNotFound, err: errors.New(said)}
	}
	return err
}

// noApp returns an error if the app does not exist.
func (r *remote) noApp(ctx context.Context, app string) error {
	return r.refuseUnknown(ctx, given("app", app))
}

// warnOfApps warns if a new object names apps without jobs. The name may be mistyped, or the jobs
// may follow later.
func (r *remote) warnOfApps(ctx context.Context, apps ...string) {
	for _, app := range apps {
		if app == "" {
			continue
		}
		if said, err := r.unknown(ctx, "app", app, appsPath); err == nil && said != "" { // only a hint
			r.notef("warning: %s\n", said)
		}
	}
}

// absentFlag adds the flag that lets a command change an object that does not exist yet.
func absentFlag(cmd *cobra.Command, ok *bool, what string) {
	cmd.Flags().BoolVar(ok, "absent-ok", false, "accept a name that no "+what+" has yet")
}

// absent returns the query parameter for --absent-ok.
func absent(ok bool) url.Values {
	if ok {
		return url.Values{"absent": {"ok"}}
	}
	return nil
}

// orAbsent replaces the API's hint about absent=ok with a hint about --absent-ok.
func orAbsent(err error) error {
	if p := (*apiProblem)(nil); errors.As(err, &p) && p.Status == http.StatusNotFound {
		p.Detail, _, _ = strings.Cut(p.Detail, " Add ?absent=ok")
		return withHint(err, "if it will be added later:  --absent-ok")
	}
	return err
}
