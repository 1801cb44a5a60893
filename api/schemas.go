package api

import (
	"reflect"
	"slices"
	"strings"

	"go-crontab/api/openapi"
	"go-crontab/api/view"
	"go-crontab/docs"
	"go-crontab/internal/auth"
	"go-crontab/internal/doctor"
	"go-crontab/job"
	"go-crontab/job/problem"
)

// newReflector returns a reflector with the special schemas of our types.
func newReflector() *openapi.Reflector {
	page := docs.JobFields()
	return &openapi.Reflector{
		Named: map[reflect.Type]openapi.Named{
			of[job.Duration](): {Name: "Duration", Schema: durationSchema},
			of[job.Value]():    {Name: "ParamValue", Schema: valueSchema},
			of[job.Size]():     {Name: "Size", Schema: sizeSchema, Input: sizeInput},
			of[job.Outcome](): words("Outcome",
				"How a run ended. A run was not started if it was `skipped` (by a policy; "+
					"with the reason code `nothing_to_do` it was started, and ended with one of `skip_exit_codes`), `missed` (no node could "+
					"start it in time) or `superseded`. For a `lost` run, it is unknown what it did.", job.Outcomes()),
			of[job.Status](): words("Status",
				"The status of a job. `finished`: it has no due time left; `error`: it cannot be planned.", []job.Status{
					job.Active, job.Paused, job.Finished, job.Broken,
				}),
			of[job.Mark](): words("Mark",
				"What is special about a due time: daylight saving skips a time of day just before it (`gap`) or repeats it "+
					"(`repeat`), or a calendar makes the day count as another day of the week (`makeup`) or is "+
					"closed on the day from which it moved (`moved`).",
				[]job.Mark{job.Gap, job.Repeat, job.Makeup, job.Moved}),
			of[job.Scope](): words("Scope", "What is paused.", []job.Scope{
				job.ScopeJob, job.ScopeApp, job.ScopeCluster,
			}),
			of[job.Overlap](): words("Overlap",
				"What happens to a due time while another run of the job is executing.", []job.Overlap{
					job.OverlapSkip, job.OverlapQueue, job.OverlapReplace, job.OverlapAllow,
				}),
			of[job.MisfirePolicy](): words("MisfirePolicy",
				"What happens to due times that no node could start in time.", []job.MisfirePolicy{
					job.MisfireLatest, job.MisfireSkip, job.MisfireAll,
				}),
			of[job.Applying](): words("Applying", "What was done with an object, or would be.", []job.Applying{
				job.Created, job.Updated, job.Unchanged, job.Deleted,
			}),
			of[job.FolderWord](): words("FolderState",
				"How a node's folder compares to the applied state: `applied`: it is the same; `behind`: it is an older applied "+
					"state; `refused`: it cannot be applied.", []job.FolderWord{
					job.FolderApplied, job.FolderBehind, job.FolderRefused,
				}),
			of[view.Severity](): words("Severity",
				"The severity. `notice`: worth knowing, but nothing is wrong; `warning`: something will go "+
					"wrong, or goes wrong for some jobs; `error`: the promise does not hold, or the cluster does not "+
					"work. A check that could not run is `unknown`.", []doctor.Severity{
					doctor.Unknown, doctor.OK, doctor.Notice, doctor.Warning, doctor.Error,
				}),
			of[view.Area](): words("DoctorArea", "The area of a check.", []doctor.Area{
				doctor.MySQL, doctor.Schema, doctor.Cluster, doctor.Host, doctor.Jobs, doctor.History,
			}),
			of[job.AlertEvent](): words("AlertEvent", "The event of an alert.", job.AlertEvents()),
			of[view.Role](): words("Role",
				"The rights of a token or person. Each role includes the ones before it: `viewer` reads, `operator` pauses, "+
					"resumes, runs and kills existing jobs, `admin` writes definitions, which means running code on "+
					"the nodes.", auth.RoleNames()),
			of[view.NodeState](): words("NodeState",
				"The state of a node. `cordoning`: it was cordoned a moment ago and may still start something. `stopping`: "+
					"its process is shutting down. `silent`: its heartbeats have stopped, and it starts nothing. `absent`: it has no session.",
				[]view.NodeState{
					view.NodeReady, view.NodeCordoning, view.NodeCordoned, view.NodeDraining, view.NodeDrained,
					view.NodeStopping, view.NodeSilent, view.NodeAbsent, view.NodeGone, view.NodeLeft,
				}),
		},

		Name:    schemaName,
		Needs:   needed,
		Instead: instead,
		Field: func(owner reflect.Type, name string, use openapi.Use, s *openapi.Schema) {
			describeField(page, owner, name, use, s)
			limitField(owner, name, use, s)
		},
	}
}

func words[T ~string](name, about string, values []T) openapi.Named {
	s := openapi.Words(values...)
	s.Description = about
	return openapi.Named{Name: name, Schema: s}
}

