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
	{Name: tagFiles, Description: "Jobs as files have them: applied all at once, and exported."},
	{Name: tagRuns, Description: "Attempts of due times: what executes and what has ended."},
	{Name: tagBackfills, Description: "Due times of the past that are started now."},
	{Name: tagGroups, Description: "How many runs of several jobs may execute at once."},
	{Name: tagCalendars, Description: "On which days, and at which hours of them, jobs have due times."},
	{Name: tagNodes, Description: "The nodes of the cluster, and what people said about them."},
	{Name: tagHandlers, Description: "Go functions of programs that embed a node."},
	{Name: tagCluster, Description: "The cluster, pauses of apps and of all of it, and who changed what."},
	{Name: tagAccess, Description: "Who asks, and tokens: who may do what."},
	{Name: tagSecrets, Description: "What jobs use and nobody may read."},
	{
		Name:        tagAlerts,
		Description: "Who is told what goes wrong, and where: rules, channels, silences, what fired and what was sent.",
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

const aboutAPI = "The HTTP API of a cron cluster. All nodes answer alike; ask any of them.\n\n" +
	"**Values.** Ids are text. Instants are RFC 3339 with their offset. Lengths of time have their unit: `90s`, " +
	"`1h30m`. What is absent is not set. " +
	"Later versions may answer with further fields, so readers should pass over those that they do not know.\n\n" +
	"**Requests.** Fields and query parameters that nobody knows are refused: a typo is not taken for a wish to " +
	"leave something out. " +
	"A GET may be a HEAD. A change is answered once it is known to stand, or known not to.\n\n" +
	"**Lists** answer with a page: `items`, and `next` if there are more, which the next request gives as `cursor`. " +
	"What is there all the while is listed exactly once.\n\n" +
	"**Repetitions.** PUT, PATCH, DELETE, pause, resume and the like can be sent again as they are. Where an " +
	"operation takes an `Idempotency-Key`, " +
	"the same request with the same key is made once, however often it is sent within a day.\n\n" +
	"**Fields of a job** are explained in full, with examples, in `docs/jobs.md`.\n\n" +
	"**Errors** are problems (RFC 9457): `type` never changes, `detail` says what to do, and `errors` names each " +
	"place that is wrong."

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
	refusals openapi.Map[*openapi.Response] // problem answers, by the names of their types
}

// tagged are the answers with a version as ETag.
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
			Description: "Makes a repetition of the request one and the same: it is carried out once, and for 24 " +
				"hours it is answered as it was then. A key belongs to one request; with another one the answer " +
				"is 409.",
			Schema: &openapi.Schema{Type: openapi.Types{openapi.String}, MaxLength: maxKey, Pattern: "^[ -~]*$"},
		})
	}

	if op.matched {
		out.Parameters = append(out.Parameters, &openapi.Parameter{
			Name: ifMatch, In: "header", Example: `"3"`,
			Description: "The `ETag` of what is to be changed: if it has another by now, nothing is changed, and the " +
				"answer is 412. The version of a job alone, such as `\"3\"`, is about its definition.",
			Schema: textOf(""),
		})
	}

	if op.unless {
		out.Parameters = append(out.Parameters, &openapi.Parameter{
			Name: ifNoneMatch, In: "header", Example: "*",
			Description: "With `*` only what is not there is made; if it is, nothing is changed, and the answer is 412.",
			Schema:      textOf(""),
		})
	}

	if op.streams {
		out.Parameters = append(out.Parameters, &openapi.Parameter{
			Name: lastEventID, In: "header",
			Description: "Has a stream go on behind the message that had this `id`. Browsers send it by themselves.",
			Schema:      textOf(""),
		})
	}

	if op.spoken {
		out.Parameters = append(out.Parameters, &openapi.Parameter{
			Name: "Accept-Language", In: "header",
			Description: "The language of words: `zh` for Chinese, everything else for English.", Schema: textOf(""),
		})
	}

	if op.cached {
		out.Parameters = append(out.Parameters, &openapi.Parameter{
			Name: "If-None-Match", In: "header",
			Description: "The `ETag` of what the client has: if it is still the same, the answer is 304.",
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
		replies = []reply{replies[0], {status: http.StatusNotModified, about: "The client has it."}}
	}

	for _, r := range replies {
		if op.cached || slices.Contains(tagged, r.of) {
			r.headers = append(slices.Clip(r.headers), "ETag")
		}
		if op.once {
			r.headers = append(slices.Clip(r.headers), replayedHeader)
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

// refuse adds the problem answers of a route, one per status. Each names the problem types that it
// may have.
func (d *describer) refuse(rt *route, out *openapi.Operation) {
	kinds := rt.kinds()
	for len(kinds) > 0 {
		// Take all kinds of the first kind's status.
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
		// Set-Cookie removes a cookie that admits no login.
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
			Type: "http", Scheme: "bearer", Description: "An API token, as `go-crontab token create` makes them.",
		},
	},
	{
		Key: "login", Value: &openapi.SecurityScheme{
			Type: "apiKey", In: "header", Name: loginHeader,
			Description: "The `login_key` of a browser that has signed in. It counts only with the cookie of the same " +
				"sign-in, and the cookie only with it.",
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
	requestIDHeader: textHeader("By which the node's log tells more. A short and plain one of the request is kept."),
	"Location":      textHeader("The path of what was made."),
	"Retry-After": {
		Description: "After how many seconds to try again.",
		Schema:      &openapi.Schema{Type: openapi.Types{openapi.Integer}},
	},
	"Set-Cookie":       textHeader("The cookie of the browser."),
	"Content-Encoding": textHeader("`gzip`, for those that take it."),
	"Vary":             textHeader("On which header of the request the answer depends."),
	"WWW-Authenticate": textHeader("How to say who asks."),
	"ETag":             textHeader("By which `If-None-Match` knows this version again."),
	replayedHeader: {
		Description: "That this is what the request was answered before, under the same `Idempotency-Key`. Absent " +
			"otherwise.",
		Schema: openapi.Words("true"),
	},
	accelHeader:    textHeader("`no`, of streams: proxies are not to keep it back."),
	"Output-State": {Description: "Whether the run executes. Not with JSON.", Schema: openapi.Words(running, ended)},
	"Output-From": {
		Description: "Where in the output the body begins. With `raw` and `from`.",
		Schema:      &openapi.Schema{Type: openapi.Types{openapi.Integer}},
	},
	"Output-Next": {
		Description: "The byte to ask for next. With `raw` and `from`.",
		Schema:      &openapi.Schema{Type: openapi.Types{openapi.Integer}},
	},
}

func textHeader(about string) openapi.Header {
	return openapi.Header{Description: about, Schema: &openapi.Schema{Type: openapi.Types{openapi.String}}}
}

// place is a variable part of a path with the word before it: jobs/{id}.
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
