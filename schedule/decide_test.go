package schedule

import (
	"errors"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/uuid"

	"go-crontab/job"
	"go-crontab/sql"
)

// TestDecide holds what becomes of a prepared task that is due at t0.
func TestDecide(t *testing.T) {
	t.Parallel()
	spec := func(change func(*job.Spec)) job.Spec {
		s := every("j", time.Hour, -10*time.Hour)
		s.Overlap, s.Misfire = job.OverlapSkip, job.Misfire{Policy: job.MisfireLatest, MaxAge: job.Duration(30 * time.Minute)}
		if change != nil {
			change(&s)
		}
		return s
	}
	row := func(change func(*sql.JobRow)) *sql.JobRow {
		j := &sql.JobRow{Job: job.Job{ID: 3, Spec: spec(nil), Version: 1}}
		if change != nil {
			change(j)
		}
		return j
	}
	running := []sql.TaskRow{{Task: job.Task{JobID: 3, Due: t0 - 1}, State: job.Executing}}
	waiting := []sql.TaskRow{{Task: job.Task{ID: 4, JobID: 3, Due: t0 - 1}, State: job.Waiting}}
	backfill := []sql.TaskRow{{Task: job.Task{ID: 4, JobID: 3, Due: t0 - 1e9, Origin: -7}, State: job.Executing}}
	backfilled := []sql.TaskRow{{Task: job.Task{ID: 4, JobID: 3, Due: t0 - 1e9, DueNow: t0 + 9, Origin: -7}, State: job.Idle}}
	wokenUp := []sql.TaskRow{{Task: job.Task{ID: 4, JobID: 3, Due: t0 - 2, DueNow: t0 - 1}, State: job.Idle}}
	backfills := func(t *job.Task) { t.Origin, t.Due, t.DueNow = -4, t0-1e9, t0+9 }
	queue := func(j *sql.JobRow) { j.Spec.Overlap, j.Spec.Queue = job.OverlapQueue, 2 }
	replace := func(j *sql.JobRow) { j.Spec.Overlap = job.OverlapReplace }
	deadline := func(j *sql.JobRow) { j.Spec.StartDeadline = job.Duration(3 * time.Second) }
	all := func(j *sql.JobRow) { j.Spec.Misfire.Policy = job.MisfireAll }
	const early, onTime, late = -100 * time.Millisecond, 0, 61 * time.Second
	for name, c := range map[string]struct {
		job       *sql.JobRow
		task      func(*job.Task)
		executing []sql.TaskRow
		now       time.Duration // after it is due
		want      verdict
		outcome   job.Outcome
		reason    string // its beginning
	}{
		"before it is due": {row(nil), nil, nil, early, begin, 0, ""},
		"when it is due":   {row(nil), nil, nil, onTime, begin, 0, ""},
		"a little late":    {row(nil), nil, nil, 59 * time.Second, begin, 0, ""},
		"as late as it may be without a question":    {row(nil), nil, nil, 60 * time.Second, begin, 0, ""},
		"an older version planned it":                {row(func(j *sql.JobRow) { j.Version = 9 }), nil, nil, onTime, begin, 0, ""},
		"the job is gone":                            {nil, nil, nil, onTime, refuse, job.Skipped, "job was deleted"},
		"the job is gone, before it is due":          {nil, nil, nil, early, hold, 0, ""},
		"deleted":                                    {row(func(j *sql.JobRow) { j.Deleted = true }), nil, nil, onTime, refuse, job.Skipped, "job was deleted"},
		"deleted, before it is due":                  {row(func(j *sql.JobRow) { j.Deleted = true }), nil, nil, early, hold, 0, ""},
		"paused":                                     {row(func(j *sql.JobRow) { j.Paused = true }), nil, nil, onTime, refuse, job.Skipped, "paused"},
		"paused, a moment before it is due":          {row(func(j *sql.JobRow) { j.Paused = true }), nil, nil, -time.Microsecond, hold, 0, ""},
		"paused, asked for by hand":                  {row(func(j *sql.JobRow) { j.Paused = true }), func(t *job.Task) { t.Origin = 4 }, nil, onTime, begin, 0, ""},
		"deleted, asked for by hand":                 {row(func(j *sql.JobRow) { j.Deleted = true }), func(t *job.Task) { t.Origin = 4 }, nil, onTime, refuse, job.Skipped, "job was deleted"},
		"an unreadable definition":                   {row(func(j *sql.JobRow) { j.SpecErr = errors.New("stored definition: of the future") }), nil, nil, onTime, refuse, job.Skipped, "stored definition: of the future"},
		"an unreadable definition, before it is due": {row(func(j *sql.JobRow) { j.SpecErr = errors.New("x") }), nil, nil, early, hold, 0, ""},
		"a schedule that cannot be, in time":         {row(func(j *sql.JobRow) { j.Spec.Schedule = "1-0 * * * *" }), nil, nil, onTime, begin, 0, ""},
		"a schedule that cannot be, late":            {row(func(j *sql.JobRow) { j.Spec.Schedule = "1-0 * * * *" }), nil, nil, late, refuse, job.Skipped, "schedule: "},
		"another is executing":                       {row(nil), nil, running, onTime, refuse, job.Skipped, "overlap: the run due "},
		"another is executing, before it is due":     {row(nil), nil, running, early, hold, 0, ""},
		"another is executing, and may":              {row(func(j *sql.JobRow) { j.Spec.Overlap = job.OverlapAllow }), nil, running, onTime, begin, 0, ""},
		"another is executing, asked for by hand":    {row(nil), func(t *job.Task) { t.Origin = 4 }, running, onTime, refuse, job.Skipped, "overlap: the run due "},
		"a retry while another is executing":         {row(nil), func(t *job.Task) { t.Attempt = 2 }, running, onTime, wait, 0, ""},
		"woken while another is executing":           {row(func(j *sql.JobRow) { j.Spec.Group = "g" }), func(t *job.Task) { t.DueNow++ }, running, late, wait, 0, ""},
		"woken beside a backfill":                    {row(nil), func(t *job.Task) { t.DueNow++ }, slices.Concat(running, backfilled), late, wait, 0, ""},
		"woken a moment ahead":                       {row(nil), func(t *job.Task) { t.DueNow++ }, running, onTime, hold, 0, ""},
		"woken, and nobody would wake it again":      {row(nil), func(t *job.Task) { t.DueNow++ }, running, late, refuse, job.Skipped, "overlap: the run due "},
		"behind one that was woken":                  {row(func(j *sql.JobRow) { j.Spec.Group = "g" }), nil, wokenUp, onTime, refuse, job.Skipped, "overlap: the run due "},
		"a backfill while another is executing":      {row(nil), func(t *job.Task) { t.Origin = -4 }, running, onTime, wait, 0, ""},
		"while a backfill is executing":              {row(nil), nil, backfill, onTime, wait, 0, ""},
		"overdue, and it is a backfill's turn":       {row(nil), nil, backfilled, time.Second, wait, 0, ""},
		"woken before a backfill was":                {row(nil), func(t *job.Task) { t.DueNow++ }, backfilled, time.Second, begin, 0, ""},
		"a backfill's turn, one is overdue":          {row(nil), backfills, []sql.TaskRow{{Task: job.Task{ID: 4, JobID: 3, Due: t0, DueNow: t0}, State: job.Prepare}}, time.Second, begin, 0, ""},
		"a backfill's turn, one was woken before":    {row(nil), backfills, []sql.TaskRow{{Task: job.Task{ID: 4, JobID: 3, Due: t0, DueNow: t0 + 1}, State: job.Prepare}}, time.Second, wait, 0, ""},
		"while a backfill executes, another waits":   {row(nil), nil, slices.Concat(backfill, waiting[:1]), onTime, refuse, job.Skipped, "overlap: the run due 2027-01-15T07:59:59.999999Z still waits"},
		"a retry that was woken":                     {row(nil), nil, []sql.TaskRow{{Task: job.Task{ID: 4, JobID: 3, Due: t0 - 2, DueNow: t0 - 1, Attempt: 2}, State: job.Prepare}}, onTime, refuse, job.Skipped, "overlap: the run due "},
		"a retry, its backoff is not over":           {row(nil), nil, []sql.TaskRow{{Task: job.Task{ID: 4, JobID: 3, Due: t0 - 2, DueNow: t0 + 1, Attempt: 2}}}, onTime, begin, 0, ""},
		"while an earlier one waits":                 {row(func(j *sql.JobRow) { j.Spec.Group = "g" }), nil, waiting, onTime, refuse, job.Skipped, "overlap: the run due 2027-01-15T07:59:59.999999Z still waits"},
		"misfired, with policy all":                  {row(all), nil, nil, late, begin, 0, ""},
		"misfired, with policy all, one executes":    {row(all), nil, running, late, wait, 0, ""},
		"misfired, with policy all, too old":         {row(all), nil, nil, 31 * time.Minute, refuse, job.Missed, "nobody could"},
		"misfired, after a threshold of its own": {row(func(j *sql.JobRow) {
			j.Spec.Misfire = job.Misfire{Policy: job.MisfireSkip, After: job.Duration(5 * time.Second)}
		}), nil, nil, 6 * time.Second, refuse, job.Missed, "nobody could start it within 5s"},
		"before its start deadline":                  {row(deadline), nil, nil, 3 * time.Second, begin, 0, ""},
		"behind its start deadline":                  {row(deadline), nil, nil, 3*time.Second + 1000, refuse, job.Missed, "could not be started by its deadline, 3s after"},
		"behind its start deadline, by hand":         {row(deadline), func(t *job.Task) { t.Origin = 4 }, nil, time.Minute, begin, 0, ""},
		"behind its start deadline, a retry":         {row(deadline), func(t *job.Task) { t.Attempt = 2 }, nil, 30 * time.Second, begin, 0, ""},
		"a queue, another is executing":              {row(queue), nil, running, onTime, wait, 0, ""},
		"a queue, another is executing, early":       {row(queue), nil, running, early, hold, 0, ""},
		"a queue, an earlier one waits":              {row(queue), nil, waiting, onTime, wait, 0, ""},
		"a queue, an earlier one is about to start":  {row(queue), nil, []sql.TaskRow{{Task: job.Task{ID: 4, JobID: 3, Due: t0 - 1, DueNow: t0 - 1}, State: job.Prepare}}, onTime, wait, 0, ""},
		"a queue, an earlier one is to be retried":   {row(queue), nil, []sql.TaskRow{{Task: job.Task{ID: 4, JobID: 3, Due: t0 - 1, DueNow: t0 + 1e9}}}, onTime, begin, 0, ""},
		"a queue, a later one waits":                 {row(queue), nil, []sql.TaskRow{{Task: job.Task{ID: 4, JobID: 3, Due: t0 + 1}, State: job.Waiting}}, onTime, begin, 0, ""},
		"a queue that is full":                       {row(queue), nil, []sql.TaskRow{running[0], waiting[0], {Task: job.Task{ID: 5, JobID: 3, Due: t0 - 3}, State: job.Waiting}}, onTime, refuse, job.Skipped, "overlap: the queue is full; 2 due times wait already"},
		"a queue that is full, a retry":              {row(queue), func(t *job.Task) { t.Attempt = 2 }, []sql.TaskRow{running[0], waiting[0], {Task: job.Task{ID: 5, JobID: 3, Due: t0 - 3}, State: job.Waiting}}, onTime, wait, 0, ""},
		"replaces what executes":                     {row(replace), nil, running, onTime, wait, 0, ""},
		"replaces what executes, early":              {row(replace), nil, running, early, hold, 0, ""},
		"replaces what waits":                        {row(replace), nil, waiting, onTime, begin, 0, ""},
		"a retry while nothing is executing":         {row(nil), func(t *job.Task) { t.Attempt = 2 }, nil, onTime, begin, 0, ""},
		"a retry that comes long after its due time": {row(nil), func(t *job.Task) { t.Attempt, t.Due = 2, after(-5*time.Hour) }, nil, onTime, begin, 0, ""},
		"misfired, the latest":                       {row(nil), nil, nil, late, begin, 0, ""},
		"misfired, as old as it may be":              {row(nil), nil, nil, 30 * time.Minute, begin, 0, ""},
		"misfired, too old":                          {row(nil), nil, nil, 30*time.Minute + time.Microsecond, refuse, job.Missed, "nobody could start it within 1m; misfire policy latest"},
		"misfired, and a later one has passed":       {row(func(j *sql.JobRow) { j.Spec.Every = job.Duration(30 * time.Second) }), nil, nil, late, refuse, job.Missed, "nobody could start it within 1m; misfire policy latest"},
		"misfired, with policy skip":                 {row(func(j *sql.JobRow) { j.Spec.Misfire.Policy = job.MisfireSkip }), nil, nil, late, refuse, job.Missed, "nobody could start it within 1m; misfire policy skip"},
		"with policy skip, just in time":             {row(func(j *sql.JobRow) { j.Spec.Misfire.Policy = job.MisfireSkip }), nil, nil, 60 * time.Second, begin, 0, ""},
		"misfired and overlapped":                    {row(nil), nil, running, late, refuse, job.Skipped, "overlap: the run due "},
		"asked for by hand, and late":                {row(func(j *sql.JobRow) { j.Spec.Misfire.Policy = job.MisfireSkip }), func(t *job.Task) { t.Origin = 4 }, nil, 5 * time.Hour, begin, 0, ""},
		"a single instant, ages ago":                 {row(func(j *sql.JobRow) { j.Spec = at("j", t0); j.Spec.Misfire.Policy = job.MisfireLatest }), nil, nil, 1000 * time.Hour, begin, 0, ""},
	} {
		task := job.Task{ID: 8, JobID: 3, Due: t0, DueNow: t0, Attempt: 1, Launch: job.Launch{Session: uuid.UUID{1}, N: 2}}
		if c.task != nil {
			c.task(&task)
		}
		now := after(c.now)
		got := decide(task, scene{job: c.job, others: c.executing, window: job.SpawnWindow}, now)
		if got.verdict != c.want || got.task != task {
			t.Errorf("%s: got verdict %d, want %d (hold %d, begin %d, refuse %d)", name, got.verdict, c.want, hold, begin, refuse)
			continue
		}
		switch got.verdict {
		case begin:
			if a := got.attempt; a.Task != task || a.At != now || a.SpawnBy != max(now, t0)+job.SpawnWindow || a.Spec != &c.job.Spec {
				t.Errorf("%s: got attempt %+v", name, a)
			}
		case refuse:
			r := got.run
			if r.Outcome != c.outcome || !strings.HasPrefix(r.Reason, c.reason) {
				t.Errorf("%s: got %s, %q; want %s, %q", name, r.Outcome, r.Reason, c.outcome, c.reason)
			}
			if r.Launch != task.Launch || r.JobID != 3 || r.Due != task.Due || r.Until != task.Due || r.Count != 1 || r.Origin != task.Origin || r.Attempt != task.Attempt || !r.Final || r.Started != 0 || r.Ended != now {
				t.Errorf("%s: got run %+v", name, r)
			}
		case wait:
			place := task.Due
			if task.Origin < 0 {
				place = task.DueNow
			}
			if w := got.wait; w.TaskID != task.ID || w.JobID != 3 || w.Kind != sql.WaitJob || w.Due != place || w.Since != now {
				t.Errorf("%s: got wait %+v", name, w)
			}
		}
	}
}

