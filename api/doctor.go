package api

import (
	"net/http"
	"strconv"

	"go-crontab/internal/doctor"
)

// doctorView is the report of the doctor.
type doctorView struct {
	At       string          `json:"at" format:"date-time" doc:"When it was looked, by MySQL's clock."`
	Node     string          `json:"node" doc:"The node that looked. What is said of a machine is said of its own."`
	Version  string          `json:"version" doc:"Its version."`
	Server   string          `json:"server" doc:"What the database says it is."`
	Worst    doctor.Severity `json:"worst" doc:"How bad the worst finding is; 'ok' when there is none."`
	Findings []*findingView  `json:"findings" doc:"What is not as it should be, the worst first."`
	Checks   []checkedView   `json:"checks" doc:"All that was looked at, always in the same order."`
}

type findingView struct {
	Check    string          `json:"check" doc:"The id of the check that found it. It never changes."`
	Code     doctor.Code     `json:"code,omitempty" doc:"What was found, where the check can find several things. It never changes."`
	Area     doctor.Area     `json:"area" doc:"What it is about."`
	Severity doctor.Severity `json:"severity" doc:"How bad it is."`
	Seen     string          `json:"seen" doc:"What was seen."`
	Why      string          `json:"why" doc:"Why that matters."`
	Fix      string          `json:"fix" doc:"How it is mended."`
	SQL      []string        `json:"sql,omitempty" doc:"Statements that mend it."`
	Commands []string        `json:"commands,omitempty" doc:"Commands that mend it, or show more."`
	Jobs     []jobMention    `json:"jobs,omitempty" doc:"Jobs that it is about, at most ten of them."`
	Nodes    []string        `json:"nodes,omitempty" doc:"Nodes that it is about."`
}

type jobMention struct {
	ID   string `json:"id" doc:"The id of the job."`
	App  string `json:"app" doc:"Its app."`
	Name string `json:"name" doc:"Its name."`
}

type checkedView struct {
	ID       string          `json:"id" doc:"The id of the check. It never changes."`
	Area     doctor.Area     `json:"area" doc:"What it is about."`
	About    string          `json:"about" doc:"What is so when it finds nothing."`
	Severity doctor.Severity `json:"severity" doc:"How bad the worst is that it found; 'unknown' when it could not look."`
	Skipped  string          `json:"skipped,omitempty" doc:"Why it could not look."`
}

// examine: GET /api/v1/doctor
func (s *Server) examine(w http.ResponseWriter, r *http.Request) error {
	p := doctor.Patient{DB: s.cfg.DB}
	if s.cfg.Machine != nil {
		p.Machine = s.cfg.Machine()
	}

	found, err := doctor.Examine(r.Context(), p)
	if err != nil {
		return err
	}

	v := doctorView{
		At: stamp(found.At), Node: s.cfg.Node, Version: s.cfg.Version, Server: found.Server, Worst: found.Worst,
		Findings: []*findingView{},
	}

	for _, f := range found.Findings {
		view := &findingView{
			Check: f.Check, Code: f.Code, Area: f.Area, Severity: f.Severity, Seen: f.Seen, Why: f.Why, Fix: f.Fix,
			SQL: f.SQL, Commands: f.Commands, Nodes: f.Nodes,
		}
		for _, j := range f.Jobs {
			view.Jobs = append(view.Jobs, jobMention{strconv.FormatInt(j.ID, 10), j.App, j.Name})
		}
		v.Findings = append(v.Findings, view)
	}

	for _, c := range found.Checks {
		v.Checks = append(v.Checks, checkedView{c.ID, c.Area, c.About, c.Severity, c.Skipped})
	}

	return answer(w, http.StatusOK, v)
}
