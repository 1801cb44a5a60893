package read

import "go-crontab/sql"

// DB answers people and metrics.
type DB struct{ *sql.DB }

// SQL returns the connections, for statements that stand beside their user.
func (db *DB) SQL() *sql.DB { return db.DB }

// Watch answers alerts and the stream of events, which follow runs, jobs and backfills.
type Watch struct{ *DB }

// Checks answers the doctor.
type Checks struct{ *DB }

// Retention tells the removal of old records what it may remove.
type Retention struct{ *DB }
