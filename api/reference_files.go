package api

import (
	"bytes"
	"encoding/json"
	"net/http"
	"sync"

	"go-crontab/api/openapi"
	"go-crontab/api/view"
	"go-crontab/job"
)

// The contents of files, for the reference and the schema; applyFields reads them.
type (
	manifestJob struct {
		job.Spec
		Paused  bool  `json:"paused,omitempty"`
		Version int64 `json:"version,omitempty" doc:"The required version of the job; 0 if it must not exist yet. Without it, any version. Files rarely have it."`
	}
	manifestBody struct {
		Groups    []job.GroupSpec     `json:"groups,omitempty" doc:"Groups for the jobs."`
		Calendars []job.CalendarSpec  `json:"calendars,omitempty" doc:"Calendars for the jobs."`
		Channels  []job.AlertChannel  `json:"channels,omitempty" doc:"Alert channels for the rules."`
		Rules     []job.AlertRule     `json:"rules,omitempty" doc:"Alert rules."`
		Retention []job.RetentionSpec `json:"retention,omitempty" doc:"The retention of the cluster and of apps. Retention that is in no file stays as it is."`
		Pauses    []job.PauseSpec     `json:"pauses,omitempty" doc:"Pauses of the cluster and of apps. Pauses that are in no file stay."`
		Jobs      []manifestJob       `json:"jobs,omitempty" doc:"The jobs, identified by 'app' and 'name'."`
	}
	applyBody struct {
		manifestBody
		Prune  pruneBody `json:"prune,omitzero" doc:"Deletes the jobs of an app, or with certain labels, that are not in 'jobs'. All others stay."`
		Force  bool      `json:"force,omitempty" doc:"Delete jobs even if other jobs follow them."`
		DryRun bool      `json:"dry_run,omitempty" doc:"Change nothing; report what would be changed."`
	}
	crontabBody struct {
		Text     string            `json:"text" doc:"The crontab."`
		App      string            `json:"app,omitempty" doc:"The app of the jobs. Without it, 'default'."`
		Timezone string            `json:"timezone,omitempty" doc:"The time zone of lines without 'CRON_TZ', as an IANA name. Without it, UTC: give the zone of the machine that the crontab comes from."`
		System   bool              `json:"system,omitempty" doc:"Whether its lines have a user column, as in '/etc/crontab' and '/etc/cron.d'."`
		File     string            `json:"file,omitempty" doc:"The name of a file in '/etc/cron.d', which begins the names of the jobs."`
		Selector string            `json:"selector,omitempty" doc:"The selector of the jobs. Without it, any node runs them."`
		Labels   map[string]string `json:"labels,omitempty" doc:"The labels of the jobs."`
		Timeout  job.Duration      `json:"timeout,omitempty" doc:"The timeout of the jobs. Without it, they have none."`
		User     *string           `json:"user,omitempty" doc:"The user that the jobs run as; empty for the user of the node. Without it, the user in the crontab."`
	}
	pruneBody struct {
		App    string            `json:"app,omitempty" doc:"The jobs of this app belong to the files."`
		Labels map[string]string `json:"labels,omitempty" doc:"The jobs with all of these labels belong to the files."`
	}
)

