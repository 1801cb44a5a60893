package trip

import (
	"fmt"
	"math"
	"strings"

	"go-crontab/job"
	"go-crontab/sql"
)

// A waiting run has a place in a line: the line of its job or of its group. The column due_now
// holds the place, so the index `live` can find the first run of a line, or count a line, without
// reading other lines.
//
// In the line of a job, scheduled and manual runs come first, and backfills after them. Among each
// of these, the earliest due run comes first. In the line of a group, the highest priority comes
// first, and among equal ones the earliest due run. The places in a group's line are negative.
const (
	dueBits      = 33 // seconds since 1970
	priorityBits = 8
	jobBits      = dueBits + 1 // one bit marks backfills. That leaves 29 bits for jobs
	groupBits    = dueBits + priorityBits
)

// JobPlace returns the place of a run in the line of its job.
func JobPlace(r *Run) job.Micros {
	place := r.JobID<<jobBits | dueSecond(r)
	if r.Kind == Backfill {
		place |= 1 << dueBits
	}
	return job.Micros(place)
}

// GroupPlace returns the place of a run in the line of a group.
func GroupPlace(r *Run, group int32, priority int) job.Micros {
	return job.Micros(math.MinInt64 + int64(group)<<groupBits + int64(job.MaxPriority-priority)<<dueBits + dueSecond(r))
}

// dueSecond returns the second that orders a run in its line. For a backfill it is the time at
// which the run was ready, because the due times of a backfill lie far back.
func dueSecond(r *Run) int64 {
	due := r.Due
	if r.Kind == Backfill {
		due = r.DueNow
	}
	return min(max(0, int64(due)/1_000_000), 1<<dueBits-1)
}

// span is a range of places.
type span struct{ from, before int64 }

func scheduleLine(id int64) span   { return span{id << jobBits, id<<jobBits | 1<<dueBits} }
func backfillLine(id int64) span   { return span{id<<jobBits | 1<<dueBits, (id + 1) << jobBits} }
func groupLine(group int32) span   { return span{groupStart(group), groupStart(group + 1)} }
func groupStart(group int32) int64 { return math.MinInt64 + int64(group)<<groupBits }

// groupAt returns the group of a place.
func groupAt(place job.Micros) int32 { return int32((int64(place) - math.MinInt64) >> groupBits) }

func (s span) String() string { return fmt.Sprintf("due_now >= %d AND due_now < %d", s.from, s.before) }

// inLines returns the condition that a waiting run is in one of the lines.
func inLines(ids []int64, line func(int64) span) string {
	parts := make([]string, len(ids))
	for i, id := range ids {
		parts[i] = line(id).String()
	}
	return "owner = -1 AND (" + strings.Join(parts, " OR ") + ")"
}

// Queued counts, by job, the runs in the lines of jobs, without backfills. It reads only the index.
func Queued(r sql.Reader, jobs []int64) (map[int64]int, error) {
	out := map[int64]int{}
	if len(jobs) == 0 {
		return out, nil
	}

	query := fmt.Sprintf(`
		SELECT due_now DIV %d line, COUNT(*)
		FROM run FORCE INDEX (live)
		WHERE `, int64(1)<<jobBits) + inLines(jobs, scheduleLine) + `
		GROUP BY line`

	scan := func(rows *sql.Rows) (c [2]int64, err error) {
		err = rows.Scan(&c[0], &c[1])
		return c, err
	}

	counts, err := sql.Select(r, "count waiting runs", scan, query)
	for _, c := range counts {
		out[c[0]] = int(c[1])
	}

	return out, err
}

// Lines lists the runs in the lines of jobs in order, without backfills.
func Lines(r sql.Reader, jobs []int64) ([]Held, error) {
	if len(jobs) == 0 {
		return nil, nil
	}
	query := `
		SELECT ` + heldColumns + `
		FROM run FORCE INDEX (live)
		WHERE ` + inLines(jobs, scheduleLine) + `
		ORDER BY due_now, id`

	return sql.Select(r, "list waiting runs", scanHeld, query)
}

// firsts lists the first n(i) runs of line i.
func firsts(r sql.Reader, lines []span, n func(i int) int) ([]Held, error) {
	if len(lines) == 0 {
		return nil, nil
	}

	parts := make([]string, len(lines))
	for i, line := range lines {
		parts[i] = fmt.Sprintf(`(
			SELECT %s
			FROM run FORCE INDEX (live)
			WHERE owner = -1 AND %s
			ORDER BY due_now
			LIMIT %d)`, heldColumns, line, n(i))
	}

	return sql.Select(r, "find the next waiting runs", scanHeld, strings.Join(parts, " UNION ALL "))
}

// InJobLines returns the condition that a run waits in the line of one of the jobs.
func InJobLines(jobs []int64) string {
	return inLines(jobs, func(id int64) span { return span{scheduleLine(id).from, backfillLine(id).before} })
}
