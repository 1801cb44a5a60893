package trip

import (
	"maps"
	"math"
	"slices"

	"go-crontab/job"
	"go-crontab/sql"
)

// Bits of the column awaited.
const (
	bitAwaited  = 1 // another run waits for the end of this run, or this run was woken
	bitWatched  = 2 // its end makes a run of another job due, or the next run of its own job
	bitGathered = 4 // its job follows several jobs, and each of these has ended
)

// WatchExecuting marks the executing runs of jobs as watched. The transaction has locked the rows of
// the jobs, so no other run of them starts.
func WatchExecuting(tx *sql.Tx, jobs []int64) error {
	if len(jobs) == 0 {
		return nil
	}
	owners, err := Owners(tx)
	if err != nil {
		return err
	}
	executing, err := ExecutingOf(tx, owners, jobs)
	if err != nil || len(executing) == 0 {
		return err
	}

	query := `
		UPDATE run FORCE INDEX (PRIMARY)
		SET awaited = awaited & 7 | 2
		WHERE state = 'executing' AND id IN ` + each(executing, func(h *Held) int64 { return h.Launch.Run })
	_, err = tx.Exec("watch executing runs", query)
	return err
}

// Follow marks jobs as followed, and watches their executing runs. The transaction has locked the
// rows of the jobs.
func Follow(tx *sql.Tx, jobs []int64) error {
	if len(jobs) == 0 {
		return nil
	}
	query := `
		UPDATE job FORCE INDEX (PRIMARY)
		SET followed = 1
		WHERE id IN ` + list(slices.Values(jobs))
	if _, err := tx.Exec("mark jobs as followed", query); err != nil {
		return err
	}
	return WatchExecuting(tx, jobs)
}

// Follower is a living job that may follow another one: its definition names the upstream job.
type Follower struct {
	Upstream job.Name
	UpID     int64
	JobID    int64
	AppID    int32
	Hash     int
	Version  int32
}

// Followers lists the jobs that may follow living jobs, by upstream job. It takes no lock.
func Followers(r sql.Reader, upstreams []int64) (map[int64][]Follower, error) {
	out := map[int64][]Follower{}
	scan := func(rows *sql.Rows) (f Follower, err error) {
		err = rows.Scan(&f.UpID, &f.Upstream.App, &f.Upstream.Name, &f.JobID, &f.AppID, &f.Hash, &f.Version)
		return f, err
	}
	for part := range slices.Chunk(upstreams, atOnce) {
		query := `
			SELECT u.id, a.name, u.name, f.id, f.app_id, f.hash, f.version
			FROM job u FORCE INDEX (PRIMARY)
			STRAIGHT_JOIN app a ON a.id = u.app_id
			STRAIGHT_JOIN job_ref r FORCE INDEX (PRIMARY) ON r.kind = 6 AND r.name = u.name
			STRAIGHT_JOIN job f FORCE INDEX (PRIMARY) ON f.id = r.job_id
			WHERE u.id IN ` + list(slices.Values(part)) + ` AND u.living = 1 AND f.living = 1
			ORDER BY f.id`
		found, err := sql.Select(r, "read followers of jobs", scan, query)
		if err != nil {
			return nil, err
		}
		for _, f := range found {
			out[f.UpID] = append(out[f.UpID], f)
		}
	}

	return out, nil
}

// Arrival is the end of an upstream job's run, for a job that follows several jobs. Arrivals with
// the same head and time belong to one wave.
type Arrival struct {
	JobID     int64    // the job that waits
	Run       int64    // the run that ended
	Upstream  int64    // its job
	Name      job.Name // of that job; only of Arrivals
	Ended     job.Micros
	Head      int64      // the job in which the chain of runs began
	Scheduled job.Micros // the due time of the first run of the chain
}

