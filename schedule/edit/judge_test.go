package edit

import (
	"errors"
	"fmt"
	"testing"

	"go-crontab/job"
	"go-crontab/sql"
	"go-crontab/sql/trip"
)

const now = job.Micros(1000)

// looked returns a view of a job whose row has not changed since it was read.
func looked(action job.Action, row trip.JobRow) *view {
	row.ID = 7
	return &view{Change: &Change{Action: action, ID: 7}, seen: &trip.Seen{JobRow: row}}
}

// toDues makes the change give the job other due times.
func (v *view) toDues(after job.Micros, dues ...job.Micros) *view {
	v.was, v.def, v.text = &job.Spec{}, &job.Spec{Name: "j"}, "{}"
	v.next = upcoming{after: after, dues: dues}
	return v
}

func (v *view) passed(first, last job.Micros, count int64) *view {
	v.past = &past{first, last, count}
	return v
}

// pausing makes the change also pause or resume the job.
func (v *view) pausing(paused bool) *view {
	v.Paused = &paused
	return v
}

// sameDue makes the change keep the due times.
func (v *view) sameDue() *view {
	v.sameDues = true
	return v
}

func run(due job.Micros, state trip.State) trip.Ahead {
	return trip.Ahead{Run: int64(due), JobID: 7, Due: due, Attempt: 1, State: state}
}

// TestJudge checks the decision about a job, for a first reading and a row.
func TestJudge(t *testing.T) {
	idle := trip.JobRow{Version: 3, Changes: 5, NextDue: 1500, BegunTo: 900}
	behind := trip.JobRow{Version: 3, Changes: 5, NextDue: 800, BegunTo: 700}
	paused := trip.JobRow{Version: 3, Changes: 5, Paused: true, Parked: 800, BegunTo: 700}
	ahead := []trip.Ahead{run(1100, trip.Prepared), run(1200, trip.Idle)}

	for name, c := range map[string]struct {
		view  *view
		row   trip.JobRow
		ahead []trip.Ahead
		want  string
	}{
		"pause: the cursor is parked at the earliest run that is taken back": {
			looked(job.ActionPause, idle), idle, ahead, "changed 3.6 next 0 parked 1100 begun 900 paused, takes 1100 1200 back",
		},
		"pause: without runs, where it stands": {
			looked(job.ActionPause, idle), idle, nil, "changed 3.6 next 0 parked 1500 begun 900 paused",
		},
		"pause: what is due already, executes, waits or is tried again stays": {
			looked(job.ActionPause, idle), idle,
			[]trip.Ahead{run(1000, trip.Prepared), run(1050, trip.Executing), run(1060, trip.Waiting), {Run: 1, Due: 1070, Attempt: 2, State: trip.Idle}},
			"changed 3.6 next 0 parked 1500 begun 900 paused",
		},
		"pause: what has begun ahead of its time bounds what is taken back": {
			looked(job.ActionPause, idle), trip.JobRow{Version: 3, Changes: 5, NextDue: 1500, BegunTo: 1100}, ahead,
			"changed 3.6 next 0 parked 1200 begun 1100 paused, takes 1200 back",
		},
		"pause of a paused job without a wish changes nothing": {
			looked(job.ActionPause, paused), paused, nil, "unchanged",
		},
		"resume: back to where it was parked": {
			looked(job.ActionResume, paused), paused, nil, "changed 3.6 next 800 parked 0 begun 700 resumed 1000",
		},
		"resume of a job that is not paused changes nothing": {
			looked(job.ActionResume, idle), idle, nil, "unchanged",
		},
		"resume: a pause that was over already ended then": {
			looked(job.ActionResume, trip.JobRow{Changes: 5, Paused: true, NextDue: 950, Parked: 800}),
			trip.JobRow{Changes: 5, Paused: true, NextDue: 950, Parked: 800}, nil, "changed 0.6 next 800 parked 0 begun 0 resumed 950",
		},
		"delete: takes back and counts what passed": {
			looked(job.ActionDelete, behind).passed(800, 950, 3), behind, ahead,
			"changed 3.6 next 0 parked 0 begun 950 deleted, takes 1100 1200 back, counts 800 to 950: 3 superseded, job_deleted",
		},
		"delete: a claim was faster, and nobody knows how many are left": {
			looked(job.ActionDelete, behind).passed(800, 950, 3), trip.JobRow{Version: 3, Changes: 5, NextDue: 900, BegunTo: 800}, nil,
			"changed 3.6 next 0 parked 0 begun 1000 deleted, counts 900 to 1000: 0 superseded, job_deleted",
		},
		"delete of a paused job: what passed is skipped": {
			looked(job.ActionDelete, paused).passed(800, 950, 3), paused, nil,
			"changed 3.6 next 0 parked 0 begun 950 deleted, counts 800 to 950: 3 skipped, job_paused",
		},
		"edit: goes on with the first new due time, also before what is taken back": {
			looked(job.ActionUpdate, idle).toDues(1000, 1050, 1150), idle, ahead,
			"changed 4.6 next 1050 parked 0 begun 900, takes 1100 1200 back",
		},
		"edit: a run began meanwhile, the next due time comes": {
			looked(job.ActionUpdate, idle).toDues(1000, 1050, 1150), trip.JobRow{Version: 3, Changes: 5, NextDue: 1500, BegunTo: 1100}, ahead,
			"changed 4.6 next 1150 parked 0 begun 1100, takes 1200 back",
		},
		"edit: more began than was computed": {
			looked(job.ActionUpdate, idle).toDues(1000, 1050), trip.JobRow{Version: 3, Changes: 5, NextDue: 1500, BegunTo: 1100}, ahead, "again",
		},
		"edit: a waiting run bounds the new due times": {
			looked(job.ActionUpdate, idle).toDues(1000, 1050, 1150), idle, []trip.Ahead{run(1050, trip.Waiting)},
			"changed 4.6 next 1150 parked 0 begun 900",
		},
		"edit: what passed is counted": {
			looked(job.ActionUpdate, behind).toDues(1000, 1050).passed(800, 950, 3), behind, nil,
			"changed 4.6 next 1050 parked 0 begun 950, counts 800 to 950: 3 superseded, schedule_changed",
		},
		"edit: a claim was faster than the count": {
			looked(job.ActionUpdate, behind).toDues(1000, 1050).passed(800, 950, 3), trip.JobRow{Version: 3, Changes: 5, NextDue: 900, BegunTo: 800}, nil,
			"again",
		},
		"edit: a claim has brought all that passed": {
			looked(job.ActionUpdate, behind).toDues(1000, 1050).passed(800, 950, 3), idle, nil, "changed 4.6 next 1050 parked 0 begun 900",
		},
		"edit of a paused job moves the parked cursor": {
			looked(job.ActionUpdate, paused).toDues(1000, 1050).passed(800, 950, 3), paused, nil,
			"changed 4.6 next 0 parked 1050 begun 950 paused, counts 800 to 950: 3 skipped, job_paused",
		},
		"edit that pauses: the new due times are parked": {
			looked(job.ActionUpdate, idle).toDues(1000, 1050, 1150).pausing(true), idle, ahead,
			"changed 4.6 next 0 parked 1050 begun 900 paused, takes 1100 1200 back",
		},
		"edit that pauses: what passed before is not skipped by the pause": {
			looked(job.ActionUpdate, behind).toDues(1000, 1050).passed(800, 950, 3).pausing(true), behind, nil,
			"changed 4.6 next 0 parked 1050 begun 950 paused, counts 800 to 950: 3 superseded, schedule_changed",
		},
		"edit that pauses and keeps the due times: they are taken back": {
			looked(job.ActionUpdate, idle).toDues(1000).sameDue().pausing(true), idle, ahead,
			"changed 4.6 next 0 parked 1100 begun 900 paused, takes 1100 1200 back",
		},
		"edit that resumes: the new due times go on": {
			looked(job.ActionUpdate, paused).toDues(1000, 1050).passed(800, 950, 3).pausing(false), paused, nil,
			"changed 4.6 next 1050 parked 0 begun 950 resumed 1000, counts 800 to 950: 3 skipped, job_paused",
		},
		"edit that resumes and keeps the due times: the next claim judges what passed": {
			looked(job.ActionUpdate, paused).toDues(1000).sameDue().pausing(false), paused, nil,
			"changed 4.6 next 800 parked 0 begun 700 resumed 1000",
		},
		"edit that pauses a paused job": {
			looked(job.ActionUpdate, paused).toDues(1000).sameDue().pausing(true), paused, nil,
			"changed 4.6 next 0 parked 800 begun 700 paused",
		},
		"somebody was faster": {
			looked(job.ActionPause, idle), trip.JobRow{Version: 4, Changes: 6, NextDue: 1500}, nil, "again",
		},
		"its pause has ended by itself meanwhile": {
			looked(job.ActionPause, paused), trip.JobRow{Version: 3, Changes: 5, NextDue: 1500}, nil, "again",
		},
		"the job was deleted": {
			looked(job.ActionPause, idle), trip.JobRow{Changes: 6, Deleted: true}, nil, "refused: job 7: not found",
		},
	} {
		t.Run(name, func(t *testing.T) {
			row := c.row
			row.ID = 7
			if got := describe(judge(c.view, &row, c.ahead, now)); got != c.want {
				t.Errorf("got  %s\nwant %s", got, c.want)
			}
		})
	}
}

