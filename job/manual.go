package job

import (
	"strings"

	"go-crontab/job/problem"
)

// checkManual refuses fields that say when a job is due. Only people run a manual job.
func (s *Spec) checkManual(p *Problems) {
	var given []string
	for _, f := range []struct {
		name string
		set  bool
	}{
		{"schedule", s.Schedule != ""},
		{"schedules", len(s.Schedules) > 0},
		{"every", s.Every != 0},
		{"at", s.At != nil},
		{"delay", s.Delay != 0},
		{"after", s.After != nil},
	} {
		if f.set {
			given = append(given, f.name)
		}
	}

	if given != nil {
		p.Add("manual", problem.NotWith.Advise("leave out one of them"), strings.Join(given, ", "))
	}
}
