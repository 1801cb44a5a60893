package api

import (
	"regexp"
	"strconv"

	"go-crontab/api/openapi"
	"go-crontab/job"
)

// pathParts are the variable parts of paths, by the word before them.
var pathParts = map[place]pathPart{
	"jobs/{id}":          {"The id of the job.", "17", idPattern, 0},
	"versions/{version}": {"A version that the job has had.", "3", idPattern, 0},
	"diff/{other}":       {"Another version that the job has had.", "5", idPattern, 0},
	"runs/{id}":          {"The id of the run.", "274877906951", idPattern, 0},
	"backfills/{id}":     {"The id of the backfill.", "3", idPattern, 0},
	"apps/{app}":         {"The app.", "default", nil, job.MaxName},
	"jobs/{name}":        {"The name of the job. A slash in it is sent as `%2F`.", "backup", nil, job.MaxName},
	"tokens/{id}":        {"The id of the token.", "5", idPattern, 0},
	"logins/{id}":        {"The id of the sign-in.", "5", idPattern, 0},
	"groups/{name}":      {"The name of the group.", "warehouse", nil, job.MaxName},
	"calendars/{name}":   {"The name of the calendar.", "china", nil, job.MaxName},
	"nodes/{name}":       {"The name of the node.", "node-1", nil, job.MaxName},
	"handlers/{key}": {
		"The key of the handler. A slash in it is sent as `%2F`.", "billing%2Fclose-day", nil, job.MaxHandlerKey,
	},
	"secrets/{name}":  {"The name of the secret.", "shop-hook", nil, job.MaxSecretName},
	"alerts/{id}":     {"The id of the alert.", "7", idPattern, 0},
	"rules/{name}":    {"The name of the rule.", "ops", nil, job.MaxName},
	"channels/{name}": {"The name of the channel.", "chat", nil, job.MaxName},
	"silences/{id}":   {"The id of the silence.", "3", idPattern, 0},
	"docs/{file}":     {"The name of the file.", "reference.css", nil, 0},
	"assets/{file}":   {"The name of the file, as in the page.", "index-C5cQpZ0x.js", nil, 0},
}

// pathPart describes a variable part of a path.
type pathPart struct {
	about   string
	example string
	pattern *regexp.Regexp // nil: any text
	most    int            // characters
}

var idPattern = regexp.MustCompile(`^[1-9][0-9]{0,18}$`)

// idOf reads an id in a path. Only the canonical form of a number is accepted.
func idOf(text string) (id int64, ok bool) {
	if !idPattern.MatchString(text) {
		return 0, false
	}
	id, err := strconv.ParseInt(text, 10, 64)
	return id, err == nil
}

func pathParameter(p place) *openapi.Parameter {
	part := pathParts[p]
	s := &openapi.Schema{Type: openapi.Types{openapi.String}, MaxLength: part.most}
	if part.pattern != nil {
		s.Pattern = part.pattern.String()
	}
	return &openapi.Parameter{
		Name: p.name(), In: "path", Description: part.about, Required: true, Schema: s, Example: part.example,
	}
}

func queryParameter(p parameter) *openapi.Parameter {
	d := p.self()
	out := &openapi.Parameter{Name: d.name, In: "query", Description: d.about, Schema: p.schema()}
	if d.example != "" {
		out.Example = d.example
		if len(out.Schema.Type) == 1 && out.Schema.Type[0] == openapi.Integer {
			out.Example, _ = strconv.ParseInt(d.example, 10, 64) // a test checks the example
		}
	}

	if p, ok := p.(instantParam); ok {
		out.Required = p.needed
	}
	return out
}
