package api

import (
	"cmp"
	"context"
	"errors"
	"net/http"
	"slices"
	"strconv"
	"time"

	"go-crontab/api/view"
	"go-crontab/internal/auth"
	"go-crontab/job"
	"go-crontab/job/problem"
	"go-crontab/sql/read"
)

// Limits of one request about the due times of many jobs.
const (
	maxUpcomingJobs  = 20_000
	upcomingPage     = 500 // jobs read at once, because a definition may be large
	maxSteps         = 20_160
	maxUpcomingRange = 366 * 24 * time.Hour
	upcomingWork     = 1_000_000 // the budget of job.NewTally: one or two seconds of a CPU
	defaultAhead     = 7 * 24 * time.Hour
)

const maxFrequent = 200

// takesFrequent adds a job to the list of frequent jobs if it is frequent. It reports whether the
// job is frequent.
func takesFrequent(f *view.FrequentJobs, j *read.Job, schedule job.Schedule, from, to time.Time, most int64) bool {
	if most == 0 {
		return false
	}

	n := schedule.Count(from.Add(-time.Microsecond), to.Add(-time.Microsecond))
	if n <= most {
		return false
	}

	f.FrequentCount++
	f.Frequent = append(f.Frequent, view.FrequentJob{
		JobID: strconv.FormatInt(j.ID, 10), Job: j.Spec.Name, App: j.Spec.App, Count: n,
	})
	return true
}

func sortFrequent(f *view.FrequentJobs) {
	slices.SortStableFunc(f.Frequent, func(a, b view.FrequentJob) int { return cmp.Compare(b.Count, a.Count) })
	f.Frequent = f.Frequent[:min(len(f.Frequent), maxFrequent)]
}

// aheadFilter reads the parameters that select jobs.
func aheadFilter(q *query, r *http.Request) read.JobFilter {
	return read.JobFilter{
		App: q.text(ofAppParam), Name: q.text(jobNameParam), Owner: q.text(ownerParam), Group: q.text(inGroupParam),
		Calendar: q.text(byCalendarParam),
		Labels:   q.label(labelIs), Status: job.Active, Apps: auth.Of(r.Context()).Sees(),
	}
}

// eachAhead calls do for each active job that a filter selects, in order of id. The jobs have their
// calendars, and do is called within work.Turn. all reports whether eachAhead has read all jobs.
func (s *Server) eachAhead(ctx context.Context, work *job.Work, f read.JobFilter,
	do func(*read.Job)) (all bool, err error) {
	f.Limit = upcomingPage
	for seen := 0; ; {
		p, err := s.cfg.DB.JobPage(ctx, f)
		if err != nil {
			return false, err
		}

		rows := make([]*read.Job, 0, len(p.Rows))
		for i := range p.Rows {
			if p.Rows[i].SpecErr == nil {
				rows = append(rows, &p.Rows[i])
			}
		}

		if err := s.cfg.DB.LearnCalendars(ctx, rows...); err != nil {
			return false, err
		}

		err = work.Turn(func() error {
			for _, j := range rows {
				if err := context.Cause(ctx); err != nil {
					return err
				}
				if j.CalendarsErr == nil {
					do(j)
				}
			}
			return nil
		})
		if err != nil && !errors.Is(err, job.ErrTooExpensive) {
			return false, err
		}

		seen += len(p.Rows)
		if p.Next == nil || seen >= maxUpcomingJobs {
			return p.Next == nil, nil
		}

		f.After, f.Part = p.Next.ID, p.Next.Part
	}
}

// waitTurn waits until no other request computes due times on this node. One such request at a time
// leaves the CPU free for the node's other work. leave lets the next request continue.
func (s *Server) waitTurn(ctx context.Context) (leave func(), err error) {
	select {
	case s.ahead <- struct{}{}:
		return func() { <-s.ahead }, nil
	case <-ctx.Done():
		return nil, unavailable.problem("Too many requests ask this node for upcoming due times. Try again in a moment.")
	}
}

