package cli

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"slices"
	"strings"

	"go-crontab/api"
	"go-crontab/api/view"
	"go-crontab/internal/manifest"
	"go-crontab/job"

	"github.com/spf13/cobra"
)

func exportCommand(c *console) *cobra.Command {
	var app, label string
	var all bool
	cmd := &cobra.Command{
		Use: "export", Short: "Print jobs, groups, calendars, alerts and retention as a file for apply", Args: nothing,
		Long: `Print jobs, groups, calendars, alert channels and rules, and retention rules as a file for apply, on
this or another cluster. Defaults are left out. Everything is sorted by name, so two exports can be
compared. Exporting again from a cluster to which an export was applied gives the same file, byte
for byte.

--app with an app that has no jobs ends with exit code 3. The file would be empty, and apply --prune
with an empty file deletes all jobs.

With --app or --label, only groups and calendars that the jobs use are printed; with --app also the
app's retention rule. The file says whether a job is paused, but not who paused it or until when.

With --all, the file also has the pauses of apps and of the cluster, and comments with commands for
everything that a file cannot contain: first the secrets, which must exist before the file is
applied; then the reasons of pauses, disabled handlers, cordoned nodes, silences and tokens. Another
comment lists what is left behind. Values of secrets and tokens are in no export. --all needs an
admin's token.`,
		Example: `  go-crontab export > jobs.yaml
  go-crontab export --app shop -o json
  go-crontab export --all > cluster.yaml
  go-crontab export --label team=data | go-crontab apply --server http://other:8610 -f -`,
	}

	r := newRemote(c, cmd, "yaml", "json", "name")
	r.format = "yaml"
	cmd.Flags().StringVarP(&app, "app", "a", "", "only jobs of this app")
	cmd.Flags().BoolVar(&all, "all", false,
		"include pauses of apps and of the cluster, and commands for secrets, tokens and the like as comments")
	cmd.Flags().StringVarP(&label, "label", "l", "", "only jobs with this label, key=value")
	_ = cmd.RegisterFlagCompletionFunc("app", completeApps(c))
	cmd.RunE = func(cmd *cobra.Command, _ []string) error {
		if all && (r.format != "yaml" || app != "" || label != "") {
			return usageError("--all exports the whole cluster with comments: leave out --app, --label and -o")
		}

		o, left, err := r.export(cmd.Context(), app, label, all)
		if err != nil {
			return err
		}

		switch r.format {
		case "json":
			err = manifest.WriteJSON(c.out, o)
		case "name":
			for _, j := range o.Jobs {
				c.printf("%s\n", nameIn(j).full())
			}
		default:
			if all {
				err = r.exportSecrets(cmd.Context())
			}
			if err == nil {
				err = manifest.WriteYAML(c.out, o)
			}
			if err == nil && all {
				err = r.exportRest(cmd.Context())
			}
		}

		if err != nil || len(left) == 0 {
			return err
		}

		return fmt.Errorf("the export is incomplete:\n  %s", strings.Join(left, "\n  "))
	}

	return cmd
}

// named holds the name of an object, and the names that it refers to.
type named struct {
	App       string   `json:"app"`
	Name      string   `json:"name"`
	Group     string   `json:"group"`
	Calendars []string `json:"calendars"`
}

func (n named) full() string { return n.App + "/" + n.Name }

func nameIn(object json.RawMessage) (n named) {
	_ = json.Unmarshal(object, &n) // valid, since the server made it
	return n
}

// export reads jobs and the objects that they name. all adds the pauses. left lists objects that
// could not be exported.
func (r *remote) export(
	ctx context.Context, app, label string, all bool,
) (o *manifest.Objects, left []string, err error) {
	o = &manifest.Objects{Jobs: []json.RawMessage{}}
	q := given("app", app, "label", label, "limit", fmt.Sprint(maxPage))

	for {
		page, _, err := get[view.Export](ctx, r, "/api/v1/export", q)
		if err != nil {
			return nil, nil, err
		}
		o.Jobs = append(o.Jobs, page.Items...)
		for _, u := range page.Unreadable {
			left = append(left, plain(u.App+"/"+u.Name+": "+u.Error))
		}
		if page.Next == "" {
			break
		}
		q.Set("cursor", page.Next)
	}

	if len(o.Jobs)+len(left) == 0 {
		if err := r.noApp(ctx, app); err != nil {
			return nil, nil, err
		}
		if label != "" {
			return nil, nil, &exitError{code: exitNotFound, err: fmt.Errorf("no job has the label %s", plain(label))}
		}
	}

	o.Jobs = inOrder(o.Jobs)
	groups, calendars, err := r.namedBy(ctx, o.Jobs, app == "" && label == "")
	if err != nil {
		return nil, nil, err
	}

	if app == "" && label == "" {
		if left, err = r.exportAlerts(ctx, o, left); err != nil {
			return nil, nil, err
		}
	}
	if label == "" {
		if err := r.exportRetention(ctx, o, app); err != nil {
			return nil, nil, err
		}
	}

	if all {
		if err := r.exportPauses(ctx, o); err != nil {
			return nil, nil, err
		}
	}
	if o.Groups, err = r.exportGroups(ctx, groups); err != nil {
		return nil, nil, err
	}

	more, err := r.exportCalendars(ctx, calendars, o)
	return o, append(left, more...), err
}

