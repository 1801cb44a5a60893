package sql

import (
	"context"
	stdsql "database/sql"

	"go-crontab/job"
)

// VersionRow is a definition that a job has had, from a version on and until that of the next one.
type VersionRow struct {
	Version  int64
	At       job.Micros
	Who      string // "" where nobody has written it down
	SpecText string
	Spec     job.Spec
	SpecErr  error
}

// keepVersion writes down the definition that a job has from a version on.
func (tx *Tx) keepVersion(id, version int64, at job.Micros, spec string) error {
	_, err := tx.exec("keep version", "INSERT INTO job_version (job_id, version, at, who, spec) VALUES (?, ?, ?, ?, ?)",
		id, version, int64(at), cut(job.ActorOf(tx.ctx).Who, 128), spec)
	return err
}

// keepVersions writes down the definitions of several jobs.
func (tx *Tx) keepVersions(jobs []*job.Job, specs []string) error {
	who := cut(job.ActorOf(tx.ctx).Who, 128)
	args := make([]any, 0, 5*len(jobs))
	for i, j := range jobs {
		args = append(args, j.ID, j.Version, int64(j.Updated), who, specs[i])
	}
	_, err := tx.exec("keep versions", "INSERT INTO job_version (job_id, version, at, who, spec) VALUES "+values(len(jobs), 5), args...)
	return err
}

// keepFirst writes down the definition of a job that is about to get another one, if none of it was written down: it is
// older than that.
func (tx *Tx) keepFirst(id int64) error {
	_, err := tx.exec("keep version", "INSERT INTO job_version (job_id, version, at, who, spec)"+
		" SELECT id, version, updated, '', spec FROM job WHERE id = ? AND NOT EXISTS (SELECT 1 FROM job_version v WHERE v.job_id = job.id)", id)
	return err
}

func versionRows(out *[]VersionRow) func(*stdsql.Rows) error {
	return func(rows *stdsql.Rows) error {
		var v VersionRow
		err := rows.Scan(&v.Version, &v.At, &v.Who, &v.SpecText)
		v.Spec, v.SpecErr = job.DecodeSpec(v.SpecText)
		*out = append(*out, v)
		return err
	}
}

const versionColumns = "version, at, who, spec"

// Versions lists the definitions that a job has had, the latest first: those from versions up to one, or all. Of a job
// whose definitions nobody has written down yet there are none.
func (db *DB) Versions(ctx context.Context, id, upTo int64, limit int) ([]VersionRow, error) {
	cond, args := "", []any{id}
	if upTo != 0 {
		cond, args = " AND version <= ?", append(args, upTo)
	}
	var out []VersionRow
	err := db.query(ctx, "list versions", versionRows(&out), "SELECT "+versionColumns+" FROM job_version WHERE job_id = ?"+cond+
		" ORDER BY version DESC LIMIT ?", append(args, limit)...)
	return out, err
}
