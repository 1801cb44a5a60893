package api

import (
	"net/http"
	"time"

	"go-crontab/job"
	"go-crontab/sql/read"
)

// statsView is the state of the cluster, and its load in the last minutes.
type statsView struct {
	Now         string      `json:"now" format:"date-time" doc:"The time by MySQL's clock."`
	Executing   int64       `json:"executing" doc:"The number of attempts that are executing."`
	Prepared    int64       `json:"prepared" doc:"The number of prepared runs on nodes."`
	Waiting     int64       `json:"waiting" doc:"The number of due times that wait for a run of their job, a slot of their group, or a node."`
	Backlog     int64       `json:"backlog" doc:"The number of due times that have passed without a start and wait for nothing but a node."`
	Most        int64       `json:"most" doc:"The limit up to which these four are counted: a number equal to it may be larger."`
	Slots       int         `json:"slots" doc:"How many attempts all nodes together can execute. An HTTP request counts as a sixteenth of one."`
	Nodes       []statsNode `json:"nodes" doc:"The sessions of the nodes, as of their last heartbeats."`
	StepSeconds int         `json:"step_seconds" doc:"The length of one part of 'series'."`
	Series      []statsPart `json:"series" doc:"The last minutes in parts, the oldest first. The latest parts may not be complete yet."`
	LastMinute  statsRates  `json:"last_minute" doc:"The six parts before the current one."`
}

type statsNode struct {
	Node      string `json:"node" doc:"The name of the node."`
	Session   string `json:"session" format:"uuid" doc:"Its session."`
	Slots     int    `json:"slots" doc:"How many attempts it can execute. An HTTP request counts as a sixteenth of one."`
	Executing int    `json:"executing" doc:"How many attempts it is executing."`
	Prepared  int    `json:"prepared" doc:"How many prepared runs it holds."`
	Draining  bool   `json:"draining" doc:"Whether its process is shutting down."`
}

type statsPart struct {
	At     string   `json:"at" format:"date-time" doc:"When it begins."`
	Starts int64    `json:"starts" doc:"The number of attempts that started in this part."`
	Ends   int64    `json:"ends" doc:"The number of started attempts that ended in this part."`
	Failed int64    `json:"failed" doc:"How many of those did not succeed."`
	P50    *float64 `json:"lateness_p50_ms,omitempty" doc:"The median lateness of the started attempts, in milliseconds."`
	P99    *float64 `json:"lateness_p99_ms,omitempty" doc:"The 99th percentile of their lateness, in milliseconds."`
}

type statsRates struct {
	Starts float64  `json:"starts_per_second" doc:"How many attempts started, per second."`
	Ends   float64  `json:"ends_per_second" doc:"How many attempts ended, per second."`
	P50    *float64 `json:"lateness_p50_ms,omitempty" doc:"The median lateness of the started attempts, in milliseconds."`
	P99    *float64 `json:"lateness_p99_ms,omitempty" doc:"The 99th percentile of their lateness, in milliseconds."`
}

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

	v := statsView{
		Now: stamp(at), Executing: amounts.Executing, Prepared: amounts.Prepared, Waiting: amounts.Waiting,
		Backlog: amounts.Backlog, Most: statsMost,
		Nodes: []statsNode{}, StepSeconds: int(statsStep / time.Second),
	}
	for _, x := range sessions {
		v.Slots += x.Slots
		v.Nodes = append(v.Nodes, statsNode{
			Node: x.Node, Session: x.ID.String(), Slots: x.Slots, Executing: x.Executing, Prepared: x.Prepared,
			Draining: x.Draining,
		})
	}

	// Add up the figures of all nodes, by step.
	late := map[job.Micros]*job.Lates{}
	parts := map[job.Micros]*statsPart{}
	for i := range figures {
		f := &figures[i]
		p := parts[f.At]
		if p == nil {
			p = &statsPart{}
			parts[f.At], late[f.At] = p, &job.Lates{}
		}

		p.Starts += f.Starts
		p.Ends += f.Ends
		p.Failed += f.Failed
		late[f.At].Add(&f.Late)
	}

	for at := first; at <= current; at += step {
		p := statsPart{At: stamp(at)}
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

	v.LastMinute = statsRates{
		Starts: float64(starts) / 60, Ends: float64(ends) / 60, P50: quantile(&minute, 0.5),
		P99: quantile(&minute, 0.99),
	}

	return answer(w, http.StatusOK, v)
}

// quantile is in milliseconds; nil without values.
func quantile(l *job.Lates, share float64) *float64 {
	d, ok := l.Quantile(share)
	if !ok {
		return nil
	}
	ms := float64(d.Microseconds()) / 1000
	return &ms
}
