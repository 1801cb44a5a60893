package api

import (
	"net/http"
	"strconv"

	"go-crontab/api/view"
	"go-crontab/internal/doctor"
)

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

	v := ViewOfReport(found)
	v.Node, v.Version = s.cfg.Node, s.cfg.Version
	return answer(w, http.StatusOK, v)
}

// ViewOfReport shows a report of the doctor. The view does not name the node that made the report.
func ViewOfReport(found *doctor.Report) *view.Doctor {
	v := &view.Doctor{
		At: found.At.Time(), Server: found.Server,
		Worst:    view.Severity(found.Worst),
		Findings: []*view.Finding{},
	}

	for _, f := range found.Findings {
		one := &view.Finding{
			Check: f.Check, Code: string(f.Code), Area: view.Area(f.Area), Severity: view.Severity(f.Severity),
			Seen: f.Seen, Why: f.Why, Fix: f.Fix,
			SQL: f.SQL, Commands: f.Commands, Nodes: f.Nodes,
		}
		for _, j := range f.Jobs {
			one.Jobs = append(one.Jobs, view.JobMention{ID: strconv.FormatInt(j.ID, 10), App: j.App, Name: j.Name})
		}
		v.Findings = append(v.Findings, one)
	}

	for _, c := range found.Checks {
		v.Checks = append(v.Checks, view.Checked{
			ID: c.ID, Area: view.Area(c.Area), About: c.About, Severity: view.Severity(c.Severity), Skipped: c.Skipped,
		})
	}

	return v
}
