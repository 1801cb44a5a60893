package doctor

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"strings"
	"time"

	"go-crontab/job"
	"go-crontab/session"
	"go-crontab/sql"
	"go-crontab/sql/read"
)

// Patient is the cluster to examine, and the machine of a node.
type Patient struct {
	DB      *read.DB
	Machine *Machine // nil: no machine is examined
}

// exam is an examination. Facts that several checks need are read before the checks. If only one
// check needs a fact, that check reads it.
type exam struct {
	ctx     context.Context
	db      read.Checks
	machine *Machine

	now      job.Micros
	began    time.Time // the time of this machine's clock at the instant now
	version  string
	maria    bool
	vars     map[string]string
	counters map[string]string
	tables   map[string]*sql.TableState
	migrated bool // the schema has the version of this program
	sessions []sql.SessionRow
	expiry   time.Duration
	most     int // job definitions that a check reads

	at       *check // the running check
	saw      string // what the running check saw; in the report it replaces about
	findings []Finding
}

// check is a row of the table checks.
type check struct {
	id    string
	area  Area
	about string
	run   func(*exam) error
}

// skip is an error with the reason why a check cannot look.
type skip string

func (s skip) Error() string { return string(s) }

// manyDefinitions is the most job definitions that a check reads. Reading so many takes some
// seconds.
const manyDefinitions = 200_000

// Examine runs all checks. It returns an error only if MySQL does not answer at all, or if ctx
// ends.
func Examine(ctx context.Context, p Patient) (*Report, error) {
	x := &exam{ctx: ctx, db: read.Checks{DB: p.DB}, machine: p.Machine, most: manyDefinitions}
	if err := x.read(); err != nil {
		return nil, err
	}

	r := &Report{At: x.now, Server: x.version}
	for i := range checks {
		c := &checks[i]
		x.at, x.saw = c, ""
		done := Checked{ID: c.id, Area: c.area, About: c.about, Severity: OK}
		from := len(x.findings)
		if err := x.attempt(c); err != nil {
			if ctx.Err() != nil {
				return nil, context.Cause(ctx)
			}
			done.Severity, done.Skipped = Unknown, x.excuse(err)
		}
		for _, f := range x.findings[from:] {
			if f.Severity.Worse(done.Severity) {
				done.Severity = f.Severity
			}
		}
		if x.saw != "" && done.Severity == OK {
			done.About = x.saw
		}
		r.Checks = append(r.Checks, done)
	}

	r.Findings = x.findings
	r.sort()
	return r, nil
}

// attempt runs a check. If an unexpected row makes the check panic, the other checks go on.
func (x *exam) attempt(c *check) (err error) {
	defer func() {
		if p := recover(); p != nil {
			err = fmt.Errorf("the check failed: %v", p)
		}
	}()

	switch {
	case c.area != MySQL && c.area != Host && c.id != "schema" && !x.migrated:
		return skip("the schema does not match this program")
	case c.area == Host && x.machine == nil:
		return skip("only a node can check its machine; run doctor over the API")
	}

	return c.run(x)
}

// excuse returns the reason why a check could not look.
func (x *exam) excuse(err error) string {
	if s := skip(""); errors.As(err, &s) {
		return string(s)
	}
	if sql.IsDenied(err) {
		return "the database user lacks a right: " + err.Error()
	}
	return err.Error()
}

// looked returns the error of a check that reads definitions. If the check could not read all
// definitions, the error is a skip.
func (x *exam) looked(all bool) error {
	if all {
		return nil
	}
	return skip(fmt.Sprintf("there are more than %d job definitions, and only the first %d were checked",
		x.most, x.most))
}

// read reads the facts that many checks need.
func (x *exam) read() (err error) {
	x.began = time.Now()
	if x.now, err = x.db.Now(x.ctx); err != nil {
		return err
	}

	x.began = x.began.Add(time.Since(x.began) / 2)
	if x.version, err = x.db.ServerVersion(x.ctx); err != nil {
		return err
	}

	x.maria = strings.Contains(strings.ToLower(x.version), "mariadb")
	if x.vars, err = variables(x.db.Reader(x.ctx)); err != nil {
		return err
	}
	if x.counters, err = counters(x.db.Reader(x.ctx)); err != nil {
		return err
	}
	if x.tables, err = x.db.Tables(x.ctx); err != nil {
		return err
	}

	have, want, err := x.db.SchemaVersions(x.ctx)
	if err != nil {
		return err
	}

	if x.migrated = have == want; !x.migrated {
		return nil
	}
	if x.expiry, err = x.db.SessionExpiry(x.ctx); err != nil {
		return err
	}

	if x.expiry == 0 {
		x.expiry = session.DefaultExpiry
	}

	x.sessions, err = x.db.Sessions(x.ctx)
	return err
}

// found adds a finding of the running check.
func (x *exam) found(s Severity, f Finding) {
	f.Check, f.Area, f.Severity = x.at.id, x.at.area, s
	x.findings = append(x.findings, f)
}

// on reports whether a server setting exists and is on.
func (x *exam) on(name string) bool {
	switch strings.ToUpper(x.vars[name]) {
	case "ON", "1", "YES", "TRUE":
		return true
	}
	return false
}

// number returns a numeric setting; ok is false if it does not exist.
func (x *exam) number(name string) (n int64, ok bool) {
	n, err := strconv.ParseInt(x.vars[name], 10, 64)
	return n, err == nil
}

// set returns the statement that changes a setting. If the server can keep the change after a
// restart, the statement does that.
func (x *exam) set(name, value string) string {
	if x.maria {
		return fmt.Sprintf("SET GLOBAL %s = %s", name, value)
	}
	return fmt.Sprintf("SET PERSIST %s = %s", name, value)
}

// keep describes how to change a setting so that it survives a restart.
func (x *exam) keep(name, value string) string {
	if x.maria {
		return fmt.Sprintf("Set it now with the statement, and write %s = %s below [mysqld] in the "+
			"server's configuration, so that it survives a restart.", name, value)
	}
	return "Set it with the statement; PERSIST keeps it after restarts. " +
		"On a managed service, change it in the parameter group."
}

// live returns the sessions that have not expired.
func (x *exam) live() (out []sql.SessionRow) {
	for _, s := range x.sessions {
		if x.now.Sub(s.BeatAt) < x.expiry {
			out = append(out, s)
		}
	}
	return out
}

// jobsOf returns the first ten jobs of a list.
func jobsOf(list []read.NamedJob) (out []Job) {
	for _, j := range list {
		if out = append(out, Job{j.ID, j.App, j.Name}); len(out) == 10 {
			break
		}
	}
	return out
}

// count describes the length of a list: "1 job", "3 jobs", "20 jobs or more". The list was read up
// to a limit.
func count(n, limit int, one, many string) string {
	switch {
	case n == 1:
		return "1 " + one
	case n >= limit:
		return fmt.Sprintf("%d %s or more", n, many)
	}
	return fmt.Sprintf("%d %s", n, many)
}
