package sql

import (
	"context"
	stdsql "database/sql"
	"fmt"
	"slices"

	"go-crontab/job"
)

// Jobs are found by what their definitions say of them in two tables: job_term has owners, labels, groups and calendars,
// job_part the parts of names. Both follow from the definition, are written with it, and only by what is here. Rows of
// jobs that this did not see (a version before wrote them, or a hand did) have job.listed = 0, and a tidier lists them.

// listing is a job that is to be found.
type listing struct {
	id    int64
	name  string
	terms []job.Term
}

func listingOf(id int64, name string, s *job.Spec) listing {
	return listing{id, name, s.Terms()}
}

// list makes jobs be found that were not.
func (tx *Tx) list(jobs []listing) error {
	var terms, parts []any
	for _, j := range jobs {
		for _, t := range j.terms {
			terms = append(terms, t[:], j.id)
		}
		for _, p := range job.NameParts(j.name) {
			parts = append(parts, p.Text, j.id, p.Pos)
		}
	}
	for part := range slices.Chunk(terms, 2*500) {
		if _, err := tx.exec("list terms", "INSERT INTO job_term (term, job_id) VALUES "+values(len(part)/2, 2), part...); err != nil {
			return err
		}
	}
	for part := range slices.Chunk(parts, 3*500) {
		if _, err := tx.exec("list names", "INSERT INTO job_part (part, job_id, pos) VALUES "+values(len(part)/3, 3), part...); err != nil {
			return err
		}
	}
	return nil
}

// unlist makes jobs not be found any more.
func (tx *Tx) unlist(ids []int64) error {
	if len(ids) == 0 {
		return nil
	}
	for _, table := range []string{"job_term", "job_part"} {
		if _, err := tx.exec("unlist", "DELETE t FROM "+eachOf+table+" t FORCE INDEX (job) ON t.job_id = n.id", numbers(ids)); err != nil {
			return err
		}
	}
	return nil
}

// stored is what stands of a job that is about to be written.
type stored struct {
	app, name, spec string
	listed, deleted bool
}

// readStored reads it of a job whose row this transaction has locked.
func (tx *Tx) readStored(id int64) (out stored, err error) {
	found := false
	err = tx.query("read job", func(rows *stdsql.Rows) error {
		found = true
		return rows.Scan(&out.app, &out.name, &out.spec, (*flag)(&out.listed), &out.deleted)
	}, "SELECT app, name, spec, listed, living IS NULL FROM job WHERE id = ?", id)
	if err == nil && !found {
		err = fmt.Errorf("job %d: %w", id, ErrNotFound)
	}
	return out, err
}

// relist has a job be found by what it is now. Its row is locked, and was as given.
func (tx *Tx) relist(was stored, j *job.Job, spec string) error {
	if was.app != j.Spec.App {
		if err := tx.leaveApp(j.ID, was.app, j.Spec.App); err != nil {
			return err
		}
	}
	if was.listed && was.deleted == j.Deleted && was.spec == spec {
		return nil
	}
	now := listingOf(j.ID, j.Spec.Name, &j.Spec)
	if was.listed && !was.deleted && !j.Deleted {
		old, err := job.DecodeSpec(was.spec)
		if err == nil && was.name == now.name && slices.Equal(old.Terms(), now.terms) {
			return nil
		}
	}
	if err := tx.unlist([]int64{j.ID}); err != nil || j.Deleted {
		return err
	}
	return tx.list([]listing{now})
}

// ListUnlisted has some jobs be found that are not listed yet, and returns how many. It reads one entry of an index when
// there are none.
func (db *DB) ListUnlisted(ctx context.Context, limit int) (int, error) {
	ids, err := db.ids(ctx, "find unlisted jobs", "SELECT id FROM job FORCE INDEX (listed) WHERE listed = 0 ORDER BY id LIMIT ?", limit)
	if err != nil || len(ids) == 0 {
		return 0, err
	}
	err = db.Tx(ctx, func(tx *Tx) error {
		rows, err := tx.LockJobs(ids)
		if err != nil {
			return err
		}
		var jobs []listing
		for _, id := range ids {
			if j := rows[id]; j != nil && !j.Deleted {
				jobs = append(jobs, listingOf(id, j.Spec.Name, &j.Spec)) // of an unreadable one it is the name
			}
		}
		if err := tx.unlist(ids); err != nil {
			return err
		}
		if err := tx.list(jobs); err != nil {
			return err
		}
		list, args := in(nil, ids)
		_, err = tx.exec("mark listed", "UPDATE job FORCE INDEX (PRIMARY) SET listed = 1 WHERE id IN "+list, args...)
		return err
	})
	return len(ids), err
}