// TestSettle corrects decisions by what rows say after an unknown commit.
func TestSettle(t *testing.T) {
	t.Parallel()
	mine := job.Launch{Session: uuid.UUID{1}, N: 2}
	for name, c := range map[string]struct {
		row  *sql.TaskRow
		want verdict
	}{
		"its start stands":          {&sql.TaskRow{Task: job.Task{Launch: mine}, State: job.Executing}, begin},
		"nothing stands":            {&sql.TaskRow{Task: job.Task{Launch: mine}, State: job.Prepare}, hold},
		"its refusal stands":        {nil, forget},
		"it was freed":              {&sql.TaskRow{State: job.Idle}, forget},
		"it was claimed by another": {&sql.TaskRow{Task: job.Task{Launch: job.Launch{Session: uuid.UUID{2}, N: 2}}, State: job.Prepare}, forget},
		"it was claimed anew by us": {&sql.TaskRow{Task: job.Task{Launch: job.Launch{Session: uuid.UUID{1}, N: 3}}, State: job.Prepare}, forget},
		"another executes it":       {&sql.TaskRow{Task: job.Task{Launch: job.Launch{Session: uuid.UUID{2}, N: 2}}, State: job.Executing}, forget},
	} {
		for _, before := range []verdict{forget, hold, begin, refuse} {
			d := decision{task: job.Task{ID: 8, Launch: mine}, verdict: before}
			rows := map[int64]sql.TaskRow{}
			if c.row != nil {
				rows[8] = *c.row
			}
			if d.settle(rows); d.verdict != c.want {
				t.Errorf("%s, decided %d: got %d, want %d", name, before, d.verdict, c.want)
			}
		}
	}
}

