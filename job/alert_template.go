package job

import (
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"text/template"
	"text/template/parse"
	"time"

	"go-crontab/job/problem"
)

// Templates use Go's text/template with limits, so that every template ends soon with a small
// result. A template cannot call another template. A range covers only lists, and cannot contain
// another range. The results of functions are bounded.

// Bounds of rendering.
const (
	MaxRendered  = 16 << 10 // bytes
	templateTime = 500 * time.Millisecond
	checkTime    = templateTime / 5 // when a rule is saved
)

// AlertItem is an event of a message, in the form for templates and webhooks.
type AlertItem struct {
	What     string     `json:"what" doc:"'fired', 'repeated' (still firing), 'resolved' (it has ended), 'info' (it started or succeeded) or 'test'."`
	Event    AlertEvent `json:"event" doc:"The event that it is about."`
	Severity string     `json:"severity" doc:"The severity of the rule."`
	AlertID  string     `json:"alert_id,omitempty" doc:"The id of the alert, for GET /api/v1/alerts/{id}."`
	Rule     string     `json:"rule" doc:"The rule that found it."`
	App      string     `json:"app,omitempty" doc:"The app of the job."`
	JobID    string     `json:"job_id,omitempty" doc:"The id of the job."`
	Job      string     `json:"job,omitempty" doc:"The name of the job."`
	Owner    string     `json:"owner,omitempty" doc:"The owner of the job."`
	Node     string     `json:"node,omitempty" doc:"The node that executed the run, or that has a problem."`
	Run      string     `json:"run,omitempty" doc:"The latest run that it is about."`
	Summary  string     `json:"summary" doc:"What happened, in one line."`
	At       string     `json:"at" format:"date-time" doc:"When it happened."`
	Since    string     `json:"since" format:"date-time" doc:"When the alert began to fire."`
	Seen     int64      `json:"seen" doc:"How often it has happened since."`

	// Only in messages, from the run.
	Due     string `json:"due,omitempty" format:"date-time" doc:"In messages: the scheduled time of the run, in the time zone of the job."`
	Zone    string `json:"zone,omitempty" doc:"In messages: the time zone of the job."`
	Output  string `json:"output,omitempty" doc:"In messages, for the first 3 events: the last lines of the run's output, at most 10 lines and 1 KiB."`
	URL     string `json:"url,omitempty" doc:"In messages: the page of the console about it, if the nodes have --public-url."`
	Command string `json:"command,omitempty" doc:"In messages: the command that shows more."`
}

// AlertMessage is the input of templates.
type AlertMessage struct {
	Key      string      `json:"key" doc:"The key of the message, which a repeated message has too. A receiver can drop a message whose key it already has."`
	Channel  string      `json:"channel" doc:"The channel that it goes to."`
	Rule     string      `json:"rule" doc:"The rule that it comes from."`
	Severity string      `json:"severity" doc:"The severity of the rule."`
	Title    string      `json:"title" doc:"What happened, in one line; from the rule's template, if it has one."`
	Text     string      `json:"text" doc:"The text for people; from the rule's template, if it has one."`
	Count    int64       `json:"count" doc:"How many events it contains."`
	More     int64       `json:"more" doc:"How many events are not in the items."`
	Items    []AlertItem `json:"items" doc:"The first events, at most 20."`
}

// checkTemplate adds the problems of a template.
func checkTemplate(p *Problems, field, text string) {
	if text == "" {
		return
	}

	if len(text) > MaxTemplate {
		p.Add(field, problem.TooManyBytes, len(text), MaxTemplate)
		return
	}

	r := &rendering{end: time.Now().Add(checkTime)}
	t, err := parseTemplate(text, r)
	if err != nil {
		p.Put(field, problem.Of(err))
		return
	}

	// Parsing accepts unknown fields; only rendering finds them.
	for _, m := range samples() {
		r.out.Reset()
		if err := execute(t, r, m); err != nil && strings.Contains(err.Error(), "can't evaluate field ") {
			p.Put(field, problem.Of(err))
			return
		}
	}
}

// samples returns two messages for testing templates. One has a single event. The other has very
// many events, half of them without a job.
func samples() []*AlertMessage {
	const at = "2027-01-30T02:00:00Z"
	item := func(what string) AlertItem {
		return AlertItem{What: what, Event: AlertFailed, Severity: "critical", AlertID: "7", Rule: "rule", App: "app",
			JobID: "17", Job: "job", Owner: "owner", Node: "node", Run: "run",
			Summary: "summary", At: at, Since: at, Seen: 1,
			Due: at, Zone: "UTC", Output: "output", URL: "https://cron.example.com/runs/1", Command: "command"}
	}

	one := &AlertMessage{
		Key: "key", Channel: "channel", Rule: "rule", Severity: "critical", Title: "title", Text: "text", Count: 1,
		Items: []AlertItem{item("fired")},
	}
	many := &AlertMessage{
		Key: "key", Channel: "channel", Rule: "rule", Severity: "info", Title: "title", Text: "text", Count: 332,
		More: 312,
	}
	for i := range 20 {
		it := item([]string{"resolved", "repeated", "fired", "test", "resolved"}[i%5])
		if i%2 == 0 {
			it.App, it.JobID, it.Job, it.Owner, it.Run, it.Event, it.Severity, it.Seen = "", "", "", "", "",
				AlertNodeGone, "info", 3
		}
		many.Items = append(many.Items, it)
	}

	return []*AlertMessage{one, many}
}

