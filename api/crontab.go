package api

import (
	"encoding/json"
	"net/http"

	"go-crontab/internal/crontab"
	"go-crontab/job"
	"go-crontab/job/problem"
)

// maxCrontabJobs is the largest size of the jobs from a crontab, in bytes of JSON.
const maxCrontabJobs = 4 << 20

// crontabView is a crontab translated into jobs.
type crontabView struct {
	Jobs    []crontabJob  `json:"jobs" doc:"The lines that can become jobs, in order."`
	Notes   []crontabNote `json:"notes,omitempty" doc:"Differences from cron that concern the whole crontab or lines that set a variable."`
	Refused []crontabNote `json:"refused,omitempty" doc:"The lines that cannot become jobs, and why."`
}

type crontabJob struct {
	Line  int             `json:"line" doc:"The number of the line."`
	Text  string          `json:"text" doc:"The line as written in the crontab."`
	Words string          `json:"words" doc:"The schedule in words, in English or Chinese by 'Accept-Language'."`
	Notes []problem.Text  `json:"notes,omitempty" doc:"Differences from cron."`
	Job   json.RawMessage `json:"job" doc:"The job in the form of a file, as 'jobs' of POST /api/v1/apply takes it."`
}

type crontabNote struct {
	Line  int    `json:"line,omitempty" doc:"The number of the line. Absent if it concerns the whole crontab."`
	Field string `json:"field,omitempty" doc:"The field of the job, or the variable, that it is about."`
	problem.Text
}

// readCrontab: POST /api/v1/crontab. It translates the lines of a crontab into jobs and changes
// nothing.
func (s *Server) readCrontab(w http.ResponseWriter, r *http.Request) error {
	body, err := readObject(r)
	if err != nil {
		return err
	}

	var (
		text, user string
		o          crontab.Options
		system     *bool
	)

	f := newFields(body)
	f.text("text", &text)
	f.text("app", &o.App)
	f.text("timezone", &o.Zone)
	f.boolean("system", &system)
	if f.text("user", &user); body["user"] != nil {
		o.User = &user
	}

	if body["text"] == nil {
		f.wrong("text", problem.Missing.Advise("give the whole crontab as one text"))
	}
	if _, err := job.LoadZone(o.Zone); err != nil {
		f.put("timezone", problem.Of(err))
	}
	if err := f.done(); err != nil {
		return err
	}

	now, err := s.now()
	if err != nil {
		return err
	}

	o.System, o.Most = system != nil && *system, job.MaxApplyJobs

	v := crontabView{Jobs: []crontabJob{}}
	read := crontab.Read([]byte(text), o, &crontab.Names{})
	if read.Cut {
		return invalidField("text", problem.TooManyLines, o.Most)
	}

	// Each job has all variables above its line, so the jobs can be far larger than the text.
	// Adding up the sizes of variables is cheap; encoding the jobs is not.
	size := 0
	for _, e := range read.Entries {
		if size += sizeOf(e.Job.Env); size > maxCrontabJobs {
			return largeCrontab()
		}
	}

	size = 0
	for _, e := range read.Entries {
		if err := r.Context().Err(); err != nil {
			return err
		}

		e.Job.Defaults(now)
		object, err := e.Job.Minimal()
		if err != nil {
			return err
		}
		if size += len(object); size > maxCrontabJobs {
			return largeCrontab()
		}

		for i := range e.Notes {
			e.Notes[i] = e.Notes[i].Cut(maxMessage)
		}

		v.Jobs = append(v.Jobs, crontabJob{e.Line, e.Text, e.Job.Words(languageOf(r)), e.Notes, object})
	}

	v.Notes, v.Refused = viewCrontabNotes(read.Notes), viewCrontabNotes(read.Refused)
	w.Header().Add("Vary", "Accept-Language")
	return answer(w, http.StatusOK, v)
}

func largeCrontab() error {
	return tooLarge.problem(
		"The jobs of the crontab need more than %d bytes, because each job carries all variables set above it. Send it "+
			"in parts.", maxCrontabJobs)
}

// sizeOf is the least number of bytes that the variables take when encoded.
func sizeOf(variables map[string]string) int {
	n := 0
	for name, value := range variables {
		n += len(name) + len(value)
	}
	return n
}

func viewCrontabNotes(notes []crontab.Note) (out []crontabNote) {
	for _, n := range notes {
		out = append(out, crontabNote{n.Line, cut(n.Field, maxPlace), n.Cut(maxMessage)})
	}
	return out
}