var (
	applyDoc = operation{
		id: "apply", tag: tagFiles, once: true, most: maxApplyBody, summary: "Apply files",
		about: "Creates, changes and, with `prune`, deletes objects of the cluster until they match the body, all of it " +
			"in one transaction or nothing. Objects that already match stay untouched, so sending the same body again changes " +
			"nothing. " +
			"Fields of a job that are left out get their defaults, except for `paused`, which stays as it is, and the " +
			"phase of an unchanged `every`. The answer comes once nothing starts under an old definition any more. " +
			"In `errors` of a problem, `field` begins with the place in the body: `jobs[3].schedule`.",
		body: &requestBody{of: of[applyBody](), about: "The content of the files, and the options.",
			example: `{"groups": [{"name": "warehouse", "slots": 2}], "jobs": [{"app": "shop", "name": "load orders", "schedule": "*/5 * * * *", "command": "load-orders", "group": "warehouse"}], "prune": {"app": "shop"}, "dry_run": true}`},
		replies: found[view.Apply]("The changes, made or planned."), changes: true,
		problems: []kind{changed, exists, unreadable, appLimit},
	}
	exportDoc = operation{
		id: "export", tag: tagFiles, summary: "Export jobs",
		about: "Definitions in the form of files, without default values, in the order of the jobs' creation. They can be " +
			"applied again, also to another cluster.",
		query:   []parameter{ofAppParam, labelIs, ofJobParam, limitParam, pageParam},
		replies: found[view.Export]("A page of jobs."), problems: []kind{notFound},
	}
	crontabDoc = operation{
		id: "readCrontab", tag: tagFiles, spoken: true, summary: "Read a crontab",
		about: "Converts the lines of a crontab to jobs, and notes differences from cron. Nothing is " +
			"changed: send the jobs to `POST /api/v1/apply`. A crontab can have as many job lines as one " +
			"request can apply.",
		body: &requestBody{of: of[crontabBody](), about: "The crontab, and settings that it does not contain.",
			example: `{"text": "MAILTO=ops@example.com\n0 3 * * * backup.sh\n", "app": "shop", "timezone": "Europe/Berlin"}`},
		replies: []reply{
			{status: http.StatusOK, about: "The converted lines.", of: of[view.Crontab](), headers: []string{"Vary"}},
		},
	}
	manifestSchemaDoc = operation{
		id: "getManifestSchema", tag: tagFiles, summary: "The JSON Schema of files",
		about:  "For editors, in draft 2020-12.",
		cached: true, replies: []reply{{status: http.StatusOK, about: "The schema.", media: []string{mediaJSON}}},
	}
)

// ManifestSchema returns the JSON Schema of files with jobs.
func ManifestSchema() ([]byte, error) {
	types := newReflector()
	manifest, one := types.Of(of[manifestBody](), openapi.Request), types.Of(of[manifestJob](), openapi.Request)
	defs := types.Schemas()
	editors := &openapi.Schema{Type: openapi.Types{openapi.String}, Description: "The address at which editors find " +
		"this schema."}
	for _, ref := range []*openapi.Schema{manifest, one} {
		if s, ok := defs.Get(ref.Ref[len(openapi.Refer("").Ref):]); ok {
			s.Properties.Set("$schema", editors)
		}
	}

	var text bytes.Buffer
	e := json.NewEncoder(&text)
	e.SetEscapeHTML(false)
	e.SetIndent("", "  ")
	err := e.Encode(struct {
		Dialect string            `json:"$schema"`
		ID      string            `json:"$id"`
		Title   string            `json:"title"`
		AnyOf   []*openapi.Schema `json:"anyOf"`

		Defs openapi.Map[*openapi.Schema] `json:"$defs"`
	}{
		"https://json-schema.org/draft/2020-12/schema", "urn:go-crontab:schema:manifest",
		"Jobs, groups, calendars, alerts, retention and pauses of go-crontab",
		[]*openapi.Schema{manifest, one, {Type: openapi.Types{openapi.Array}, Items: one}}, defs,
	})

	return bytes.ReplaceAll(text.Bytes(), []byte(`"`+openapi.Refer("").Ref), []byte(`"#/$defs/`)), err
}

var manifestSchema = sync.OnceValues(func() (static, error) {
	text, err := ManifestSchema()
	return newStatic(mediaJSON, text), err
})

// manifestSchema: GET /schema/manifest.json
func (s *Server) manifestSchema(w http.ResponseWriter, r *http.Request) error {
	schema, err := manifestSchema()
	if err != nil {
		return err
	}
	return schema.serve(w, r)
}
