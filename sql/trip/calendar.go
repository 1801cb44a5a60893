package trip

import (
	"encoding/hex"
	"maps"
	"slices"
	"strings"

	"go-crontab/job"
	"go-crontab/sql"
)

// A version of a definition is pinned to its calendars by their digests. A change of a calendar
// makes a new version of every job that names it. So a version determines the due times, and
// changes of calendars need no announcement.

// DigestsOf returns the digests that pin a definition to its calendars.
func DigestsOf(calendars []*job.Calendar) string {
	digests := make([]string, len(calendars))
	for i, c := range calendars {
		digest := c.Digest()
		digests[i] = hex.EncodeToString(digest[:])
	}
	return strings.Join(digests, ",")
}

// withCalendars adds the pinned calendars to definitions, and leaves out definitions whose
// calendars have changed.
func withCalendars(r sql.Reader, definitions []Definition) ([]Definition, error) {
	var jobs []int64
	for i := range definitions {
		if definitions[i].pinned != "" {
			jobs = append(jobs, definitions[i].JobID)
		}
	}

	if len(jobs) == 0 {
		return definitions, nil
	}

	byDigest, err := calendarsOf(r, jobs)
	if err != nil {
		return nil, err
	}

	kept := definitions[:0]
	for _, d := range definitions {
		changed := false
		if d.pinned != "" {
			for digest := range strings.SplitSeq(d.pinned, ",") {
				c := byDigest[digest]
				d.Calendars, changed = append(d.Calendars, c), changed || c == nil
			}
		}
		if !changed {
			kept = append(kept, d)
		}
	}

	return kept, nil
}

// calendarsOf reads the calendars that jobs name, by their digests.
func calendarsOf(r sql.Reader, jobs []int64) (map[string]*job.Calendar, error) {
	names := map[string]bool{}
	scan := func(rows *sql.Rows) (name string, err error) {
		err = rows.Scan(&name)
		names[name] = true
		return name, err
	}
	for part := range slices.Chunk(jobs, atOnce) {
		query := `
			SELECT DISTINCT name
			FROM job_ref FORCE INDEX (job)
			WHERE kind = ? AND job_id IN ` + list(slices.Values(part))
		if _, err := sql.Select(r, "read names of calendars", scan, query, RefCalendar); err != nil {
			return nil, err
		}
	}

	found, err := readableCalendars(r, slices.Sorted(maps.Keys(names)))
	byDigest := make(map[string]*job.Calendar, len(found))
	for _, c := range found {
		byDigest[DigestsOf([]*job.Calendar{c})] = c
	}

	return byDigest, err
}

// Referring lists the living jobs that refer to something by its name.
func Referring(r sql.Reader, kind RefKind, name string) ([]int64, error) {
	const query = `
		SELECT r.job_id
		FROM job_ref r FORCE INDEX (PRIMARY)
		STRAIGHT_JOIN job j FORCE INDEX (PRIMARY) ON j.id = r.job_id AND j.living = 1
		WHERE r.kind = ? AND r.name = ?
		ORDER BY r.job_id`
	return sql.Select(r, "list jobs by reference", scanID, query, kind, name)
}

// NamesOf returns the names of jobs and of their apps, by job id.
func NamesOf(r sql.Reader, jobs []int64) ([]job.Name, error) {
	if len(jobs) == 0 {
		return nil, nil
	}

	query := `
		SELECT a.name, j.name
		FROM job j FORCE INDEX (PRIMARY)
		STRAIGHT_JOIN app a ON a.id = j.app_id
		WHERE j.id IN ` + list(slices.Values(jobs)) + `
		ORDER BY j.id`
	scan := func(rows *sql.Rows) (n job.Name, err error) {
		err = rows.Scan(&n.App, &n.Name)
		return n, err
	}
	return sql.Select(r, "read names of jobs", scan, query)
}
