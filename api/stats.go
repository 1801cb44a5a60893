package api

import (
	"net/http"
	"time"

	"go-crontab/api/view"
	"go-crontab/job"
	"go-crontab/sql/read"
)

const (
	statsStep = job.FigureStep
	statsMost = 10_000
	statsRate = int(time.Minute / statsStep)
)

// stats: GET /api/v1/stats
func (s *Server) stats(w http.ResponseWriter, r *http.Request) error {
	q := newQuery(r)
	minutes := q.number(statsMinutes)
	if err := q.err(); err != nil {
		return err
	}

	now, err := s.now()
	if err != nil {
		return err
	}

	ctx, db, at := r.Context(), s.cfg.DB, job.MicrosOf(now)
	amounts, err := db.Amounts(ctx, at, statsMost)
	if err != nil {
		return err
	}

	sessions, err := db.Sessions(ctx)
	if err != nil {
		return err
	}

	const step = job.Micros(statsStep / time.Microsecond)
	current := at - at%step
	first := current.Add(-time.Duration(minutes) * time.Minute)

	figures, err := read.Figures(db.Reader(ctx), min(first, current.Add(-time.Minute)))
	if err != nil {
		return err
	}

	v := view.Stats{
		Now: at.Time(), Executing: amounts.Executing, Prepared: amounts.Prepared, Waiting: amounts.Waiting,
		Backlog: amounts.Backlog, Most: statsMost,
		Nodes: []view.StatsNode{}, StepSeconds: int(statsStep / time.Second),
	}
	for _, x := range sessions {
		v.Slots += x.Slots
		v.Nodes = append(v.Nodes, view.StatsNode{
			Node: x.Node, Session: x.ID.String(), Slots: x.Slots, Executing: x.Executing, Prepared: x.Prepared,
			Draining: x.Draining,
		})
	}

	// For each step, add up the figures of all nodes.
	late := map[job.Micros]*job.Lates{}
	parts := map[job.Micros]*view.StatsPart{}
	for i := range figures {
		f := &figures[i]
		p := parts[f.At]
		if p == nil {
			p = &view.StatsPart{}
			parts[f.At], late[f.At] = p, &job.Lates{}
		}

		p.Starts += f.Starts
		p.Ends += f.Ends
		p.Failed += f.Failed
		late[f.At].Add(&f.Late)
	}

	for at := first; at <= current; at += step {
		p := view.StatsPart{At: at.Time()}
		if counted := parts[at]; counted != nil {
			p.Starts, p.Ends, p.Failed = counted.Starts, counted.Ends, counted.Failed
			p.P50, p.P99 = quantile(late[at], 0.5), quantile(late[at], 0.99)
		}
		v.Series = append(v.Series, p)
	}

	// The last complete minute.
	var minute job.Lates
	starts, ends := int64(0), int64(0)
	for i := 1; i <= statsRate; i++ {
		if p := parts[current-job.Micros(i)*step]; p != nil {
			starts, ends = starts+p.Starts, ends+p.Ends
			minute.Add(late[current-job.Micros(i)*step])
		}
	}

	v.LastMinute = view.StatsRates{
		Starts: float64(starts) / 60, Ends: float64(ends) / 60, P50: quantile(&minute, 0.5),
		P99: quantile(&minute, 0.99),
	}

	return answer(w, http.StatusOK, v)
}

// quantile returns a quantile in milliseconds, or nil without values.
func quantile(l *job.Lates, share float64) *float64 {
	d, ok := l.Quantile(share)
	if !ok {
		return nil
	}
	ms := float64(d.Microseconds()) / 1000
	return &ms
}
