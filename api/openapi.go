package api

import (
	"encoding/json"
	"net/http"
	"reflect"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"go-crontab/api/openapi"
	"go-crontab/api/view"
)

// Tags of operations.
const (
	tagJobs      = "Jobs"
	tagRuns      = "Runs"
	tagBackfills = "Backfills"
	tagFiles     = "Files"
	tagGroups    = "Groups"
	tagCalendars = "Calendars"
	tagNodes     = "Nodes"
	tagHandlers  = "Handlers"
	tagCluster   = "Cluster"
	tagAccess    = "Access"
	tagSecrets   = "Secrets"
	tagAlerts    = "Alerts"
	tagNode      = "This node"
)

// tags are in the order of the reference.
var tags = []openapi.Tag{
	{Name: tagJobs, Description: "What to run, when, and under which policies."},
	{Name: tagFiles, Description: "Jobs in the form of files: applied all at once, and exported."},
	{Name: tagRuns, Description: "Attempts of due times, running and ended."},
	{Name: tagBackfills, Description: "Start due times of the past."},
	{Name: tagGroups, Description: "Limits on how many runs of several jobs execute at once."},
	{Name: tagCalendars, Description: "The days, and the hours of them, on which jobs have due times."},
	{Name: tagNodes, Description: "The nodes of the cluster, and their cordons and drains."},
	{Name: tagHandlers, Description: "Go functions of programs that embed a node."},
	{Name: tagCluster, Description: "The cluster, pauses of apps and of the whole cluster, and the audit."},
	{Name: tagAccess, Description: "Callers, sign-ins and tokens, and their roles."},
	{Name: tagSecrets, Description: "Values that jobs can use, but nobody can read."},
	{
		Name:        tagAlerts,
		Description: "Alert rules, channels and silences; alerts that fired, and messages that were sent.",
	},
	{Name: tagNode, Description: "The node that answers, and this reference."},
}

// Media types.
const (
	mediaJSON    = "application/json"
	mediaPatch   = "application/merge-patch+json"
	mediaProblem = "application/problem+json"
	mediaPlain   = "text/plain"
	mediaBytes   = "application/octet-stream"
	mediaHTML    = "text/html"
	mediaCSV     = "text/csv"
	mediaICS     = "text/calendar"
	mediaAny     = "*/*"
	mediaYAML    = "application/yaml"
	mediaCSS     = "text/css"
	mediaScript  = "text/javascript"
	mediaSVG     = "image/svg+xml"
	mediaEvents  = "text/event-stream"
)

const aboutAPI = "The HTTP API of a cron cluster. All nodes are equal, so use any of them.\n\n" +
	"**Values.** Ids are text. Times are in RFC 3339, with an offset. Durations have a unit: `90s`, " +
	"`1h30m`. A field that is absent is not set. " +
	"Later versions may add fields to answers, so clients should ignore fields that they do not know.\n\n" +
	"**Requests.** Unknown fields and query parameters are refused, so that a typo is not mistaken for a field that " +
	"was left out. " +
	"HEAD works wherever GET does. JSON that GET answers is compressed for clients that accept `gzip`. A change is answered once it is known whether it was made.\n\n" +
	"**Lists** answer with a page: `items`, and `next` if there are more. The next request gives `next` as `cursor`. " +
	"Objects that exist during the whole listing are listed exactly once.\n\n" +
	"**Repetitions.** PUT, PATCH, DELETE, pause, resume and the like can be repeated safely. Where an " +
	"operation accepts an `Idempotency-Key`, " +
	"the same request with the same key is carried out once, however often it is sent within a day.\n\n" +
	"**Fields of a job** are explained with examples in `docs/jobs.md`.\n\n" +
	"**Errors** are problems (RFC 9457): `type` never changes, `detail` says what to do, and `errors` lists each " +
	"mistake with its place."

