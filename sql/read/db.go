package read

import "go-crontab/sql"

// DB answers people and metrics.
type DB struct{ *sql.DB }

// SQL returns the connections, for statements that are defined next to their users.
func (db *DB) SQL() *sql.DB { return db.DB }

// Watch has the reads of alerts and of the stream of events. Both follow runs, jobs and backfills.
type Watch struct{ *DB }

// Checks answers the doctor.
type Checks struct{ *DB }

// Retention has the reads that say which old records may be removed.
type Retention struct{ *DB }
