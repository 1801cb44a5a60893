package view

import (
	"strings"

	"go-crontab/job"
)

// Problem is the body of every answer that is an error (RFC 9457).
type Problem struct {
	Type      string        `json:"type" format:"uri" doc:"What went wrong, as a name that never changes. See the table of problems."`
	Title     string        `json:"title" doc:"The same for people."`
	Status    int           `json:"status" doc:"The HTTP status."`
	Detail    string        `json:"detail" doc:"What went wrong this time, and what to do about it."`
	Errors    []job.Problem `json:"errors,omitempty" doc:"What is wrong with the request, at which place. At most 20 are told."`
	Version   int64         `json:"version,omitempty" doc:"Of a precondition that did not hold: the version at which it is."`
	RequestID string        `json:"request_id,omitempty" doc:"By which the node's log tells more; it is in the header 'X-Request-Id' too."`
}

// ProblemType is the beginning of the types of problems; a name follows.
const ProblemType = "urn:go-crontab:problem:"

func (p *Problem) Error() string {
	if p.Detail == "" {
		return p.Title
	}
	return p.Title + ": " + p.Detail
}

// IsType reports whether the problem has the type with this name, such as "exists".
func (p *Problem) IsType(name string) bool { return strings.TrimPrefix(p.Type, ProblemType) == name }