// rangeAhead reads the range.
func (s *Server) rangeAhead(q *query) (from, to time.Time, err error) {
	if from, to = q.instant(aheadFrom), q.instant(aheadTo); from.IsZero() {
		if from, err = s.now(); err != nil {
			return
		}
	}

	from = from.UTC().Truncate(time.Microsecond)
	if to.IsZero() {
		to = from.Add(defaultAhead)
	}

	switch d := to.Sub(from); {
	case d <= 0:
		q.wrong(aheadTo.name, problem.NotAfter, to.Format(time.RFC3339), "from", from.Format(time.RFC3339))
	case d > maxUpcomingRange:
		q.wrong(aheadTo.name, problem.TooFarApart, 366)
	}

	return from, to.UTC(), nil
}

// upcoming: GET /api/v1/upcoming
func (s *Server) upcoming(w http.ResponseWriter, r *http.Request) error {
	q := newQuery(r)
	from, to, err := s.rangeAhead(q)
	if err != nil {
		return err
	}

	f, limit, most := aheadFilter(q, r), int(q.number(aheadLimit)), q.number(aheadMost)
	after := q.cursor("upcoming")
	if err := q.err(); err != nil {
		return err
	}

	begin := from
	if after != nil {
		begin = after.Due.Time()
	}

	leave, err := s.waitTurn(r.Context())
	if err != nil {
		return err
	}
	defer leave()

	type named struct{ app, name, zone string }
	var v view.Upcoming
	coming, names := job.NewComing(to), map[int64]named{}

	work, parts := job.NewWork(r.Context(), job.ListingWork), []*job.Work{}
	all, err := s.eachAhead(r.Context(), work, f, func(j *read.Job) {
		schedule, err := j.Spec.Compile(j.Calendars...)
		if err != nil { // the job cannot be planned; its status shows the error
			return
		}

		part := work.Part(job.JobWork)
		parts, schedule = append(parts, part), part.On(schedule)
		if takesFrequent(&v.FrequentJobs, j, schedule, from, to, most) {
			return
		}

		coming.Add(j.ID, schedule, begin)
		names[j.ID] = named{j.Spec.App, j.Spec.Name, j.Spec.Timezone}
	})
	if err != nil {
		return err
	}

	v.Items, v.Truncated = []view.UpcomingDue{}, !all
	sortFrequent(&v.FrequentJobs)

	var last job.ComingDue
	list := func() error {
		for d, ok := coming.Next(); ok; d, ok = coming.Next() {
			if after != nil && d.Due.Equal(begin) && d.ID <= after.ID {
				continue
			}

			if len(v.Items) == limit {
				place := read.RunPlace{ID: last.ID, Due: job.MicrosOf(last.Due)}
				v.Next = (&cursor{list: "upcoming", RunPlace: place}).String()
				break
			}

			j := names[d.ID]
			zone, err := job.LoadZone(j.zone)
			if err != nil {
				zone = time.UTC
			}

			item := view.UpcomingDue{
				JobID: strconv.FormatInt(d.ID, 10), Job: j.name, App: j.app,
				Due: d.Due.In(zone), Timezone: j.zone, Mark: d.Mark(),
			}
			if item.Mark == job.Moved {
				item.MovedFrom = d.MovedFrom()
			}
			v.Items = append(v.Items, item)

			last = d
		}

		return nil
	}

	if err := work.Turn(list); err != nil && !errors.Is(err, job.ErrTooExpensive) {
		return err
	}

	// Count the jobs whose work was too expensive.
	for _, part := range parts {
		if part.Err() != nil {
			v.Uncounted++
		}
	}

	v.Truncated = v.Truncated || v.Uncounted > 0
	return answer(w, http.StatusOK, v)
}

var stepLengths = map[string]time.Duration{"minute": time.Minute, "hour": time.Hour, "day": 24 * time.Hour}