// TestDecideReplace: what executes is killed and waited for, what has not begun is superseded, and a backfill is left
// alone.
func TestDecideReplace(t *testing.T) {
	t.Parallel()
	spec := every("j", time.Hour, 0)
	spec.Overlap = job.OverlapReplace
	other := func(id, origin int64, state job.State) sql.TaskRow {
		return sql.TaskRow{Task: job.Task{ID: id, JobID: 3, Due: t0 - job.Micros(id), Origin: origin}, State: state}
	}
	spec.Group, spec.Queue = "g", 1
	for name, c := range map[string]struct {
		others               []sql.TaskRow
		holders              []int64 // of the group's one slot
		want                 verdict
		replaces, supersedes int
	}{
		"nothing there":              {nil, nil, begin, 0, 0},
		"one executes, one waits":    {[]sql.TaskRow{other(1, 0, job.Executing), other(2, 0, job.Waiting)}, []int64{1}, wait, 1, 1},
		"two have not begun":         {[]sql.TaskRow{other(1, 0, job.Idle), other(2, 0, job.Prepare)}, nil, begin, 0, 2},
		"one waits for a slot":       {[]sql.TaskRow{other(2, 0, job.Waiting)}, []int64{99}, wait, 0, 1},
		"one was given a slot":       {[]sql.TaskRow{other(2, 0, job.Idle)}, []int64{2}, begin, 0, 1},
		"one was given one too many": {[]sql.TaskRow{other(2, 0, job.Idle)}, []int64{99, 2}, wait, 0, 1},
		"a backfill executes":        {[]sql.TaskRow{other(1, -9, job.Executing)}, nil, wait, 0, 0},
		"a task of a backfill waits": {[]sql.TaskRow{other(1, -9, job.Waiting)}, nil, begin, 0, 0},
		"one is to be retried, and will wait": {[]sql.TaskRow{other(1, 0, job.Executing),
			{Task: job.Task{ID: 3, JobID: 3, Due: t0 - 3, DueNow: t0 + 1}, State: job.Waiting}}, nil, refuse, 0, 0},
	} {
		task := job.Task{ID: 8, JobID: 3, Due: t0, DueNow: t0, Attempt: 1}
		got := decide(task, scene{job: &sql.JobRow{Job: job.Job{ID: 3, Spec: spec}}, others: c.others, group: &sql.Group{ID: 6, Name: "g", Slots: 1}, holders: c.holders}, t0)
		if got.verdict != c.want || len(got.replaces) != c.replaces || len(got.supersedes) != c.supersedes {
			t.Errorf("%s: got verdict %d, %d replaced, %d superseded; want %d, %d, %d", name, got.verdict, len(got.replaces), len(got.supersedes), c.want, c.replaces, c.supersedes)
		}
	}
}

