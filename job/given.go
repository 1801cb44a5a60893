package job

import "encoding/json"

// Given is what a run was given besides its due time. It is written with the run, and does not
// change: retries and reruns copy it.
type Given struct {
	Upstream *Upstream        `json:"upstream,omitempty"` // the run that it follows
	Params   map[string]Value `json:"params,omitempty"`   // values of parameters, as its request gave them
}

// Upstream is the run whose end made another run due.
type Upstream struct {
	Job       string  `json:"job"`       // the full name of its job
	Run       int64   `json:"run"`       // its id
	Outcome   Outcome `json:"outcome"`   // how it ended
	Head      int64   `json:"head"`      // the job in which the chain of runs began
	Scheduled Micros  `json:"scheduled"` // the due time of the first run of the chain
}

// Text returns the JSON that the run's row has; "" if nothing was given.
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
// somebody has changed by hand must not stop a node.
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

// ScheduledAt returns the due time of the first run of a chain: its own for a run that follows none.
func (g *Given) ScheduledAt(due Micros) Micros {
	if g == nil || g.Upstream == nil || g.Upstream.Scheduled == 0 {
		return due
	}
	return g.Upstream.Scheduled
}
