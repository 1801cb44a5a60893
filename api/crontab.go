package api

import (
	"net/http"

	"go-crontab/api/view"
	"go-crontab/internal/crontab"
	"go-crontab/job"
	"go-crontab/job/problem"
)

// maxCrontabJobs is the largest size of the jobs from a crontab, in bytes of JSON.
const maxCrontabJobs = 4 << 20

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
	f.text("file", &o.File)
	f.text("selector", &o.Selector)
	f.textMap("labels", &o.Labels)
	f.duration("timeout", &o.Timeout)
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
	if err := o.Check(); err != nil {
		return err
	}

	now, err := s.now()
	if err != nil {
		return err
	}

	o.System, o.Most = system != nil && *system, job.MaxApplyJobs

	v := view.Crontab{Jobs: []view.CrontabJob{}}
	read := crontab.Read([]byte(text), o, &crontab.Names{})
	if read.Cut {
		return invalidField("text", problem.TooManyLines, o.Most)
	}

	// Each job has all variables above its line, so the jobs can be far larger than the text. The
	// sizes of the variables are added up, which is cheaper than encoding the jobs.
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

		v.Jobs = append(v.Jobs, view.CrontabJob{
			Line: e.Line, Text: e.Text, Words: e.Job.Words(languageOf(r)), Notes: e.Notes, Job: object,
		})
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

// sizeOf returns a lower bound for the size of the encoded variables in bytes.
func sizeOf(variables map[string]string) int {
	n := 0
	for name, value := range variables {
		n += len(name) + len(value)
	}
	return n
}

func viewCrontabNotes(notes []crontab.Note) (out []view.CrontabNote) {
	for _, n := range notes {
		out = append(out, view.CrontabNote{Line: n.Line, Field: cut(n.Field, maxPlace), Text: n.Cut(maxMessage)})
	}
	return out
}
