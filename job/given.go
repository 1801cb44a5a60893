package job

import "encoding/json"

// Given is what a run was given in addition to its due time. It is written with the run and does
// not change. Retries and reruns copy it.
type Given struct {
	Upstream *Upstream        `json:"upstream,omitempty"` // the run that it follows
	Params   map[string]Value `json:"params,omitempty"`   // values of parameters, from the run's request
}

// Upstream is the run whose end made another run due.
type Upstream struct {
	Job       string  `json:"job"`       // the full name of its job
	Run       int64   `json:"run"`       // its id
	Outcome   Outcome `json:"outcome"`   // how it ended
	Head      int64   `json:"head"`      // the job in which the chain of runs began
	Scheduled Micros  `json:"scheduled"` // the due time of the first run of the chain
}

// Text returns the JSON for the run's row. If nothing was given, it returns "".
func (g *Given) Text() string {
	if g == nil {
		return ""
	}
	b, _ := json.Marshal(g) // these types always encode
	if string(b) == "{}" {
		return ""
	}
	return string(b)
}

// ParseGiven parses the output of Text. A text that cannot be read counts as nothing: a row that
// was changed outside the program must not stop a node.
func ParseGiven(text string) *Given {
	if text == "" {
		return nil
	}
	g := &Given{}
	if err := json.Unmarshal([]byte(text), g); err != nil {
		return nil
	}
	if u := g.Upstream; u != nil && (u.Run < 1 || u.Scheduled < 0 || u.Scheduled > Micros(lastInstant)) {
		g.Upstream = nil
	}
	return g
}

// ScheduledAt returns the due time of the first run of a chain. A run that follows no other is the
// first itself.
func (g *Given) ScheduledAt(due Micros) Micros {
	if g == nil || g.Upstream == nil || g.Upstream.Scheduled == 0 {
		return due
	}
	return g.Upstream.Scheduled
}