// InsertArrivals writes arrivals.
func InsertArrivals(tx *sql.Tx, arrivals []Arrival) error {
	if len(arrivals) == 0 {
		return nil
	}

	r := valueRows(len(arrivals))
	for i := range arrivals {
		a := &arrivals[i]
		r.begin()
		r.number(a.JobID)
		r.number(a.Run)
		r.number(a.Upstream)
		r.number(int64(a.Ended))
		r.number(a.Head)
		r.number(int64(a.Scheduled))
		r.end()
	}

	query := `
		INSERT INTO arrival (job_id, run_id, upstream, ended, head, scheduled)
		VALUES ` + r.values()
	_, err := tx.Exec("insert arrivals", query)
	return err
}

// Arrivals lists the arrivals of jobs, the earliest end first. While the transaction has locked
// the row of a job, nobody else removes arrivals of that job.
func Arrivals(r sql.Reader, jobs []int64) (map[int64][]Arrival, error) {
	out := map[int64][]Arrival{}
	if len(jobs) == 0 {
		return out, nil
	}

	query := `
		SELECT w.job_id, w.run_id, w.upstream, w.ended, w.head, w.scheduled, COALESCE(a.name, ''), COALESCE(u.name, '')
		FROM arrival w FORCE INDEX (PRIMARY)
		LEFT JOIN job u FORCE INDEX (PRIMARY) ON u.id = w.upstream
		LEFT JOIN app a FORCE INDEX (PRIMARY) ON a.id = u.app_id
		WHERE w.job_id IN ` + list(slices.Values(jobs)) + `
		ORDER BY w.ended, w.run_id`

	scan := func(rows *sql.Rows) (a Arrival, err error) {
		err = rows.Scan(&a.JobID, &a.Run, &a.Upstream, &a.Ended, &a.Head, &a.Scheduled, &a.Name.App, &a.Name.Name)
		return a, err
	}

	found, err := sql.Select(r, "read arrivals", scan, query)
	for _, a := range found {
		out[a.JobID] = append(out[a.JobID], a)
	}

	return out, err
}

// DropArrivals removes arrivals.
func DropArrivals(tx *sql.Tx, arrivals []Arrival) error {
	if len(arrivals) == 0 {
		return nil
	}

	r := jsonRows(len(arrivals))
	for i := range arrivals {
		r.begin()
		r.number(arrivals[i].JobID)
		r.number(arrivals[i].Run)
		r.end()
	}

	const query = `
		DELETE a
		FROM JSON_TABLE(?, '$[*]' COLUMNS (job_id BIGINT PATH '$[0]', run_id BIGINT PATH '$[1]')) n
		STRAIGHT_JOIN arrival a FORCE INDEX (PRIMARY) ON a.job_id = n.job_id AND a.run_id = n.run_id`
	_, err := tx.Exec("drop arrivals", query, r.json())
	return err
}

// KeepArrivals removes the arrivals of a job. It keeps arrivals from the given upstream jobs.
func KeepArrivals(tx *sql.Tx, jobID int64, upstreams []int64) error {
	query := `
		DELETE FROM arrival
		WHERE job_id = ?`
	if len(upstreams) > 0 {
		query += " AND upstream NOT IN " + list(slices.Values(upstreams))
	}
	_, err := tx.Exec("drop arrivals of a job", query, jobID)
	return err
}

// MarkGathered marks prepared or executing runs of jobs that follow several jobs. The arrivals of
// a marked run are used up.
func MarkGathered(tx *sql.Tx, runs []int64) error {
	if len(runs) == 0 {
		return nil
	}
	query := `
		UPDATE run FORCE INDEX (PRIMARY)
		SET awaited = awaited & 7 | 4
		WHERE id IN ` + list(slices.Values(runs))
	_, err := tx.Exec("mark gathered runs", query)
	return err
}

// DropIncomplete deletes prepared runs of a session whose jobs wait for further ends. The
// transaction has locked the rows of these jobs. DropIncomplete also writes these rows: servers
// with several writers compare only written rows, and two such runs must see each other.
func DropIncomplete(tx *sql.Tx, session Owner, launches []Launch, jobs []int64) error {
	if len(launches) == 0 {
		return nil
	}
	change := `
		UPDATE job FORCE INDEX (PRIMARY)
		SET ` + sql.Next("gathers") + `
		WHERE id IN ` + list(slices.Values(jobs))
	if _, err := tx.Exec("write jobs that wait for others", change); err != nil {
		return err
	}

	query := `
		DELETE r
		FROM run r FORCE INDEX (PRIMARY)
		WHERE ` + at(session, Prepared, launches)
	_, err := tx.Exec("drop runs that wait for others", query)
	return err
}