// TestDecideGroup: a slot is taken where one is free or was given, else the task waits for one.
func TestDecideGroup(t *testing.T) {
	t.Parallel()
	spec := every("j", time.Hour, 0)
	spec.Group, spec.Queue, spec.Priority = "g", 1, 5
	group := &sql.Group{ID: 6, Name: "g", Slots: 2}
	late := t0.Add(-2 * slotPatience)
	idle := func(priority int) []sql.Candidate { return []sql.Candidate{{ID: 2, DueNow: t0, Priority: priority}} }
	for name, c := range map[string]struct {
		holders []int64
		idle    []sql.Candidate
		woken   job.Micros // zero: it is due just now
		others  []sql.TaskRow
		want    verdict
		slot    int64
		from    int64
	}{
		"a free slot":                           {[]int64{1}, nil, 0, nil, begin, 6, 0},
		"no free slot":                          {[]int64{1, 2}, nil, 0, nil, wait, 0, 0},
		"a slot was given":                      {[]int64{1, 8}, nil, 0, nil, begin, 0, 0},
		"slots were taken away":                 {[]int64{1, 2, 3}, nil, 0, nil, wait, 0, 0},
		"too many wait":                         {[]int64{1, 2}, nil, 0, []sql.TaskRow{{Task: job.Task{ID: 9, JobID: 3}, State: job.Waiting}}, refuse, 0, 0},
		"due now, one has not begun":            {[]int64{1, 2}, idle(5), 0, nil, wait, 0, 0},
		"woken just now, one has not begun":     {[]int64{1, 2}, idle(5), t0 - 1, nil, wait, 0, 0},
		"woken long ago, one has not begun":     {[]int64{1, 2}, idle(5), late, nil, begin, 6, 2},
		"woken long ago, a higher priority":     {[]int64{1, 2}, idle(6), late, nil, wait, 0, 0},
		"woken long ago, a slot was taken away": {[]int64{1, 2, 3}, idle(5), late, nil, wait, 0, 0},
		"woken long ago, all execute":           {[]int64{1, 2}, nil, late, nil, wait, 0, 0},
	} {
		task := job.Task{ID: 8, JobID: 3, Due: t0, DueNow: t0, Attempt: 1, Priority: 5}
		if c.woken != 0 {
			task.Due, task.DueNow = c.woken-1, c.woken
		}
		got := decide(task, scene{job: &sql.JobRow{Job: job.Job{ID: 3, Spec: spec}}, others: c.others, group: group, holders: c.holders, idle: c.idle}, t0)
		if got.verdict != c.want || got.slot != c.slot || got.from != c.from {
			t.Errorf("%s: got verdict %d, slot of %d, from %d; want %d, %d, %d", name, got.verdict, got.slot, got.from, c.want, c.slot, c.from)
		}
		if w := got.wait; got.verdict == wait && (w.Kind != sql.WaitGroup || w.GroupID != 6 || w.Priority != 5) {
			t.Errorf("%s: got wait %+v", name, w)
		}
		if r := got.run.Reason; got.verdict == refuse && r != "group g has no free slot; 1 due times wait already" {
			t.Errorf("%s: got reason %q", name, r)
		}
	}
}

