package schedule

import (
	"testing"
	"time"

	"go-crontab/job"
	"go-crontab/sql"
)

// What each fire costs a node beside its statements; make bench-compare holds these against bench/baseline.txt.

// BenchmarkPrepared: a batch enters the set among 10,000 others, and leaves it again when it is due.
func BenchmarkPrepared(b *testing.B) {
	const others, batch = 10_000, 500
	p := NewPrepared()
	far := make([]job.Task, others)
	for i := range far {
		far[i] = job.Task{ID: int64(1 + i), DueNow: job.Micros(1_000_000_000 + i*7919%others)}
	}
	p.Add(far, 0)
	tasks := make([]job.Task, batch)
	for i := range tasks {
		tasks[i] = job.Task{ID: int64(1_000_000 + i), DueNow: job.Micros(1000 + i*31%batch)}
	}
	b.ReportAllocs()
	for b.Loop() {
		p.Add(tasks, 0)
		taken, _ := p.Take(10_000, 0, batch)
		if len(taken) != batch {
			b.Fatalf("took %d, want %d", len(taken), batch)
		}
		for _, t := range taken {
			p.Drop(t)
		}
	}
}

// BenchmarkUntil: the due times of the next 40 s of a job that is due each second.
func BenchmarkUntil(b *testing.B) {
	for name, spec := range map[string]job.Spec{
		"every": {Name: "j", Every: job.Duration(time.Second), Start: new(time.Date(2026, 3, 7, 0, 0, 0, 0, time.UTC)), Command: "true"},
		"cron":  {Name: "j", Schedules: []string{"* * * * * *"}, Timezone: "Europe/Berlin", Command: "true"},
	} {
		b.Run(name, func(b *testing.B) {
			now := job.MicrosOf(time.Date(2026, 3, 7, 12, 0, 0, 0, time.UTC))
			spec.Defaults(now.Time())
			sched, err := spec.Compile()
			if err != nil {
				b.Fatal(err)
			}
			j := &sql.JobRow{Job: job.Job{ID: 1, Spec: spec, Version: 1}}
			b.ReportAllocs()
			for b.Loop() {
				if d := until(j, sched, now, now, now.Add(planHorizon), time.Minute); len(d.tasks) < 40 || len(d.tasks) > 41 {
					b.Fatalf("got %d due times, want 40, or 41 with both ends", len(d.tasks))
				}
			}
		})
	}
}