// newDocument describes routes as an OpenAPI document.
func newDocument(routes []route, version string) *openapi.Document {
	d := &describer{types: newReflector()}
	doc := &openapi.Document{
		OpenAPI: openapi.Version,
		Info: openapi.Info{
			Title: "go-crontab", Summary: "Jobs, runs and nodes of a cron cluster", Description: aboutAPI,
			Version: version,
		},
		Tags: tags,
	}

	for i := range routes {
		rt := &routes[i]
		if rt.doc == nil {
			continue // a test reports it
		}
		methods, _ := doc.Paths.Get(rt.pattern)
		methods.Set(strings.ToLower(rt.method), d.operation(rt))
		doc.Paths.Set(rt.pattern, methods)
	}

	doc.Components.SecuritySchemes = waysIn
	doc.Components.Schemas = d.types.Schemas()
	d.refusals.Sort()
	doc.Components.Responses = d.refusals
	return doc
}

// describer collects the components that operations refer to.
type describer struct {
	types    *openapi.Reflector
	refusals openapi.Map[*openapi.Response] // answers with problems, by the names of their problem types
}

// tagged are the types of answers whose ETag is the object's version.
var tagged = []reflect.Type{
	of[view.Job](), of[*view.Job](), of[view.Calendar](), of[view.AlertRule](), of[view.AlertChannel](),
}

func (d *describer) operation(rt *route) *openapi.Operation {
	op := rt.doc
	out := &openapi.Operation{Tags: []string{op.tag}, Summary: op.summary, Description: op.about, OperationID: op.id}
	for _, place := range placesIn(rt.pattern) {
		out.Parameters = append(out.Parameters, pathParameter(place))
	}

	for _, p := range op.query {
		out.Parameters = append(out.Parameters, queryParameter(p))
	}

	if op.keyed || op.once {
		out.Parameters = append(out.Parameters, &openapi.Parameter{
			Name: keyHeader, In: "header", Example: "once-2027-01-31",
			Description: "Makes the request safe to repeat: it is carried out once, and for 24 " +
				"hours repetitions get the same answer. A key belongs to one request; with another request the answer " +
				"is 409.",
			Schema: &openapi.Schema{Type: openapi.Types{openapi.String}, MaxLength: maxKey, Pattern: "^[ -~]*$"},
		})
	}

	if op.matched {
		out.Parameters = append(out.Parameters, &openapi.Parameter{
			Name: ifMatch, In: "header", Example: `"3"`,
			Description: "The `ETag` of the object. If the object has another one by now, nothing is changed, and the " +
				"answer is 412. The version of a job alone, such as `\"3\"`, compares only its definition.",
			Schema: textOf(""),
		})
	}

	if op.unless {
		out.Parameters = append(out.Parameters, &openapi.Parameter{
			Name: ifNoneMatch, In: "header", Example: "*",
			Description: "With `*`, the object is only created. If it already exists, nothing is changed, and the answer " +
				"is 412.",
			Schema: textOf(""),
		})
	}

	if op.streams {
		out.Parameters = append(out.Parameters, &openapi.Parameter{
			Name: lastEventID, In: "header",
			Description: "Continues a stream after the message with this `id`. Browsers send it by themselves.",
			Schema:      textOf(""),
		})
	}

	if op.spoken {
		out.Parameters = append(out.Parameters, &openapi.Parameter{
			Name: "Accept-Language", In: "header",
			Description: "The language of schedules in words: `zh` for Chinese, anything else for English.", Schema: textOf(""),
		})
	}

	if op.cached {
		out.Parameters = append(out.Parameters, &openapi.Parameter{
			Name: "If-None-Match", In: "header",
			Description: "The `ETag` of the client's copy. If it is still current, the answer is 304.",
			Schema:      textOf(""),
		})
	}

	if !rt.may.open {
		for _, way := range waysIn {
			if way.Key == passwordWay && !rt.may.password {
				continue
			}
			out.Security = append(out.Security, map[string][]string{way.Key: {rt.may.role.String()}})
		}
	}

	if op.body != nil {
		out.RequestBody = d.body(rt.method, op.body)
	}

	replies := op.replies
	if op.cached {
		replies = []reply{replies[0], {status: http.StatusNotModified, about: "The client's copy is current."}}
	}

	for _, r := range replies {
		if op.cached || slices.Contains(tagged, r.of) {
			r.headers = append(slices.Clip(r.headers), "ETag")
		}
		if op.once {
			r.headers = append(slices.Clip(r.headers), replayedHeader)
		}
		if rt.method == http.MethodGet && (r.of != nil || slices.Contains(r.media, mediaJSON)) { // see compressed
			r.headers = append(slices.Clip(r.headers), "Content-Encoding", "Vary")
		}
		out.Responses.Set(strconv.Itoa(r.status), d.reply(r))
	}

	d.refuse(rt, out)
	return out
}