// TestDecideOneHolderTooMany: who has a slot of a group that has fewer than holders begins while too few execute, and waits otherwise,
// however many of its job wait already.
func TestDecideOneHolderTooMany(t *testing.T) {
	t.Parallel()
	spec := every("j", time.Hour, 0)
	spec.Group, spec.Queue = "g", 1
	behind := sql.TaskRow{Task: job.Task{ID: 9, JobID: 3, Due: t0 + 1, DueNow: t0 + 1}, State: job.Waiting}
	for executing, want := range []verdict{begin, begin, wait, wait} {
		got := decide(job.Task{ID: 8, JobID: 3, Due: t0, DueNow: t0, Attempt: 1}, scene{job: &sql.JobRow{Job: job.Job{ID: 3, Spec: spec}},
			others: []sql.TaskRow{behind}, group: &sql.Group{ID: 6, Name: "g", Slots: 2}, holders: []int64{1, 2, 8}, executing: executing}, t0)
		if got.verdict != want || (got.slot == 6) != (want == begin) || got.from != 0 {
			t.Errorf("%d execute: got verdict %d, slot of %d, from %d; want verdict %d", executing, got.verdict, got.slot, got.from, want)
		}
	}
}

// TestDecideLateForASlot: who has waited and has no slot of its group is no misfire, as what waits for one is none.
func TestDecideLateForASlot(t *testing.T) {
	t.Parallel()
	spec := every("j", time.Hour, 0)
	spec.Group, spec.Misfire.Policy = "g", job.MisfireSkip
	for name, c := range map[string]struct {
		holders []int64
		waited  job.Micros
		attempt int
		want    verdict
	}{
		"no free slot":        {[]int64{1}, 1, 1, wait},
		"a free slot":         {nil, 1, 1, begin},
		"it holds one":        {[]int64{8}, 1, 1, refuse},
		"it has never waited": {nil, 0, 1, refuse},
		"a retry":             {nil, 1, 2, refuse},
	} {
		task := job.Task{ID: 8, JobID: 3, Due: t0, DueNow: t0 + c.waited, Attempt: c.attempt}
		got := decide(task, scene{job: &sql.JobRow{Job: job.Job{ID: 3, Spec: spec}}, group: &sql.Group{ID: 6, Name: "g", Slots: 1}, holders: c.holders}, after(2*time.Minute))
		if got.verdict != c.want || got.verdict == refuse && got.run.Outcome != job.Missed {
			t.Errorf("%s: got verdict %d, %+v; want %d", name, got.verdict, got.run, c.want)
		}
	}
}
