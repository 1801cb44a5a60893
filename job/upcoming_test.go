package job

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"
	"time"
)

// comingSpecs are definitions of every kind.
func comingSpecs(r *rand.Rand, n int) []*Spec {
	from := time.Date(2027, 3, 25, 0, 0, 0, 0, time.UTC)
	zones := []string{"", "Europe/Berlin", "Asia/Kolkata", "Australia/Lord_Howe"}
	crons := []string{
		"* * * * *", "*/5 * * * *", "30 2 * * *", "0 9 * * mon-fri", "*/20 * * * * *", "0 0 1 * *", "7 */3 * * *",
		"59 59 23 31 12 ? 2026",
	}
	var out []*Spec
	for i := range n {
		s := &Spec{App: "a", Name: fmt.Sprint("job ", i), Timezone: zones[r.IntN(len(zones))]}
		switch r.IntN(8) {
		case 0:
			s.Every = Duration(time.Duration(1+r.IntN(3600)) * time.Second)
			start := from.Add(-time.Duration(r.IntN(1e6)) * time.Second)
			s.Start = &start
		case 1:
			at := from.Add(time.Duration(r.IntN(1e6)) * time.Second)
			s.At = &at
		case 2:
			s.Schedules = []string{crons[r.IntN(len(crons))], crons[r.IntN(len(crons))]}
		default:
			s.Schedule = crons[r.IntN(len(crons))]
		}
		if r.IntN(3) == 0 {
			s.Jitter = Duration(time.Duration(1+r.IntN(86400)) * time.Second)
		}
		if r.IntN(4) == 0 && s.At == nil {
			end := from.Add(time.Duration(r.IntN(10*86400)) * time.Second)
			s.End = &end
		}
		if r.IntN(6) == 0 && s.At == nil {
			s.MaxFires, s.Start = 1+r.Int64N(100), &from // as Defaults sets it
		}
		out = append(out, s)
	}

	return out
}

// The tally equals a count of each due time of each job.
func TestTallyCountsEachDueTime(t *testing.T) {
	t.Parallel()
	r := rand.New(rand.NewPCG(1, 2))
	for round := range 20 {
		from := time.Date(2027, 3, 26, r.IntN(24), r.IntN(60), 0, 0, time.UTC)
		step, steps := []time.Duration{time.Minute, time.Hour, 24 * time.Hour}[r.IntN(3)], 1+r.IntN(100)
		tally, to := NewTally(from, step, steps, 1e9), from.Add(time.Duration(steps)*step)
		want, jobs := make([]int64, steps), 0
		for _, s := range comingSpecs(r, 40) {
			if !tally.Add(s) {
				t.Fatal("there is work left, and it was not done")
			}
			schedule, err := s.Compile()
			if err != nil {
				t.Fatal(err)
			}
			any := false
			for at := from.Add(-time.Microsecond); ; {
				due, ok := schedule.Next(at)
				if !ok || !due.Before(to) {
					break
				}
				want[due.Sub(from)/step]++
				at, any = due, true
			}
			if any {
				jobs++
			}
		}

		total := int64(0)
		for _, n := range want {
			total += n
		}

		if !slices.Equal(tally.Counts, want) || tally.Total != total || tally.Jobs != jobs {
			t.Fatalf("round %d, steps of %s from %s:\ngot  %d jobs, %d: %v\nwant %d jobs, %d: %v", round, step, from,
				tally.Jobs, tally.Total, tally.Counts, jobs, total, want)
		}
	}
}

// Ten thousand jobs with the same schedule, due each minute for a week, cost as much as one. Ten
// thousand different ones end at the bound.
func TestTallyIsBounded(t *testing.T) {
	t.Parallel()
	from := time.Date(2027, 1, 4, 0, 0, 0, 0, time.UTC)
	const week = 7 * 24 * 60
	tally := NewTally(from, time.Minute, week, 20_000)
	for i := range 10_000 {
		if !tally.Add(&Spec{App: "a", Name: fmt.Sprint(i), Schedule: "* * * * *", Timezone: "Europe/Berlin"}) {
			t.Fatalf("the same schedule was too much at job %d", i)
		}
	}

	if tally.Total != 10_000*week || tally.Jobs != 10_000 {
		t.Errorf("got %d of %d jobs", tally.Total, tally.Jobs)
	}

	left, refused := tally.Left, 0
	for i := range 100 {
		if !tally.Add(&Spec{App: "a", Name: fmt.Sprint(i), Schedule: fmt.Sprintf("%d-59 * * * *", i%50)}) {
			refused++
		}
	}

	if refused < 90 || tally.Left < 0 || tally.Left > left {
		t.Errorf("%d of 100 were refused, %d left of %d", refused, tally.Left, left)
	}

	if tally.Add(&Spec{App: "a", Name: "x", Schedule: "not one"}) && tally.Jobs > 10_010 {
		t.Error("what is not valid was counted")
	}
}

func TestComingIsInOrder(t *testing.T) {
	t.Parallel()
	r := rand.New(rand.NewPCG(3, 4))
	from := time.Date(2027, 3, 27, 12, 0, 0, 0, time.UTC)
	to := from.Add(36 * time.Hour)
	type due struct {
		at Micros
		id int64
	}

	var got, want []due
	c := NewComing(to)
	for i, s := range comingSpecs(r, 60) {
		schedule, err := s.Compile()
		if err != nil {
			t.Fatal(err)
		}
		c.Add(int64(i), schedule, from)
		for at := from.Add(-time.Microsecond); ; {
			next, ok := schedule.Next(at)
			if !ok || !next.Before(to) {
				break
			}
			want = append(want, due{MicrosOf(next), int64(i)})
			at = next
		}
	}

	for d, ok := c.Next(); ok; d, ok = c.Next() {
		got = append(got, due{MicrosOf(d.Due), d.ID})
	}

	slices.SortFunc(want, func(a, b due) int {
		if a.at != b.at {
			return int(min(max(a.at-b.at, -1), 1))
		}
		return int(a.id - b.id)
	})

	if !slices.Equal(got, want) {
		t.Errorf("got %d due times, want %d in order", len(got), len(want))
	}
}