// inOrder sorts jobs by name. It parses each job only once.
func inOrder(jobs []json.RawMessage) []json.RawMessage {
	type keyed struct {
		key string
		job json.RawMessage
	}

	all := make([]keyed, len(jobs))
	for i, j := range jobs {
		n := nameIn(j)
		all[i] = keyed{n.App + "\x00" + n.Name, j}
	}

	slices.SortFunc(all, func(a, b keyed) int { return strings.Compare(a.key, b.key) })
	for i, k := range all {
		jobs[i] = k.job
	}
	return jobs
}

// namedBy lists the groups and calendars that jobs name. With all, it lists all that exist.
func (r *remote) namedBy(
	ctx context.Context, jobs []json.RawMessage, all bool,
) (groups, calendars []string, err error) {
	for _, j := range jobs {
		n := nameIn(j)
		if n.Group != "" {
			groups = append(groups, n.Group)
		}
		calendars = append(calendars, n.Calendars...)
	}

	if all {
		for path, to := range map[string]*[]string{"/api/v1/groups": &groups, calendarsPath: &calendars} {
			found, _, err := list[named](ctx, r, path, nil, 0)
			if err != nil {
				return nil, nil, err
			}
			for _, n := range found {
				*to = append(*to, n.Name)
			}
		}
	}

	slices.Sort(groups)
	slices.Sort(calendars)
	return slices.Compact(groups), slices.Compact(calendars), nil
}

func (r *remote) exportGroups(ctx context.Context, names []string) (out []json.RawMessage, err error) {
	for _, name := range names {
		g, _, err := get[job.GroupSpec](ctx, r, "/api/v1/groups/"+url.PathEscape(name), nil)
		if isStatus(err, http.StatusNotFound) {
			continue // deleted since
		}
		if err != nil {
			return nil, err
		}

		text, err := json.Marshal(g)
		if err != nil {
			return nil, err
		}

		out = append(out, text)
	}
	return out, nil
}

func (r *remote) exportCalendars(ctx context.Context, names []string, o *manifest.Objects) (left []string, err error) {
	for _, name := range names {
		v, raw, err := get[view.Calendar](ctx, r, calendarPath(name), nil)
		switch {
		case isStatus(err, http.StatusNotFound):
			continue
		case err != nil:
			return nil, err
		case v.Error != "":
			left = append(left, "calendar "+plain(v.Error))
			continue
		}

		text, err := without(raw, "jobs", "version", "created", "updated")
		if err != nil {
			return nil, err
		}

		o.Calendars = append(o.Calendars, text)
	}
	return left, nil
}

// without removes fields from an object. The other fields keep their order.
func without(object json.RawMessage, names ...string) (json.RawMessage, error) {
	d := json.NewDecoder(bytes.NewReader(object))
	if _, err := d.Token(); err != nil {
		return nil, err
	}

	var out bytes.Buffer
	out.WriteByte('{')
	for d.More() {
		name, err := d.Token()
		if err != nil {
			return nil, err
		}

		var value json.RawMessage
		if err := d.Decode(&value); err != nil {
			return nil, err
		}
		if slices.Contains(names, fmt.Sprint(name)) {
			continue
		}
		if out.Len() > 1 {
			out.WriteByte(',')
		}

		key, err := json.Marshal(name)
		if err != nil {
			return nil, err
		}

		out.Write(key)
		out.WriteByte(':')
		out.Write(value)
	}

	out.WriteByte('}')
	if !json.Valid(out.Bytes()) {
		return nil, errors.New("the response is not a JSON object")
	}

	return out.Bytes(), nil
}

func schemaCommand(c *console) *cobra.Command {
	return &cobra.Command{
		Use: "schema", Short: "Print the JSON Schema of job files, for editors", Args: nothing,
		Long: `Print the JSON Schema of job files. Editors use it for completion and checks. Nodes serve it at
/schema/manifest.json.

An editor with the YAML language server finds the schema by a comment at the top of the file:
# yaml-language-server: $schema=manifest.schema.json`,
		Example:           "  go-crontab schema > manifest.schema.json",
		ValidArgsFunction: cobra.NoFileCompletions,
		RunE: func(*cobra.Command, []string) error {
			text, err := api.ManifestSchema()
			if err != nil {
				return err
			}
			_, err = c.out.Write(text)
			return err
		},
	}
}
