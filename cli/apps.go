package cli

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"slices"

	"go-crontab/api"

	"github.com/spf13/cobra"
)

const appsPath = "/api/v1/apps"

// names reads the names in a list that has no pages.
func (r *remote) names(ctx context.Context, path string) (names []string, err error) {
	found, _, err := all[named](ctx, r, path)
	for _, v := range found {
		names = append(names, v.Name)
	}
	return names, err
}

// unknown says that there is nothing of a name, and which name was probably meant; "" if there is.
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

// noteUnknown tells about a filter of a list that came out empty because nothing has the name that the filter gives.
func (r *remote) noteUnknown(ctx context.Context, filter url.Values) {
	for field, path := range map[string]string{"app": appsPath, "node": nodesPath} {
		if !filter.Has(field) {
			continue
		}
		if said, err := r.unknown(ctx, field, filter.Get(field), path); err == nil && said != "" { // it is only a hint
			r.notef("%s\n", said)
		}
	}
}

// noApp is why there are no jobs of an app: the app does not exist. It is nil for an app that exists.
func (r *remote) noApp(ctx context.Context, app string) error {
	if app == "" {
		return nil
	}
	said, err := r.unknown(ctx, "app", app, appsPath)
	if err == nil && said != "" {
		err = &exitError{code: exitNotFound, err: errors.New(said)}
	}
	return err
}

// warnOfApps warns of apps without jobs in what was just made: they may come later, or be mistyped.
func (r *remote) warnOfApps(ctx context.Context, apps ...string) {
	for _, app := range apps {
		if app == "" {
			continue
		}
		if said, err := r.unknown(ctx, "app", app, appsPath); err == nil && said != "" { // it is only a hint
			r.notef("warning: %s\n", said)
		}
	}
}

// absentFlag adds the flag that lets a command change something that does not exist yet.
func absentFlag(cmd *cobra.Command, ok *bool, what string) {
	cmd.Flags().BoolVar(ok, "absent-ok", false, what+" need not be there yet")
}

// absent is the query of a change of something that need not exist yet.
func absent(ok bool) url.Values {
	if ok {
		return url.Values{"absent": {"ok"}}
	}
	return nil
}

// orAbsent says how to change something that is not there yet.
func orAbsent(err error) error {
	if isStatus(err, http.StatusNotFound) {
		return withHint(err, "if it is to come later: --absent-ok")
	}
	return err
}