// Render renders a template. It ends within about a second, whatever the template does. If there is
// no text, the error says why.
func Render(text string, m *AlertMessage) (string, error) {
	r := &rendering{end: time.Now().Add(templateTime)}
	t, err := parseTemplate(text, r)
	if err != nil {
		return "", err
	}
	if err := execute(t, r, m); err != nil {
		return "", err
	}
	return r.out.String(), nil
}

func execute(t *template.Template, r *rendering, m *AlertMessage) (err error) {
	defer func() {
		if p := recover(); p != nil {
			err = fmt.Errorf("the template panics: %v", p)
		}
	}()
	if err := t.Execute(r, m); err != nil {
		return problem.Errorf(problem.Template, shortError(err))
	}
	return nil
}

func shortError(err error) string {
	text := strings.TrimPrefix(err.Error(), "template: ")
	if len(text) > 300 {
		text = strings.ToValidUTF8(text[:300], "") + "…"
	}
	return text
}

// rendering is an execution of a template.
type rendering struct {
	out strings.Builder
	end time.Time
}

func (r *rendering) Write(b []byte) (int, error) {
	if err := r.bound(r.out.Len() + len(b)); err != nil {
		return 0, err
	}
	return r.out.Write(b)
}

func (r *rendering) bound(n int) error {
	switch {
	case n > MaxRendered:
		return fmt.Errorf("it produces more than %d bytes", MaxRendered)
	case time.Now().After(r.end):
		return fmt.Errorf("it takes longer than %s", templateTime)
	}
	return nil
}

// funcs returns the functions for templates: Go's functions that make texts, with a bounded result,
// and some more.
func (r *rendering) funcs() template.FuncMap {
	bounded := func(f func(...any) string) func(...any) (string, error) {
		return func(args ...any) (string, error) {
			n := 0
			for _, a := range args {
				if s, ok := a.(string); ok {
					n += len(s)
				}
			}
			if err := r.bound(n); err != nil {
				return "", err
			}
			s := f(args...)
			return s, r.bound(len(s))
		}
	}

	text := func(f func(string) string) func(any) (string, error) {
		one := bounded(func(args ...any) string { return f(fmt.Sprint(args...)) })
		return func(v any) (string, error) { return one(v) }
	}

	return template.FuncMap{
		"print":   bounded(fmt.Sprint),
		"println": bounded(fmt.Sprintln),
		"printf": func(format string, args ...any) (string, error) {
			// A width such as %999999d would make a huge text.
			digits := 0
			for _, c := range format {
				if digits++; c < '0' || c > '9' {
					digits = 0
				}
				if digits > 3 || c == '*' {
					return "", errors.New("printf: a width of four digits, or *, is not allowed")
				}
			}
			return bounded(func(args ...any) string { return fmt.Sprintf(format, args...) })(args...)
		},
		"html":     bounded(template.HTMLEscaper),
		"js":       bounded(template.JSEscaper),
		"urlquery": bounded(template.URLQueryEscaper),
		"upper":    text(strings.ToUpper),
		"lower":    text(strings.ToLower),
		"json": func(v any) (string, error) {
			if err := r.bound(0); err != nil {
				return "", err
			}
			b, err := json.Marshal(v)
			if err != nil {
				return "", err
			}
			return string(b), r.bound(len(b))
		},
	}
}

func parseTemplate(text string, r *rendering) (*template.Template, error) {
	t, err := template.New("template").Option("missingkey=error").Funcs(r.funcs()).Parse(text)
	if err != nil {
		return nil, problem.Errorf(problem.Template, shortError(err))
	}

	if len(t.Templates()) > 1 || t.Tree == nil && strings.Contains(text, "define") {
		return nil, problem.Errorf(problem.TemplateDefines)
	}

	if t.Tree == nil {
		return nil, problem.Errorf(problem.TemplateEmpty)
	}

	return t, checkNodes(t.Root, 0)
}

// checkNodes refuses constructs that can make a huge text.
func checkNodes(n parse.Node, ranges int) error {
	switch n := n.(type) {
	case *parse.ListNode:
		if n == nil {
			return nil
		}
		for _, c := range n.Nodes {
			if err := checkNodes(c, ranges); err != nil {
				return err
			}
		}
	case *parse.TemplateNode:
		return problem.Errorf(problem.TemplateCalls)
	case *parse.IfNode:
		return checkBranch(&n.BranchNode, ranges)
	case *parse.WithNode:
		return checkBranch(&n.BranchNode, ranges)
	case *parse.RangeNode:
		if ranges > 0 {
			return problem.Errorf(problem.TemplateRangeInRange)
		}
		if !isItems(n.Pipe) {
			return problem.Errorf(problem.TemplateRange)
		}
		return checkBranch(&n.BranchNode, ranges+1)
	}

	return nil
}

func checkBranch(b *parse.BranchNode, ranges int) error {
	if err := checkNodes(b.List, ranges); err != nil {
		return err
	}
	return checkNodes(b.ElseList, ranges)
}

// isItems reports whether a range covers the items of the message.
func isItems(p *parse.PipeNode) bool {
	if len(p.Cmds) != 1 || len(p.Cmds[0].Args) != 1 {
		return false
	}

	switch a := p.Cmds[0].Args[0].(type) {
	case *parse.FieldNode:
		return len(a.Ident) == 1 && a.Ident[0] == "Items"
	case *parse.VariableNode:
		return len(a.Ident) == 2 && a.Ident[0] == "$" && a.Ident[1] == "Items"
	}

	return false
}