// Delayed is the end of a job's run that makes the next run of the same job due.
type Delayed struct {
	JobID int64
	Due   job.Micros // of the run that ended
	At    job.Micros // the next due time; zero: none
}

// MoveDelayed gives jobs with a delay their next due times. It skips a job that already has a due
// time, or whose ended run is not the latest of the schedule. The transaction has locked the rows
// of the jobs.
func MoveDelayed(tx *sql.Tx, ends []Delayed) error {
	byJob := map[int64]Delayed{}
	for _, e := range ends {
		if e.Due >= byJob[e.JobID].Due {
			byJob[e.JobID] = e
		}
	}
	if len(byJob) == 0 {
		return nil
	}

	latest, err := LastScheduled(tx, slices.Sorted(maps.Keys(byJob)), math.MaxInt64)
	if err != nil {
		return err
	}
	r := jsonRows(len(byJob))
	for _, id := range slices.Sorted(maps.Keys(byJob)) {
		e := byJob[id]
		if l, ok := latest[id]; e.At == 0 || ok && l.Due > e.Due {
			continue
		}
		r.begin()
		r.number(id)
		r.number(int64(e.At))
		r.end()
	}

	const query = `
		UPDATE JSON_TABLE(?, '$[*]' COLUMNS (id BIGINT PATH '$[0]', at BIGINT PATH '$[1]')) n
		STRAIGHT_JOIN job j FORCE INDEX (PRIMARY) ON j.id = n.id
		SET j.parked = IF(j.paused = 0, j.parked, COALESCE(j.parked, GREATEST(n.at, LEAST(j.begun_to, 9223372036854775806) + 1))),
			j.next_due = IF(j.paused = 0, COALESCE(j.next_due, GREATEST(n.at, LEAST(j.begun_to, 9223372036854775806) + 1)), j.next_due)
		WHERE j.living = 1`
	_, err = tx.Exec("move cursors after ends", query, r.json())
	return err
}

// LastScheduled returns, by job, the last attempt of the schedule's latest run. It looks at runs
// that are due up to an instant and at runs that have begun.
func LastScheduled(r sql.Reader, jobs []int64, upto job.Micros) (map[int64]Ahead, error) {
	out := map[int64]Ahead{}
	if len(jobs) == 0 {
		return out, nil
	}

	last := `
		SELECT COALESCE((
			SELECT l.id
			FROM run l FORCE INDEX (attempt)
			WHERE l.job_id = j.id AND l.due <= GREATEST(?, j.begun_to) AND l.request = 0
			ORDER BY l.job_id DESC, l.due DESC, l.request DESC, l.attempt DESC
			LIMIT 1), 0)
		FROM job j FORCE INDEX (PRIMARY)
		WHERE j.id IN ` + list(slices.Values(jobs))
	runs, err := sql.Select(r, "find the last runs of schedules", scanID, last, int64(upto))
	if err != nil || len(runs) == 0 {
		return out, err
	}

	query := `
		SELECT id, job_id, due, attempt, state, ended
		FROM run FORCE INDEX (PRIMARY)
		WHERE id IN ` + list(slices.Values(runs))

	scan := func(rows *sql.Rows) (a Ahead, err error) {
		err = rows.Scan(&a.Run, &a.JobID, &a.Due, &a.Attempt, &a.State, &a.Ended)
		return a, err
	}

	found, err := sql.Select(r, "read the last runs of schedules", scan, query)
	for _, a := range found {
		out[a.JobID] = a
	}

	return out, err
}

// LinkedJob is a living job, with its definition if it follows other jobs.
type LinkedJob struct {
	ID   int64
	Spec *job.Spec // nil: it follows none, or its definition cannot be read
}

