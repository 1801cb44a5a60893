package cli

import (
	"strings"
	"time"

	"go-crontab/api/view"

	"github.com/spf13/cobra"
)

// completing returns a connection for shell completion, with a short timeout.
func completing(c *console, cmd *cobra.Command) (*remote, bool) {
	r := &remote{console: c}
	return r, r.settle(cmd) == nil && r.connect(time.Second) == nil
}

// completeApps completes apps that have jobs.
func completeApps(c *console) cobra.CompletionFunc { return completeNames(c, appsPath) }

// completeNames completes the names in a list of the API, such as groups, calendars or nodes.
func completeNames(c *console, path string) cobra.CompletionFunc {
	return completeField(c, path, "name")
}

// completeField completes the values of a field in a list of the API.
func completeField(c *console, path, field string) cobra.CompletionFunc {
	return func(cmd *cobra.Command, _ []string, typed string) ([]cobra.Completion, cobra.ShellCompDirective) {
		r, ok := completing(c, cmd)
		if !ok {
			return nil, cobra.ShellCompDirectiveError
		}

		found, _, err := get[view.Page[map[string]any]](cmd.Context(), r, path, nil)
		if err != nil {
			return nil, cobra.ShellCompDirectiveError
		}

		var out []cobra.Completion
		for _, item := range found.Items {
			if s, ok := item[field].(string); ok && strings.HasPrefix(s, typed) {
				out = append(out, s)
			}
		}
		return out, cobra.ShellCompDirectiveNoFileComp
	}
}
