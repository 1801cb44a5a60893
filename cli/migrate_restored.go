package cli

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"strings"
	"time"

	"go-crontab/api/view"
	"go-crontab/sql"
	"go-crontab/sql/read"
)

// restored is the result of `migrate --after-restore`.
type restored struct {
	AsOf    *time.Time        `json:"as_of,omitempty"` // last sign of life in the backup
	Jobs    int64             `json:"jobs_due_since"`
	Once    []view.JobMention `json:"once,omitempty"`
	Running int64             `json:"runs_lost"`

	NotCounted string `json:"not_counted,omitempty"` // why the other counts are missing
}

// wasRestored refuses a schema without tables. Such a schema shows that the backup was restored
// elsewhere, or not yet.
func wasRestored(ctx context.Context, dsn string) error {
	if err := checkDSN(dsn); err != nil {
		return err
	}

	db, err := sql.Open(dsn, sql.DefaultTimeouts, 1)
	if err != nil {
		return err
	}
	defer db.Close()

	at, err := db.SchemaVersion(ctx)
	if err == nil && at == 0 {
		return &exitError{code: exitRefused,
			err:  errors.New("--after-restore: the schema is empty, so no backup was restored into it"),
			hint: "check that the DSN names the restored schema; for a new cluster, leave out --after-restore"}
	}
	return nil // migrate reports other problems with MySQL
}

// acceptRestore allows the nodes to use a restored database. No node may be running: a node that
// has not noticed the restore would continue as if nothing had happened. A node beats ten times per
// session expiry. So a node that misses two beats counts as stopped.
func acceptRestore(ctx context.Context, dsn string) (*restored, error) {
	db, err := sql.Open(dsn, sql.MigrateTimeouts, 2)
	if err != nil {
		return nil, err
	}
	defer db.Close()

	now, err := db.Now(ctx)
	if err != nil {
		return nil, err
	}

	expiry, err := db.SessionExpiry(ctx)
	if err != nil {
		return nil, err
	}

	sessions, err := db.Sessions(ctx)
	if err != nil {
		return nil, err
	}

	silence := max(5*time.Second, expiry/5)
	for _, s := range sessions {
		if age := now.Sub(s.BeatAt); age < silence {
			return nil, &exitError{code: exitRefused,
				err: fmt.Errorf("node %s is still alive: its last sign of life was %s ago", plain(s.Node),
					age.Round(100*time.Millisecond)),
				hint: fmt.Sprintf("stop all nodes, wait %s, and run the command again",
					silence)}
		}
	}

	// If we die before this call, nothing has changed. If we die after it, the cluster is paused
	// and reports the pause.
	if err := db.AcceptRestore(ctx); err != nil {
		return nil, err
	}

	counting, end := context.WithTimeoutCause(ctx, countingRestored,
		fmt.Errorf("counting took longer than %s", countingRestored))
	defer end()

	found, err := (&read.DB{DB: db}).Forgotten(counting)
	r := &restored{Jobs: found.Jobs, Once: mentions(found.Once), Running: found.Running}
	if err != nil { // counting may time out in a large cluster; the restore is accepted anyway
		if counting.Err() != nil {
			err = context.Cause(counting)
		}
		r.NotCounted = err.Error()
	}
	if found.Since != 0 {
		at := found.Since.Time().UTC()
		r.AsOf = &at
	}

	return r, nil
}

// countingRestored limits how long jobs that were due after the backup are counted.
const countingRestored = time.Minute

func mentions(list []read.NamedJob) (out []view.JobMention) {
	for _, j := range list {
		out = append(out, view.JobMention{ID: strconv.FormatInt(j.ID, 10), App: j.App, Name: j.Name})
	}
	return out
}

func (r *restored) tell(c *console) {
	since := "the backup"
	if r.AsOf != nil {
		since = absolute(r.AsOf, c.zone())
	}

	c.printf("nodes may use the database, which is as of %s; the cluster is paused\n", since)
	if r.NotCounted == "" {
		c.printf("  jobs with due times since then: %d; they may have run before, and end skipped or missed\n", r.Jobs)
		c.printf("  runs that were executing then: %d; they end lost\n", r.Running)
	} else {
		c.printf("  the due times since then could not be counted: %s; they end skipped or missed\n",
			plain(r.NotCounted))
		c.printf("  runs that were executing then end lost\n")
	}
	if len(r.Once) > 0 {
		var names []string
		for _, j := range r.Once {
			names = append(names, plain(j.App+"/"+j.Name))
		}
		c.printf("  jobs that run once, and whose time has passed: %s\n", strings.Join(names, ", "))
	}

	c.notef("Next: start the nodes, wait until the old runs have ended, and resume the cluster:\n"+
		"  %[1]s run ls --state running\n  %[1]s cluster resume\n"+
		"To run due times again:  %[1]s backfill start, or %[1]s job run\n", program())
}