func (d *describer) body(method string, b *requestBody) *openapi.RequestBody {
	out := &openapi.RequestBody{Description: b.about, Required: !b.optional}
	if b.files != nil {
		example, _ := json.Marshal(b.example) // marshalling a text cannot fail
		for i, media := range b.files {
			m := &openapi.Media{Schema: &openapi.Schema{Type: openapi.Types{openapi.String}}}
			if i == 0 {
				m.Example = example
			}
			out.Content.Set(media, m)
		}
		return out
	}

	m := &openapi.Media{Schema: d.types.Of(b.of, b.use()), Example: json.RawMessage(b.example)}
	out.Content.Set(mediaJSON, m)
	if method == http.MethodPatch {
		out.Content.Set(mediaPatch, m)
	}
	return out
}

func (d *describer) reply(r reply) *openapi.Response {
	out := &openapi.Response{Description: r.about}
	setHeaders(&out.Headers, append(slices.Clone(r.headers), requestIDHeader))
	if r.of != nil {
		out.Content.Set(mediaJSON, &openapi.Media{Schema: d.types.Of(r.of, openapi.Answer), Example: exampleOf(r.of)})
	}
	if r.stream != nil {
		out.Content.Set(mediaEvents, &openapi.Media{Schema: d.types.Of(r.stream, openapi.Answer)})
	}

	for _, media := range r.media {
		s := textOf("")
		if media == mediaJSON || media == mediaYAML { // it has no Go type
			s = &openapi.Schema{Type: openapi.Types{openapi.Object}}
		}
		out.Content.Set(media, &openapi.Media{Schema: s})
	}

	return out
}

// refuse adds the answers with problems of a route, one per status. Each answer names the problem
// types that it may have.
func (d *describer) refuse(rt *route, out *openapi.Operation) {
	kinds := rt.kinds()
	for len(kinds) > 0 {
		// Take all kinds with the same status as the first kind.
		status := kinds[0].status
		with := func(k kind) bool { return k.status == status }
		var same []kind
		for _, k := range kinds {
			if with(k) {
				same = append(same, k)
			}
		}

		kinds = slices.DeleteFunc(kinds, with)
		if r, ok := out.Responses.Get(strconv.Itoa(status)); ok { // the status has a normal answer, too
			r.Content.Set(mediaProblem, d.problems(same))
			continue
		}

		name := ""
		for i, k := range same {
			if i > 0 {
				name += "Or"
			}
			name += camel(k.name)
		}

		if _, ok := d.refusals.Get(name); !ok {
			d.refusals.Set(name, d.refusal(same))
		}
		out.Responses.Set(strconv.Itoa(status), &openapi.Response{Ref: "#/components/responses/" + name})
	}

	out.Responses.Sort()
}

// refusal is the answer with a problem of the given types.
func (d *describer) refusal(kinds []kind) *openapi.Response {
	out := &openapi.Response{}
	for i, k := range kinds {
		if i > 0 {
			out.Description += "\n\n"
		}
		out.Description += "`" + k.name + "`: " + docOf(k).means
	}

	headers := []string{requestIDHeader}
	switch kinds[0].status {
	case http.StatusServiceUnavailable, http.StatusTooManyRequests:
		headers = append(headers, "Retry-After")
	case http.StatusPreconditionFailed:
		headers = append(headers, "ETag")
	case http.StatusUnauthorized:
		// Set-Cookie removes a cookie that belongs to no login.
		headers = append(headers, "WWW-Authenticate", "Set-Cookie")
	}

	setHeaders(&out.Headers, headers)
	out.Content.Set(mediaProblem, d.problems(kinds))
	return out
}

func (d *describer) problems(kinds []kind) *openapi.Media {
	types := make([]string, len(kinds))
	for i, k := range kinds {
		types[i] = view.ProblemType + k.name
	}
	s := d.types.Of(of[view.Problem](), openapi.Answer)
	s.Properties.Set("type", openapi.Words(types...))
	return &openapi.Media{Schema: s}
}