// LinkedJobs returns jobs by name.
func LinkedJobs(r sql.Reader, names []job.Name) (map[job.Name]LinkedJob, error) {
	out := map[job.Name]LinkedJob{}
	scan := func(rows *sql.Rows) (n job.Name, err error) {
		var l LinkedJob
		var text string
		if err = rows.Scan(&n.App, &n.Name, &l.ID, &text); err != nil {
			return n, err
		}
		if spec, err := job.DecodeSpec(text); text != "" && err == nil {
			l.Spec = &spec
		}
		out[n] = l
		return n, nil
	}
	for part := range slices.Chunk(names, atOnce) {
		w := jsonRows(len(part))
		for _, n := range part {
			w.begin()
			w.text(n.App)
			w.text(n.Name)
			w.end()
		}
		const query = `
			SELECT a.name, j.name, j.id, COALESCE(v.definition, '')
			FROM JSON_TABLE(?, '$[*]' COLUMNS (app VARCHAR(128) PATH '$[0]', name VARCHAR(128) PATH '$[1]')) n
			STRAIGHT_JOIN app a ON a.name = n.app COLLATE utf8mb4_bin
			STRAIGHT_JOIN job j FORCE INDEX (name)
				ON j.app_id = a.id AND j.name = n.name COLLATE utf8mb4_bin AND j.living = 1
			LEFT JOIN job_version v FORCE INDEX (PRIMARY) ON v.job_id = j.id AND v.version = j.version
				AND EXISTS (SELECT 1 FROM job_ref r FORCE INDEX (job) WHERE r.job_id = j.id AND r.kind = 6)`
		if _, err := sql.Select(r, "read jobs by name", scan, query, w.json()); err != nil {
			return nil, err
		}
	}

	return out, nil
}

func scanName(rows *sql.Rows) (name string, err error) {
	err = rows.Scan(&name)
	return name, err
}

// SomeNames lists names of jobs of an app, for suggestions.
func SomeNames(r sql.Reader, app string) ([]string, error) {
	const query = `
		SELECT j.name
		FROM app a
		STRAIGHT_JOIN job j FORCE INDEX (listed) ON j.app_id = a.id AND j.living = 1
		WHERE a.name = ?
		LIMIT 1000`
	return sql.Select(r, "list names of jobs", scanName, query, app)
}

// NamedUpstreams returns those of the given names that living jobs of any app follow.
func NamedUpstreams(r sql.Reader, names []string) (out []string, err error) {
	for part := range slices.Chunk(names, atOnce) {
		query := `
			SELECT DISTINCT name
			FROM job_ref FORCE INDEX (PRIMARY)
			WHERE kind = 6 AND name IN (` + sql.Values(1, len(part))[1:]
		found, err := sql.Select(r, "look for followers by name", scanName, query, texts(part)...)
		if err != nil {
			return nil, err
		}
		out = append(out, found...)
	}

	return out, nil
}

// FollowersOf returns the jobs that follow jobs.
func FollowersOf(r sql.Reader, ids []int64) (map[int64][]LinkedJob, error) {
	found, err := Followers(r, ids)
	if err != nil {
		return nil, err
	}
	var jobs []int64
	for _, list := range found {
		for _, f := range list {
			jobs = append(jobs, f.JobID)
		}
	}
	slices.Sort(jobs)
	read, err := Definitions(r, slices.Compact(jobs))
	if err != nil {
		return nil, err
	}
	specs := map[int64]*job.Spec{}
	for _, d := range read {
		if spec, err := job.DecodeSpec(d.Text); err == nil {
			specs[d.JobID] = &spec
		}
	}

	out := map[int64][]LinkedJob{}
	for id, list := range found {
		for _, f := range list {
			if spec := specs[f.JobID]; spec != nil && spec.Follows(f.Upstream) {
				out[id] = append(out[id], LinkedJob{ID: f.JobID, Spec: spec})
			}
		}
	}
	return out, nil
}
