package schedule

import (
	"log/slog"
	"sync"
	"time"

	"go-crontab/job"
)

const (
	// skipEvery is the time between two log lines about skipped runs of one job.
	skipEvery = time.Minute
	// maxSkipping bounds the jobs that have log lines of their own, because after an outage all
	// jobs may have missed due times.
	maxSkipping = 100
)

// skipLog logs the due times that end without a start. The first one of a job is logged at once.
// Later ones are counted, and logged together once a minute.
type skipLog struct {
	log *slog.Logger

	mu   sync.Mutex
	jobs map[int64]*skipped // by id; zero stands for all jobs beyond maxSkipping
}

// skipped counts the skipped due times of a job since the last log line about it.
type skipped struct {
	skip
	more int64
}

// skip is one or several due times that end without a start, for the same reason.
type skip struct {
	jobID   int64
	job     string // its full name
	outcome job.Outcome
	reason  job.Reason
	due     job.Micros // the last due time
	count   int64
}

func newSkipLog(log *slog.Logger) *skipLog {
	return &skipLog{log: log, jobs: map[int64]*skipped{}}
}

// note logs or counts a skip. Superseded runs are not logged: somebody edited the job, or the
// overlap policy replaced the run by another run, which is logged.
func (l *skipLog) note(s skip) {
	if s.outcome == job.Superseded {
		return
	}

	l.mu.Lock()
	known := l.jobs[s.jobID]
	if known == nil && len(l.jobs) >= maxSkipping {
		s.jobID, s.job = 0, "others"
		known = l.jobs[0]
	}
	if known != nil {
		// The log line shows a missed due time if there is one.
		if known.more == 0 || known.outcome != job.Missed || s.outcome == job.Missed {
			known.skip = s
		}
		known.more += s.count
		l.mu.Unlock()
		return
	}
	l.jobs[s.jobID] = &skipped{}
	l.mu.Unlock()

	l.line(s, s.count)
	time.AfterFunc(skipEvery, func() { l.summarize(s.jobID) })
}

// summarize logs the due times of a job that were skipped since the last line about it. After a
// minute without skips it forgets the job.
func (l *skipLog) summarize(jobID int64) {
	l.mu.Lock()
	last := *l.jobs[jobID]
	if last.more == 0 {
		delete(l.jobs, jobID)
	} else {
		l.jobs[jobID] = &skipped{}
	}
	l.mu.Unlock()

	if last.more > 0 {
		l.line(last.skip, last.more)
		time.AfterFunc(skipEvery, func() { l.summarize(jobID) })
	}
}

// line logs skipped due times. A missed due time is a warning, because no node started it in time.
func (l *skipLog) line(s skip, count int64) {
	write := l.log.Info
	if s.outcome == job.Missed {
		write = l.log.Warn
	}

	write("run not started",
		"job", s.job, "outcome", s.outcome.String(), "reason", s.reason.Text, "due", s.due, "count", count)
}

// noteRefusals logs the runs that verdicts refuse.
func (l *skipLog) noteRefusals(verdicts []verdict, defs *Definitions) {
	for i := range verdicts {
		v := &verdicts[i]
		if v.action != refuse {
			continue
		}
		l.note(skip{
			jobID: v.run.JobID, job: defs.Name(v.run.JobID),
			outcome: v.outcome, reason: v.reason, due: v.run.Due, count: 1,
		})
	}
}

// noteCounted logs the due times that a claim counted as not started.
func (l *skipLog) noteCounted(plans []*plan, defs *Definitions) {
	for _, p := range plans {
		if d := p.counted; d != nil {
			l.note(skip{
				jobID: p.JobID, job: defs.Name(p.JobID),
				outcome: d.outcome, reason: d.reason, due: d.last, count: d.count,
			})
		}
	}
}
