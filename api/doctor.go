package api

import (
	"net/http"
	"strconv"

	"go-crontab/internal/doctor"
)

// doctorView is the report of the doctor.
type doctorView struct {
	At       string          `json:"at" format:"date-time" doc:"When the checks ran, by MySQL's clock."`
	Node     string          `json:"node" doc:"The node that ran the checks. Checks of a machine concern this node's machine."`
	Version  string          `json:"version" doc:"The version of the node."`
	Server   string          `json:"server" doc:"The version that the database reports."`
	Worst    doctor.Severity `json:"worst" doc:"The severity of the worst finding; 'ok' if there is none."`
	Findings []*findingView  `json:"findings" doc:"The problems that were found, the worst first."`
	Checks   []checkedView   `json:"checks" doc:"All checks, always in the same order."`
}

type findingView struct {
	Check    string          `json:"check" doc:"The id of the check that found it. Ids never change."`
	Code     doctor.Code     `json:"code,omitempty" doc:"A code for what was found, if the check can find several things. Codes never change."`
	Area     doctor.Area     `json:"area" doc:"The area of the check."`
	Severity doctor.Severity `json:"severity" doc:"The severity."`
	Seen     string          `json:"seen" doc:"What the check found."`
	Why      string          `json:"why" doc:"Why that matters."`
	Fix      string          `json:"fix" doc:"How to fix it."`
	SQL      []string        `json:"sql,omitempty" doc:"SQL statements that fix it."`
	Commands []string        `json:"commands,omitempty" doc:"Commands that fix it, or show more."`
	Jobs     []jobMention    `json:"jobs,omitempty" doc:"The jobs that it is about, at most ten."`
	Nodes    []string        `json:"nodes,omitempty" doc:"The nodes that it is about."`
}

type jobMention struct {
	ID   string `json:"id" doc:"The id of the job."`
	App  string `json:"app" doc:"Its app."`
	Name string `json:"name" doc:"Its name."`
}

type checkedView struct {
	ID       string          `json:"id" doc:"The id of the check. Ids never change."`
	Area     doctor.Area     `json:"area" doc:"The area of the check."`
	About    string          `json:"about" doc:"What holds if the check finds nothing."`
	Severity doctor.Severity `json:"severity" doc:"The severity of its worst finding; 'unknown' if the check could not run."`
	Skipped  string          `json:"skipped,omitempty" doc:"Why the check could not run."`
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