func describe(v verdict) string {
	switch {
	case v.again:
		return "again"
	case v.Err != nil:
		return fmt.Sprintf("%s: %v", v.Result, v.Err)
	case v.Result != job.BulkChanged:
		return string(v.Result)
	}

	r := &v.row
	text := fmt.Sprintf("%s %d.%d next %d parked %d begun %d", v.Result, v.Version, v.Changes, int64(r.NextDue), int64(r.Parked), int64(r.BegunTo))
	for word, is := range map[string]bool{" paused": r.Paused, " deleted": r.Deleted} {
		if is {
			text += word
		}
	}

	if r.Resumed != 0 {
		text += fmt.Sprintf(" resumed %d", int64(r.Resumed))
	}

	if len(v.takeBack) > 0 {
		text += ", takes"
		for _, a := range v.takeBack {
			text += fmt.Sprintf(" %d", a.Run)
		}
		text += " back"
	}

	if c := v.counted; c != nil {
		text += fmt.Sprintf(", counts %d to %d: %d %s", int64(c.First), int64(c.Last), c.Count, c.Outcome) + ", " + string(c.Reason.Code)
	}

	return text
}

// TestRefusals: a refused change has a reason, and a locked row leads to another try.
func TestRefusals(t *testing.T) {
	v := looked(job.ActionUpdate, trip.JobRow{Changes: 5})
	if got := judge(v, nil, nil, now); !got.again {
		t.Errorf("a locked row: got %s", describe(got))
	}
	v.Change.Changes = 4
	if got := judge(v, &trip.JobRow{ID: 7, Changes: 5}, nil, now); !errors.Is(got.Err, job.ErrChanged) {
		t.Errorf("seen at an earlier change: got %s", describe(got))
	}
	v.problem = sql.ErrNotFound
	if got := judge(v, nil, nil, now); !errors.Is(got.Err, sql.ErrNotFound) {
		t.Errorf("no such job: got %s", describe(got))
	}
}