func docOf(k kind) problemDoc {
	i := slices.IndexFunc(problemTable, func(p problemDoc) bool { return p.kind == k })
	if i < 0 {
		return problemDoc{kind: k}
	}
	return problemTable[i]
}

// camel turns not-found into NotFound.
func camel(name string) string {
	out := ""
	for word := range strings.SplitSeq(name, "-") {
		out += strings.ToUpper(word[:1]) + word[1:]
	}
	return out
}

// waysIn are the ways to authenticate.
var waysIn = openapi.Map[*openapi.SecurityScheme]{
	{
		Key: "token", Value: &openapi.SecurityScheme{
			Type: "http", Scheme: "bearer", Description: "An API token, created with `go-crontab token create`.",
		},
	},
	{
		Key: "login", Value: &openapi.SecurityScheme{
			Type: "apiKey", In: "header", Name: loginHeader,
			Description: "The `login_key` of a signed-in browser. It is only valid together with the cookie of the same " +
				"sign-in, and the cookie only together with it.",
		},
	},
	{
		Key: passwordWay, Value: &openapi.SecurityScheme{
			Type: "http", Scheme: "basic",
			Description: "An API token of role `viewer` as the password, with any user name: for programs that show " +
				"calendars.",
		},
	},
}

const passwordWay = "password"

const requestIDHeader = "X-Request-Id"

func setHeaders(to *openapi.Map[*openapi.Header], names []string) {
	for _, name := range names {
		h, ok := replyHeaders[name]
		if !ok {
			panic("api: header " + name + " has no line in replyHeaders")
		}
		to.Set(name, &h)
	}
}

// replyHeaders are the headers that answers may have.
var replyHeaders = map[string]openapi.Header{
	requestIDHeader: textHeader("The id under which the node's log has more. If the request has a short, plain id, " +
		"that one is used."),
	"Location": textHeader("The path of the new object."),
	"Retry-After": {
		Description: "The number of seconds after which to try again.",
		Schema:      &openapi.Schema{Type: openapi.Types{openapi.Integer}},
	},
	"Set-Cookie":       textHeader("The cookie of the browser."),
	"Content-Encoding": textHeader("`gzip`, for clients that accept it."),
	"Vary":             textHeader("The headers of the request on which the answer depends."),
	"WWW-Authenticate": textHeader("How to authenticate."),
	"ETag":             textHeader("The tag of this version, for `If-Match` and `If-None-Match`."),
	replayedHeader: {
		Description: "Present if this is the stored answer to an earlier request with the same `Idempotency-Key`. Absent " +
			"otherwise.",
		Schema: openapi.Words("true"),
	},
	accelHeader: textHeader("`no`, for streams: proxies must not buffer it."),
	"Output-State": {Description: "Whether the run is still executing. Not with " +
		"JSON.", Schema: openapi.Words(running, ended)},
	"Output-Pending": {
		Description: "Present if its node is still writing parts of the output. Ask again in a second. Not with JSON.",
		Schema:      openapi.Words("true"),
	},
	"Output-From": {
		Description: "The position in the output at which the body begins. With `raw` and `from`.",
		Schema:      &openapi.Schema{Type: openapi.Types{openapi.Integer}},
	},
	"Output-Next": {
		Description: "The value of `from` for the next request. With `raw` and `from`.",
		Schema:      &openapi.Schema{Type: openapi.Types{openapi.Integer}},
	},
}

func textHeader(about string) openapi.Header {
	return openapi.Header{Description: about, Schema: &openapi.Schema{Type: openapi.Types{openapi.String}}}
}

// place is a variable part of a path and the word before it: jobs/{id}.
type place string

func (p place) name() string {
	return strings.Trim(string(p[strings.IndexByte(string(p), '{'):]), "{}")
}

var placePattern = regexp.MustCompile(`[a-z]+/\{[a-z]+\}`)

func placesIn(pattern string) []place {
	var out []place
	for _, p := range placePattern.FindAllString(pattern, -1) {
		out = append(out, place(p))
	}
	return out
}