var (
	durationSchema = &openapi.Schema{
		Type:        openapi.Types{openapi.String},
		Pattern:     `^(|0|([0-9]+(\.[0-9]*)?(ns|us|µs|ms|s|m|h)|[0-9]+(d|w))+)$`,
		Description: "A duration: numbers with units, `ns us ms s m h`, and whole `d` (24 hours) and `w`.",
	}
	sizeSchema = &openapi.Schema{
		Type: openapi.Types{openapi.String}, Pattern: `^[0-9]+([KMGT]i)?B$`,
		Description: "A number of bytes with a unit, a power of 1024.",
	}
	valueSchema = &openapi.Schema{
		Description: "A value of a parameter: a text, a number, true or false.",
		AnyOf: []*openapi.Schema{
			{Type: openapi.Types{openapi.String}}, {Type: openapi.Types{openapi.Number}},
			{Type: openapi.Types{openapi.Boolean}},
		},
	}
	// A single schema with two types would be shorter, but client generators do not support it.
	sizeInput = &openapi.Schema{
		Description: "A number of bytes with a unit, a power of 1024: `512MiB`, `2GiB`; or a plain number of bytes.",
		AnyOf: []*openapi.Schema{
			{Type: openapi.Types{openapi.String}, Pattern: `^[0-9]+ *([kKmMgGtT]([iI][bB]?)?|[bB])?$`},
			{Type: openapi.Types{openapi.Integer}, Minimum: openapi.Bound(0)},
		},
	}
)

// schemaNames are the schema names that are not derived from the Go type.
var schemaNames = map[reflect.Type]string{
	of[calendarBody]():     "Calendar",
	of[newJobBody]():       "NewJob",
	of[job.GroupSpec]():    "ManifestGroup",
	of[job.CalendarSpec](): "NewCalendar",
	of[job.Spec]():         "Definition",
	of[job.Problem]():      "FieldProblem",
	of[problem.Text]():     "Message",
	of[job.HTTP]():         "HTTPCall",
	of[job.HTTPTLS]():      "HTTPTLS",
	of[job.HTTPSign]():     "HTTPSign",
	of[job.AlertRule]():    "ManifestRule",
	of[job.AlertChannel](): "ManifestChannel",
}

// schemaName names the schema of a struct after its Go type.
func schemaName(t reflect.Type) string {
	if name, ok := schemaNames[t]; ok {
		return name
	}

	name, inner, generic := strings.Cut(t.Name(), "[")
	if generic { // such as Page[*go-crontab/api/view.Job]
		inner = strings.TrimSuffix(inner, "]")
		inner = inner[strings.LastIndexByte(inner, '.')+1:]
		return inner + name
	}

	return camel(strings.TrimSuffix(name, "Body"))
}

// ignored are request fields that have no effect. Answers have these fields, and a client may send
// an answer back.
var ignored = map[reflect.Type][]string{
	of[view.Job]():       readOnly,
	of[calendarBody]():   calendarReadOnly,
	of[view.Group]():     groupReadOnly,
	of[view.AppLimits](): limitsReadOnly,
	of[view.Retention](): retentionReadOnly,

	of[view.AlertRule]():    alertReadOnly,
	of[view.AlertChannel](): channelReadOnly,
}

// instead replaces the schemas of ignored request fields.
func instead(owner reflect.Type, name string, use openapi.Use) *openapi.Schema {
	if use != openapi.Answer && slices.Contains(ignored[owner], name) {
		return &openapi.Schema{ReadOnly: true, Description: "Set by the server; ignored in requests."}
	}
	return nil
}

// onPage is the prefix of a type's fields in docs/jobs.md. A field with a doc tag is described by
// the tag instead.
var onPage = map[reflect.Type]string{
	of[view.Job]():     "",
	of[job.Spec]():     "",
	of[newJobBody]():   "",
	of[manifestJob]():  "",
	of[previewBody]():  "",
	of[job.HTTP]():     "http.",
	of[job.HTTPTLS]():  "http.tls.",
	of[job.HTTPSign](): "http.sign.",
	of[job.Ping]():     "ping.",
	of[job.Limits]():   "limits.",
	of[job.Misfire]():  "misfire.",
	of[job.After]():    "after.",
	of[job.Retry]():    "retry.",
	of[job.Keep]():     "keep.",
	of[job.Capture]():  "output.",
	of[job.Weeks]():    "weeks.",
}

// objects describes fields that are objects. The page lists the fields inside them separately.
var objects = map[string]string{
	"http":      "An HTTP request to send, instead of a command.",
	"http.tls":  "TLS settings for https, if the system's certificates are not enough.",
	"http.sign": "Signs requests with HMAC-SHA256.",
	"ping": "An address to call when a due time has ended, such as an external monitor that raises an alarm if " +
		"the call is missing.",
	"limits":  "Resource limits of the command.",
	"misfire": "What happens to due times that no node could start in time.",
	"keep": "Which records of the job's runs are kept, with their output. Fields that are left out come from the " +
		"rule of " +
		"its app, and then from the cluster's.",
	"output": "How much of the output of each run is kept, and in which form.",
	"retry":  "Whether and when an attempt that did not succeed is retried.",
	"weeks":  "Which weeks of the cron expressions are kept, such as every second one.",
}

// describeField describes a field of a job with the text of docs/jobs.md. In a request it also adds
// the default and the limits.
func describeField(page map[string]docs.Field, owner reflect.Type, name string, use openapi.Use, s *openapi.Schema) {
	prefix, ok := onPage[owner]
	if !ok || s.Description != "" {
		return
	}

	f, ok := page[prefix+name]
	if !ok {
		s.Description = objects[prefix+name]
		return
	}

	s.Description = sentence(f.Meaning)
	if use == openapi.Answer {
		return
	}
	if f.Default != "" {
		s.Description += " Default: " + f.Default + "."
	}
	if f.Limits != "" {
		s.Description += " Limits: " + f.Limits + "."
	}

	s.Default, s.Examples = f.Preset, f.Values
}

// sentence makes a text a sentence: it adds a capital letter and a full stop.
func sentence(s string) string {
	if s == "" {
		return s
	}
	return strings.ToUpper(s[:1]) + s[1:] + "."
}
