package view

import (
	"strings"

	"go-crontab/job"
)

// Problem is the body of every answer that is an error (RFC 9457).
type Problem struct {
	Type      string        `json:"type" format:"uri" doc:"The type of the problem: a name that never changes. See the table of problems."`
	Title     string        `json:"title" doc:"The type of the problem, for people."`
	Status    int           `json:"status" doc:"The HTTP status."`
	Detail    string        `json:"detail" doc:"What went wrong this time, and what to do about it."`
	Errors    []job.Problem `json:"errors,omitempty" doc:"The mistakes in the request with their places, at most 20."`
	Version   int64         `json:"version,omitempty" doc:"For a failed precondition: the current version of the object."`
	RequestID string        `json:"request_id,omitempty" doc:"The id under which the node's log has more. It is also in the header 'X-Request-Id'."`
}

// ProblemType begins the type of each problem. The name of the problem follows.
const ProblemType = "urn:go-crontab:problem:"

func (p *Problem) Error() string {
	if p.Detail == "" {
		return p.Title
	}
	return p.Title + ": " + p.Detail
}

// IsType reports whether the problem has the type with this name, such as "exists".
func (p *Problem) IsType(name string) bool { return strings.TrimPrefix(p.Type, ProblemType) == name }