// countUpcoming: GET /api/v1/upcoming/counts
func (s *Server) countUpcoming(w http.ResponseWriter, r *http.Request) error {
	q := newQuery(r)
	from, to, err := s.rangeAhead(q)
	if err != nil {
		return err
	}

	f, step, most := aheadFilter(q, r), q.word(aheadStep), q.number(aheadMost)
	if step == "" {
		step = "hour"
	}

	length := stepLengths[step]
	if length == 0 {
		return q.err()
	}

	steps := int((to.Sub(from) + length - 1) / length)
	if steps > maxSteps {
		q.wrong(aheadStep.name, problem.TooManySteps, steps, maxSteps)
	}

	if err := q.err(); err != nil {
		return err
	}

	leave, err := s.waitTurn(r.Context())
	if err != nil {
		return err
	}
	defer leave()

	work := job.NewWork(r.Context(), job.ListingWork)
	tally := job.NewTally(from, length, steps, upcomingWork)
	tally.Work = work
	v := view.UpcomingCounts{
		From: from, To: from.Add(time.Duration(steps) * length),
		Step: step,
	}

	all, err := s.eachAhead(r.Context(), work, f, func(j *read.Job) {
		if context.Cause(r.Context()) != nil {
			return
		}
		schedule, ok := tally.Schedule(&j.Spec, j.Calendars...)
		if ok && takesFrequent(&v.FrequentJobs, j, schedule, from, to, most) {
			return
		}
		if !tally.Add(&j.Spec, j.Calendars...) {
			v.Uncounted++
		}
	})
	if err != nil {
		return err
	}

	sortFrequent(&v.FrequentJobs)
	v.Jobs, v.Total, v.Counts, v.Truncated = tally.Jobs, tally.Total, tally.Counts, !all || v.Uncounted > 0
	return answer(w, http.StatusOK, v)
}

// The parameters.
var (
	aheadFrom = instantParam{
		declared: declared{
			"from", "Only due times at or after this time. Without it, from now on.", "2027-03-27T00:00:00Z",
		},
	}
	aheadTo = instantParam{
		declared: declared{
			"to", "Only due times before this time, at most 366 days after `from`. Without it, 7 days.",
			"2027-03-28T00:00:00Z",
		},
	}
	aheadLimit = numberParam{declared{"limit", "The most items on a page.", "100"}, maxDue, defaultLimit}
	aheadStep  = wordParam{
		declared{"step",
			"The length of a step. The first begins at `from`. At most 20,160 steps are allowed: two weeks of minutes. " +
				"Without it, an hour.", "minute"}, []string{"minute", "hour", "day"},
	}
	aheadMost = numberParam{
		declared{"most",
			"Jobs that have more due times in the range than this are listed separately, as `frequent`, and not " +
				"among the others.", "24"}, maxID, 0,
	}
	// see aheadFilter
	aheadOf  = []parameter{ofAppParam, jobNameParam, ownerParam, inGroupParam, byCalendarParam, labelIs}
	feedDays = numberParam{declared{"days", "The number of days from now on.", "30"}, maxFeedDays, 14}
)

// The operations.
var (
	upcomingDoc = operation{
		id: "listUpcoming", tag: tagJobs, summary: "List the next due times of many jobs",
		about: "The due times of active jobs that match the parameters. Paused and broken jobs " +
			"have none. With a `cursor`, give the same `from` and `to` again.",
		query:   append([]parameter{aheadFrom, aheadTo, aheadMost, aheadLimit, pageParam}, aheadOf...),
		replies: found[view.Upcoming]("A page of due times."),
	}
	countUpcomingDoc = operation{
		id: "countUpcoming", tag: tagJobs, summary: "Count the due times of many jobs, step by step",
		about: "Shows when many jobs are due, and when few. A node limits its work for this, and reports " +
			"if it left something out.",
		query:   append([]parameter{aheadFrom, aheadTo, aheadMost, aheadStep}, aheadOf...),
		replies: found[view.UpcomingCounts]("The counts."),
	}
	feedDoc = operation{
		id: "getUpcomingFeed", tag: tagJobs, spoken: true, summary: "Subscribe to upcoming due times",
		about: "An iCalendar (RFC 5545) of the next days, for calendar programs. They cannot send a " +
			"bearer token, so only here they can send it as the password of HTTP Basic, with any user name. " +
			"The token must have the role `viewer`, because such programs store it and show it to others. On days on " +
			"which a job is due more often than six times it is one event of the whole day.",
		query:   append([]parameter{feedDays}, aheadOf...),
		replies: []reply{{status: http.StatusOK, about: "The calendar.", media: []string{mediaICS}}},
	}
)
