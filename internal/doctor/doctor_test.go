package doctor

import (
	"context"
	"fmt"
	"math"
	"net"
	"slices"
	"strings"
	"testing"
	"time"

	"go-crontab/internal/privatedb"
	"go-crontab/job"
	"go-crontab/sql"
	"go-crontab/sql/read"
	"go-crontab/test/testdb"

	"github.com/go-sql-driver/mysql"
	"github.com/google/uuid"
)

// startWith starts a server with its own flags, and creates a schema.
func startWith(t *testing.T, flags ...string) (dsn string) {
	t.Helper()
	return startServer(t, privatedb.Options{Extra: flags}).DSN("crontab")
}

// startServer starts a small server, and creates a schema.
func startServer(t *testing.T, o privatedb.Options) *privatedb.DB {
	t.Helper()
	o.Pool, o.Redo, o.Durable = 64, 16, true
	server, err := privatedb.Start(context.Background(), o)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := server.Stop(); err != nil {
			t.Error(err)
		}
	})
	if err := server.CreateSchema(t.Context(), "crontab"); err != nil {
		t.Fatal(err)
	}
	return server
}

// asUser returns the DSN of another user.
func asUser(t *testing.T, dsn, user, password string) string {
	t.Helper()
	c, err := mysql.ParseDSN(dsn)
	if err != nil {
		t.Fatal(err)
	}
	c.User, c.Passwd = user, password
	return c.FormatDSN()
}

// patient is a schema with two nodes that only beat.
type patient struct {
	*testing.T
	dsn     string
	db      *read.DB
	machine *Machine
	nodes   []uuid.UUID
	runs    int64 // id of the latest inserted run
}

// admit creates a patient on its own server, whose settings the test may change.
func admit(t *testing.T) *patient {
	t.Helper()
	t.Parallel()
	server := testdb.Server(t)
	if err := server.CreateSchema(t.Context(), "crontab"); err != nil {
		t.Fatal(err)
	}
	return prepare(t, server.DSN("crontab"))
}

// admitShared creates a patient on the server of all tests, whose settings have faults.
func admitShared(t *testing.T) *patient {
	t.Helper()
	t.Parallel()
	return prepare(t, testdb.DSN(t))
}

func prepare(t *testing.T, dsn string) *patient {
	t.Helper()
	p := &patient{T: t, dsn: dsn}
	migrator := p.open(dsn, sql.MigrateTimeouts)
	if _, _, err := migrator.Migrate(t.Context()); err != nil {
		t.Fatal(err)
	}

	p.db = p.open(dsn, sql.DefaultTimeouts)
	p.exec("INSERT INTO app (id, name) VALUES (1, 'default')")
	p.machine = &Machine{Node: "a", Slots: 64, StateDir: t.TempDir(), OpenFiles: 1 << 16, Processes: 1 << 16,
		Zones: true}
	p.exec("INSERT INTO setting (name, value) VALUES ('session_expiry_ms', '20000')")
	p.exec(`INSERT INTO alert_channel (id, name, spec, created, updated) VALUES (100, 'all', '{"type":"slack"}', 1, 1)`)
	p.exec(`INSERT INTO alert_rule (name, spec, created, updated)
		VALUES ('all', '{"on":["failed"],"channels":["all"]}', 1, 1)`)
	for i, name := range []string{"a", "b"} {
		id := uuid.New()
		p.exec("INSERT INTO life (id, session, node, started) VALUES (?, ?, ?, 1)", i+1, id[:], name)
		p.nodes = append(p.nodes, id)
		err := p.db.Tx(t.Context(), func(tx *sql.Tx) error {
			return tx.InsertSession(sql.SessionRow{ID: id, Node: name, Version: "v1", Slots: 64})
		})
		if err != nil {
			t.Fatal(err)
		}
	}

	return p
}

func (p *patient) open(dsn string, timeouts sql.Timeouts) *read.DB {
	p.Helper()
	db, err := sql.Open(dsn, timeouts, 4)
	if err != nil {
		p.Fatal(err)
	}
	p.Cleanup(func() { db.Close() })
	return &read.DB{DB: db}
}

func (p *patient) exec(query string, args ...any) {
	p.Helper()
	if _, err := p.db.Raw().Exec(query, args...); err != nil {
		p.Fatalf("%s: %v", query, err)
	}
}

// ago returns a past instant by MySQL's clock.
func (p *patient) ago(d time.Duration) int64 {
	p.Helper()
	now, err := p.db.Now(p.Context())
	if err != nil {
		p.Fatal(err)
	}
	return int64(now.Add(-d))
}

// addJob inserts a job. columns are set in addition to the required ones.
func (p *patient) addJob(name string, columns map[string]any) int64 {
	p.Helper()
	spec := job.Spec{Name: name, Schedule: "0 3 * * *", Command: "true"}
	spec.Defaults(time.Now())
	text, err := spec.Encode()
	if err != nil {
		p.Fatal(err)
	}

	names, args := []string{"app_id", "name", "hash"}, []any{1, name, job.HashOf("default", name)}
	for k, v := range columns {
		if k == "spec" {
			text = fmt.Sprint(v)
			continue
		}
		names, args = append(names, k), append(args, v)
	}

	r, err := p.db.Raw().Exec("INSERT INTO job ("+strings.Join(names, ", ")+") VALUES (?"+strings.Repeat(", ?",
		len(names)-1)+")", args...)
	if err != nil {
		p.Fatal(err)
	}

	id, _ := r.LastInsertId()
	p.exec("INSERT INTO job_version (job_id, version, definition, created) VALUES (?, 1, ?, 1)", id, text)
	return id
}

// addRun inserts a run of a job. columns are set in addition to the required ones.
func (p *patient) addRun(jobID, due int64, state job.State, owner int, columns map[string]any) int64 {
	p.Helper()
	p.runs++
	names := []string{"id", "job_id", "app_id", "due", "kind", "state", "owner", "claim", "due_now", "hash"}
	args := []any{p.runs, jobID, 1, due, "schedule", state, owner, 1, due, 1}
	for k, v := range columns {
		names, args = append(names, k), append(args, v)
	}
	p.exec("INSERT INTO run ("+strings.Join(names, ", ")+") VALUES (?"+strings.Repeat(", ?", len(names)-1)+")", args...)
	return p.runs
}

// addEnd inserts a final run that has ended.
func (p *patient) addEnd(jobID, due int64, outcome string) {
	p.Helper()
	p.addRun(jobID, due, job.Ended, -2, map[string]any{"outcome": outcome, "ended": 1, "final": 1})
}

// beat makes all nodes beat now, by MySQL's clock.
func (p *patient) beat() {
	p.exec("UPDATE session SET beat_at = CAST(UNIX_TIMESTAMP(NOW(6)) * 1000000 AS SIGNED) WHERE beat_at > 0")
}

func (p *patient) examine(db *read.DB) *Report {
	p.Helper()
	r, err := Examine(p.Context(), Patient{DB: db, Machine: p.machine})
	if err != nil {
		p.Fatal(err)
	}
	return r
}

// finds expects a finding of a check with a severity, whose text Seen contains words. The finding
// must be complete.
func (p *patient) finds(check string, severity Severity, seen string) *Finding {
	p.Helper()
	p.beat()
	return p.findsBy(p.db, check, severity, seen)
}

func (p *patient) findsBy(db *read.DB, check string, severity Severity, seen string) *Finding {
	p.Helper()
	r := p.examine(db)
	for i := range r.Findings {
		f := &r.Findings[i]
		if f.Check != check || f.Severity != severity || !strings.Contains(f.Seen, seen) {
			continue
		}
		if f.Why == "" || f.Fix == "" ||
			!slices.ContainsFunc(checks, func(c check_) bool { return c.id == f.Check && c.area == f.Area }) {
			p.Errorf("the finding is not complete: %+v", *f)
		}
		for _, c := range r.Checks {
			if c.ID == check && severity.Worse(c.Severity) {
				p.Errorf("the check is %s, its finding %s", c.Severity, severity)
			}
		}
		if severity.Worse(r.Worst) {
			p.Errorf("the worst is %s, and there is a finding that is %s", r.Worst, severity)
		}
		return f
	}

	p.Errorf("%s: want %s with %q among these findings:", check, severity, seen)
	p.tell(r)
	return &Finding{}
}

// check_ is an alias for check, as tests use that name for the id of a check.
type check_ = check

// healthy expects no findings and no skipped checks.
func (p *patient) healthy() {
	p.Helper()
	p.beat()
	r := p.examine(p.db)
	if r.Worst != OK || len(r.Findings) > 0 {
		p.Errorf("worst is %s, want nothing found:", r.Worst)
		p.tell(r)
	}
	for _, c := range r.Checks {
		if c.Skipped != "" {
			p.Errorf("%s could not look: %s", c.ID, c.Skipped)
		}
	}
	if len(r.Checks) != len(checks) {
		p.Errorf("%d checks are told, want %d", len(r.Checks), len(checks))
	}
}

func (p *patient) tell(r *Report) {
	p.Helper()
	for _, f := range r.Findings {
		p.Logf("%s %s: %s | %s | %s | %q %q", f.Severity, f.Check, f.Seen, f.Why, f.Fix, f.SQL, f.Commands)
	}
	for _, c := range r.Checks {
		if c.Skipped != "" {
			p.Logf("%s skipped: %s", c.ID, c.Skipped)
		}
	}
}

// TestServerFaults sets server settings that break the promise, and undoes each with the statement
// of the finding.
func TestServerFaults(t *testing.T) {
	p := admit(t)
	p.healthy()
	mariaDB := testdb.EngineOf(t).MariaDB
	for name, c := range map[string]struct {
		fault, check, seen string
		severity           Severity
		undo               string // for findings whose statement is not enough
	}{
		"commits are flushed once a second": {"SET GLOBAL innodb_flush_log_at_trx_commit = 2", "redo-durability",
			"innodb_flush_log_at_trx_commit is 2", Error, ""},
		"a small packet": {"SET GLOBAL max_allowed_packet = 1048576", "server-limits",
			"max_allowed_packet is 1048576", Error, ""},
		"read-only": {"SET GLOBAL read_only = ON", "read-only", "read_only is on", Error, ""},
		"transactions are cut": {"SET GLOBAL idle_transaction_timeout = 2", "server-limits",
			"idle_transaction_timeout is 2 s", Warning, ""},
		"deadlocks are not found": {"SET GLOBAL innodb_deadlock_detect = OFF", "server-limits",
			"innodb_deadlock_detect is off", Warning, ""},
		"few connections": {"SET GLOBAL max_connections = 20", "connections", "max_connections is 20",
			Warning, ""},
	} {
		if !mariaDB && strings.Contains(c.fault, "idle_transaction_timeout") {
			continue // MySQL has no such setting
		}

		p.exec(c.fault)
		p.T.Run(name, func(t *testing.T) {
			q := *p
			q.T = t
			f := q.finds(c.check, c.severity, c.seen)
			if len(f.SQL) == 0 {
				t.Fatal("there is no statement that mends it")
			}
			for _, statement := range f.SQL {
				q.exec(statement)
			}
		})

		p.healthy()
	}
}

// TestBinlogFaults tests a server with a binary log.
func TestBinlogFaults(t *testing.T) {
	t.Parallel()
	server := startWith(t, "--log-bin=binlog", "--sync-binlog=1", "--binlog-format=ROW", "--server-id=1")
	p := prepare(t, server)
	p.healthy()
	p.exec("SET GLOBAL sync_binlog = 0")
	f := p.finds("binlog-durability", Error, "sync_binlog is 0")
	p.exec(f.SQL[0])
	p.exec("SET GLOBAL binlog_format = 'STATEMENT'")
	f = p.finds("binlog-format", Error, "STATEMENT")
	p.exec(f.SQL[0])
	p.healthy()
	semi := "rpl_semi_sync_master"
	if !testdb.EngineOf(t).MariaDB {
		semi = "rpl_semi_sync_source"
		p.exec("INSTALL PLUGIN rpl_semi_sync_source SONAME 'semisync_source.so'")
	}

	p.exec("SET GLOBAL " + semi + "_timeout = 1") // there is no replica that could answer
	p.exec("SET GLOBAL " + semi + "_enabled = ON")
	p.exec("SET GLOBAL " + semi + "_wait_point = 'AFTER_COMMIT'")
	f = p.finds("replication", Notice, "AFTER_COMMIT")
	p.exec(f.SQL[0])
	p.finds("replication", Warning, semi+"_enabled is ON, but has no effect: ")
	p.exec("SET GLOBAL " + semi + "_enabled = OFF")
	p.healthy()
}

// of examines settings and counters that no server in the tests has.
func of(t *testing.T, version string, vars, counters map[string]string, run func(*exam) error) []Finding {
	t.Helper()
	x := &exam{ctx: t.Context(), version: version, maria: strings.Contains(version, "MariaDB"), vars: vars,
		counters: counters, at: &check{}}
	if err := run(x); err != nil {
		t.Error(err)
	}
	return x.findings
}

func TestSettingsOfOtherServers(t *testing.T) {
	t.Parallel()
	type settings = map[string]string
	for name, c := range map[string]struct {
		vars, counters settings
		run            func(*exam) error
		seen           string // "": no finding
		sql            string
	}{
		"nothing is read-only": {settings{"super_read_only": "OFF", "read_only": "0",
			"innodb_read_only": "OFF"}, nil, readOnly, "", ""},
		"both switches of MySQL": {settings{"super_read_only": "ON", "read_only": "ON",
			"innodb_read_only": "OFF"}, nil, readOnly, "super_read_only is on", "SET GLOBAL read_only = OFF"},
		"a word of MariaDB 12": {settings{"read_only": "NO_LOCK_NO_ADMIN"}, nil, readOnly,
			"read_only is no_lock_no_admin", "SET GLOBAL read_only = OFF"},
		"what only a restart changes": {settings{"read_only": "ON", "innodb_read_only": "ON"}, nil, readOnly,
			"innodb_read_only is on", ""},
		"doublewrite that only detects": {settings{"innodb_doublewrite": "DETECT_ONLY"}, nil, tornPages,
			"innodb_doublewrite is detect_only", ""},
		"doublewrite": {settings{"innodb_doublewrite": "DETECT_AND_RECOVER"}, nil, tornPages, "",
			""},
		"semi-sync in force": {settings{"rpl_semi_sync_source_enabled": "ON"},
			settings{"rpl_semi_sync_source_status": "ON", "rpl_semi_sync_source_clients": "1"}, replication, "", ""},
		"semi-sync that has fallen back": {settings{"rpl_semi_sync_source_enabled": "ON"},
			settings{"rpl_semi_sync_source_status": "OFF",
				"rpl_semi_sync_source_clients": "1"}, replication, "rpl_semi_sync_source_status is OFF, " +
				"rpl_semi_sync_source_clients is 1", ""},
		"semi-sync of nobody": {settings{"rpl_semi_sync_master_enabled": "ON"},
			settings{"rpl_semi_sync_master_status": "ON",
				"rpl_semi_sync_master_clients": "0"}, replication, "rpl_semi_sync_master_clients is 0", ""},
	} {
		found := of(t, "8.0.40", c.vars, c.counters, c.run)
		if (len(found) > 0) != (c.seen != "") {
			t.Errorf("%s: found %+v", name, found)
			continue
		}

		if c.seen != "" &&
			(len(found) != 1 || !strings.Contains(found[0].Seen, c.seen) || strings.Join(found[0].SQL, "; ") != c.sql) {
			t.Errorf("%s: found %+v, want %s, mended by %q", name, found, c.seen, c.sql)
		}
	}
}

// TestMakeSemiSync: the primary does not wait before its replicas answer, and plugins have the
// names of the server version.
func TestMakeSemiSync(t *testing.T) {
	t.Parallel()
	old := map[string]string{"rpl_semi_sync_master_enabled": "OFF"}
	recent := map[string]string{"rpl_semi_sync_source_enabled": "OFF"}

	for _, c := range []struct {
		version     string
		vars        map[string]string
		first, last string
	}{
		{"8.0.25", nil,
			"INSTALL PLUGIN rpl_semi_sync_master SONAME 'semisync_master.so' /* on the primary; does nothing yet */",
			"SET PERSIST rpl_semi_sync_master_enabled = ON /* on the primary, when"},
		{"8.0.25-log", old, "INSTALL PLUGIN rpl_semi_sync_slave SONAME 'semisync_slave.so' /* on each replica */",
			"SET PERSIST rpl_semi_sync_master_enabled = ON /* on the primary, when"},
		{"8.0.26", nil,
			"INSTALL PLUGIN rpl_semi_sync_source SONAME 'semisync_source.so' /* on the primary; does nothing yet */",
			"SET PERSIST rpl_semi_sync_source_enabled = ON /* on the primary, when"},
		{"9.1.0", recent, "INSTALL PLUGIN rpl_semi_sync_replica SONAME 'semisync_replica.so' /* on each replica */",
			"SET PERSIST rpl_semi_sync_source_enabled = ON /* on the primary, when"},
		{"8.4.2", old, "INSTALL PLUGIN rpl_semi_sync_replica SONAME 'semisync_replica.so' /* on each replica */",
			"SET PERSIST rpl_semi_sync_master_enabled = ON /* on the primary, when"},
		{"10.11.6-MariaDB", old, "SET GLOBAL rpl_semi_sync_slave_enabled = ON /* on each replica */",
			"SET GLOBAL rpl_semi_sync_master_enabled = ON /* on the primary, when"},
	} {
		x := &exam{version: c.version, maria: strings.Contains(c.version, "MariaDB"), vars: c.vars}
		_, statements := x.makeSemiSync()
		if statements[0] != c.first || !strings.HasPrefix(statements[len(statements)-1], c.last) {
			t.Errorf("%s: got %q", c.version, statements)
		}
	}
}

// TestReplicas: an asynchronous replica is found if the user has the right to see it.
func TestReplicas(t *testing.T) {
	t.Parallel()
	start := func(id string) *privatedb.DB {
		return startServer(t, privatedb.Options{TCP: true,
			Extra: []string{"--log-bin=binlog", "--sync-binlog=1", "--binlog-format=ROW", "--server-id=" + id}})
	}

	primary, replica := start("1"), start("2")
	p := prepare(t, primary.DSN("crontab"))
	p.healthy()
	host, port, err := net.SplitHostPort(primary.Addr())
	if err != nil {
		t.Fatal(err)
	}

	follow := []string{"CHANGE REPLICATION SOURCE TO SOURCE_HOST='" + host + "', SOURCE_PORT=" + port +
		", SOURCE_USER='root'", "START REPLICA"}
	maria := testdb.EngineOf(t).MariaDB
	if maria {
		follow = []string{"CHANGE MASTER TO MASTER_HOST='" + host + "', MASTER_PORT=" + port + ", MASTER_USER='root'",
			"START SLAVE"}
	}

	db := p.open(replica.DSN("crontab"), sql.DefaultTimeouts)
	for _, statement := range follow {
		if _, err := db.Raw().Exec(statement); err != nil {
			t.Fatalf("%s: %v", statement, err)
		}
	}

	replicas := func(by *read.DB) (found bool, skipped string) {
		r := p.examine(by)
		i := slices.IndexFunc(r.Checks, func(c Checked) bool { return c.ID == "replication" })
		return slices.ContainsFunc(r.Findings, func(f Finding) bool {
			return f.Check == "replication" &&
				strings.HasPrefix(f.Seen, "replicas (1) ")
		}), r.Checks[i].Skipped
	}

	for until := time.Now().Add(20 * time.Second); ; time.Sleep(100 * time.Millisecond) {
		if found, _ := replicas(p.db); found {
			break
		}
		if time.Now().After(until) {
			t.Fatal("the replica is not found")
		}
	}

	statements := p.finds("replication", Notice, "replicas (1) ").SQL
	p.exec("CREATE USER node@localhost IDENTIFIED BY 'x'")
	p.exec("GRANT SELECT, INSERT, UPDATE, DELETE ON crontab.* TO node@localhost")
	found, skipped := replicas(p.open(asUser(t, p.dsn, "node", "x"), sql.DefaultTimeouts))
	if found != maria || strings.Contains(skipped, "PROCESS") == maria {
		t.Errorf("without PROCESS: found %v, skipped %q", found, skipped)
	}

	// Run the statements of the finding in order. No commit waits for a timeout.
	for _, statement := range statements {
		on := p.db
		if strings.Contains(statement, "/* on each replica */") {
			on = db
		}
		for until := time.Now().Add(20 * time.Second); strings.Contains(statement,
			"when Rpl_semi_sync_"); time.Sleep(50 * time.Millisecond) {
			var name, status string
			if err := db.Raw().QueryRow(`SHOW GLOBAL STATUS
				WHERE Variable_name IN ('Rpl_semi_sync_slave_status', 'Rpl_semi_sync_replica_status')`).
				Scan(&name, &status); err != nil {
				t.Fatal(err)
			}
			if status == "ON" {
				break
			}
			if time.Now().After(until) {
				t.Fatal("the replica does not take part")
			}
		}
		if _, err := on.Raw().Exec(statement); err != nil {
			t.Fatalf("%s: %v", statement, err)
		}
		began := time.Now()
		p.exec("INSERT INTO setting (name, value) VALUES ('commits', 1) ON DUPLICATE KEY UPDATE value = value + 1")
		if took := time.Since(began); took > 2*time.Second {
			t.Errorf("after %s a commit takes %s", statement, took)
		}
	}

	p.exec("DELETE FROM setting WHERE name = 'commits'")
	if maria { // its default differs from MySQL's
		p.exec(p.finds("replication", Notice, "AFTER_COMMIT").SQL[0])
	}

	p.healthy()
}

func TestTornPages(t *testing.T) {
	t.Parallel()
	p := prepare(t, startWith(t, "--innodb-doublewrite=OFF"))
	p.finds("torn-pages", Warning, "innodb_doublewrite is off")
}

// TestGrants: each missing right is found.
func TestGrants(t *testing.T) {
	p := admit(t)
	p.exec("CREATE USER node@localhost IDENTIFIED BY 'x'")
	p.exec("GRANT SELECT, INSERT, UPDATE, DELETE ON crontab.* TO node@localhost")
	p.exec("CREATE USER node@'%' IDENTIFIED BY 'x'")
	p.exec("GRANT SELECT, INSERT, UPDATE, DELETE ON crontab.* TO node@'%'")
	login := func() *read.DB { return p.open(asUser(p.T, p.dsn, "node", "x"), sql.DefaultTimeouts) }
	p.beat()
	r := p.examine(login())
	for _, f := range r.Findings {
		p.Errorf("with the rights that a node needs: found %s: %s", f.Check, f.Seen)
	}

	i := slices.IndexFunc(r.Checks, func(c Checked) bool { return c.ID == "long-transactions" })
	if !strings.Contains(r.Checks[i].Skipped, "PROCESS") || r.Checks[i].Severity != Unknown {
		p.Errorf("without PROCESS: got %+v", r.Checks[i])
	}

	p.exec("REVOKE DELETE ON crontab.* FROM node@localhost")
	p.exec("REVOKE DELETE ON crontab.* FROM node@'%'")
	f := p.findsBy(login(), "grants", Error, "lacks DELETE on ")
	for _, statement := range f.SQL {
		p.exec(statement)
	}

	r = p.examine(login())
	if slices.ContainsFunc(r.Findings, func(f Finding) bool { return f.Check == "grants" }) {
		p.Errorf("%q did not mend it", f.SQL)
	}
}

// TestHiddenTable: a table on which the user has no rights is not reported as missing.
func TestHiddenTable(t *testing.T) {
	p := admit(t)
	for _, host := range []string{"localhost", "'%'"} {
		p.exec("CREATE USER node@" + host + " IDENTIFIED BY 'x'")
		tables, err := p.db.Tables(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		for name := range tables {
			rights := "SELECT, INSERT, UPDATE, DELETE"
			switch name {
			case "audit":
				continue
			case "output":
				rights = "DELETE" // a right for which MySQL shows no columns
			}
			p.exec("GRANT " + rights + " ON crontab." + name + " TO node@" + host)
		}
	}

	p.beat()
	r := p.examine(p.open(asUser(p.T, p.dsn, "node", "x"), sql.DefaultTimeouts))
	if len(r.Findings) != 1 || r.Findings[0].Check != "grants" || !strings.HasSuffix(r.Findings[0].Seen,
		" lacks SELECT on audit, output; INSERT on audit, output; UPDATE on output") {
		p.Error("want that rights on two tables are lacking, and nothing else:")
		p.tell(r)
	}

	p.exec("DROP TABLE audit")
	p.finds("schema", Error, "table audit is missing")
}

func TestLongTransactions(t *testing.T) {
	p := admit(t)
	tx, err := p.db.Raw().Begin()
	if err != nil {
		t.Fatal(err)
	}
	defer tx.Rollback()
	if _, err := tx.Exec("UPDATE locks SET n = n + 1 WHERE id = 0"); err != nil {
		t.Fatal(err)
	}

	list, _, err := readTransactions(p.Context(), p.db.DB, 0)
	for len(list) == 0 && err == nil && p.Context().Err() == nil { // a transaction is long after one second
		list, _, err = readTransactions(p.Context(), p.db.DB, 0)
	}
	if err != nil || len(list) != 1 || list[0].Locked != 1 {
		t.Fatalf("got %+v, %v; want the one that holds a row", list, err)
	}

	p.exec(fmt.Sprintf("KILL %d", list[0].Thread))
	if _, err := tx.Exec("DO 1"); err == nil {
		t.Error("the transaction lives on")
	}
}

func TestSchemaFaults(t *testing.T) {
	p := admit(t)
	p.exec("DELETE FROM locks")
	p.finds("lock-rows", Error, "session")
	migrator := p.open(p.dsn, sql.MigrateTimeouts)
	if _, _, err := migrator.Migrate(p.Context()); err != nil { // the fix of the finding
		t.Fatal(err)
	}
	p.healthy()

	p.exec("ALTER TABLE run DROP KEY by_app")
	p.finds("schema", Error, "index by_app of run is missing")
	p.exec("ALTER TABLE run ADD KEY by_app (app_id, due)")
	p.exec(`UPDATE schema_version
		SET version_id = version_id + 100
		WHERE version_id = (SELECT v
		FROM (SELECT MAX(version_id) v
		FROM schema_version) x)`)
	p.finds("schema", Notice, "and can still use it")
	p.exec("UPDATE setting SET value = '999' WHERE name = 'compatible_since'")
	p.finds("schema", Error, "this program knows versions up to")
	r := p.examine(p.db)
	for _, c := range r.Checks {
		if c.Area == Cluster && c.Skipped == "" {
			p.Errorf("%s looked at a schema that it does not know", c.ID)
		}
	}
}

func TestEmptySchema(t *testing.T) {
	t.Parallel()
	p := &patient{T: t, dsn: testdb.DSN(t)}
	p.db = p.open(p.dsn, sql.DefaultTimeouts)
	f := p.findsBy(p.db, "schema", Error, "no tables of go-crontab")
	if !slices.Equal(f.Commands, []string{"go-crontab migrate"}) {
		t.Errorf("got commands %q", f.Commands)
	}
}

func TestClusterFaults(t *testing.T) {
	p := admitShared(t)
	a := p.nodes[0]
	p.exec("UPDATE session SET clock_offset = 3000000 WHERE id = ?", a[:])
	p.finds("clocks", Notice, "the clock of a differs from MySQL's by 3s")
	p.exec("UPDATE session SET clock_offset = -90000000 WHERE id = ?", a[:])
	p.finds("clocks", Warning, "the clock of a differs from MySQL's by 1m30s")
	p.exec("UPDATE session SET clock_offset = 0, version = 'v2' WHERE id = ?", a[:])
	p.finds("versions", Notice, "v1, v2")
	p.exec("UPDATE session SET version = 'v1'")
	agree := func() {
		t.Helper()
		for _, f := range p.examine(p.db).Findings {
			if f.Check == "zone-rules" {
				t.Errorf("found: %s", f.Seen)
			}
		}
	}
	p.exec("UPDATE session SET zones = '1', zones_from = '2025b' WHERE id = ?", a[:])
	agree() // the data of the other node is unknown
	p.exec("UPDATE session SET zones = '2', zones_from = '2025c' WHERE id <> ?", a[:])
	p.finds("zone-rules", Warning, "different time zone data: a (2025b) and b (2025c)")
	p.exec("UPDATE session SET zones = '1', zones_from = 'another file'")
	agree()
	p.exec("UPDATE session SET node = 'a', address = 'http://other:8610', pid = 4711 WHERE id <> ?", a[:])
	f := p.finds("duplicate-names", Warning, "2 live nodes are named a: ")
	if !strings.Contains(f.Seen, "http://other:8610, pid 4711") || !strings.Contains(f.Seen, "no address, pid 0") ||
		!slices.Equal(f.Nodes, []string{"a"}) {
		t.Errorf("got %q of %q, want where both nodes are", f.Seen, f.Nodes)
	}
	// the node was killed and restarted
	p.exec("UPDATE session SET beat_at = ? WHERE id <> ?", p.ago(6*time.Second), a[:])
	for _, f := range p.examine(p.db).Findings {
		if f.Check == "duplicate-names" {
			t.Errorf("found beside a session that missed three beats: %s", f.Seen)
		}
	}
	p.exec("UPDATE session SET node = 'b' WHERE id <> ?", a[:])
	p.exec("INSERT INTO node (name, cordoned, since) VALUES ('a', 1, ?)", p.ago(49*time.Hour))
	p.finds("cordons", Notice, "a has been cordoned for 2 days")
	p.exec("INSERT INTO node (name, cordoned, since) VALUES ('b', 1, ?)", p.ago(time.Hour))
	p.finds("cordons", Warning, "all nodes are cordoned")
	p.exec("DELETE FROM node")
	p.exec("INSERT INTO stop (kind, who, since) VALUES ('cluster', 'alice', ?)", p.ago(72*time.Hour))
	p.finds("pauses", Notice, "the cluster has been paused by alice for 3 days")
	p.exec("INSERT INTO stop (kind, name, who, since) VALUES ('app', 'a b', 'bob', ?)", p.ago(72*time.Hour))
	if f := p.finds("pauses", Notice, "app a b has been paused"); !slices.Equal(f.Commands,
		[]string{"go-crontab app resume 'a b'"}) {
		t.Errorf("got commands %q", f.Commands)
	}
	p.exec("DELETE FROM stop")

	p.exec("UPDATE session SET beat_at = ? WHERE id = ?", p.ago(10*time.Second), a[:])
	p.findsBy(p.db, "nodes", Warning, "a has sent no heartbeat for 10")
	p.exec("DELETE FROM session WHERE id = ?", a[:])
	p.finds("nodes", Notice, "b is the only node")
	p.exec("DELETE FROM session")
	p.findsBy(p.db, "nodes", Error, "no node has sent a heartbeat for 20s")
}

func TestStuckTasks(t *testing.T) {
	p := admitShared(t)
	id := p.addJob("stuck", nil)
	const nobody, a, gone = 0, 1, 9
	plant := func(state job.State, owner int, started int64) {
		p.exec("DELETE FROM run")
		due := p.ago(2 * time.Minute)
		if started != 0 {
			due = min(due, started)
		}
		p.addRun(id, due, state, owner, map[string]any{"started": started})
	}

	plant(job.Executing, gone, p.ago(2*time.Minute))
	p.finds("stuck-tasks", Notice, "1 run belongs to a session that has ended")
	plant(job.Prepared, a, 0)
	p.finds("stuck-tasks", Warning, "is claimed, but has not started")
	plant(job.Idle, nobody, 0)
	if f := p.finds("stuck-tasks", Warning, "no node has claimed it"); len(f.Jobs) != 1 ||
		f.Jobs[0] != (Job{id, "default", "stuck"}) {
		t.Errorf("got jobs %v", f.Jobs)
	}

	p.exec("UPDATE session SET executing = 64")
	if f := p.finds("stuck-tasks", Warning, "no node has claimed it"); !strings.Contains(f.Fix,
		"128 runs execute on 128 slots") {
		t.Errorf("got fix %q", f.Fix)
	}

	p.exec("DELETE FROM run")
	ended := p.addRun(id, 1, job.Ended, -2, map[string]any{"ended": p.ago(2 * time.Minute)})
	p.addRun(id, 2, job.Waiting, -1, nil)
	p.exec("UPDATE job SET running = ?", ended)
	p.finds("stuck-tasks", Warning, "1 run waits for another run of its job, but none executes")
	p.exec("UPDATE run SET state = 'executing', owner = 1, started = due_now WHERE id = ?", ended)
	if r := p.examine(p.db); slices.ContainsFunc(r.Findings, func(f Finding) bool { return f.Check == "stuck-tasks" }) {
		t.Error("a run that waits for one that executes is found")
	}

	plant(job.Executing, a, p.ago(25*time.Hour))
	p.finds("long-runs", Notice, "1 run has executed for over 24 hours; default/stuck since ")
	plant(job.Executing, gone, p.ago(2*time.Minute))
	p.exec("DELETE FROM session")
	p.findsBy(p.db, "stuck-tasks", Error, "1 run belongs to a session that has ended")
}

func TestJobFaults(t *testing.T) {
	p := admitShared(t)
	ahead := func(d time.Duration) int64 { return p.ago(-d) }
	p.addJob("broken", map[string]any{"error": "the year 2300 is not between"})
	p.finds("broken-jobs", Warning, "1 job is in error; default/broken: the year 2300")
	p.addJob("unplaced",
		map[string]any{"spec": `{"name":"unplaced","command":"true","selector":"gpu"}`, "next_due": ahead(time.Hour)})
	p.addJob("handled", map[string]any{"spec": `{"name":"handled","handler":"mail"}`, "next_due": ahead(time.Hour)})
	p.finds("unplaced-jobs", Warning, "2 jobs have no matching node; default/unplaced requires gpu")
	p.exec(`UPDATE session SET labels = '{"gpu":""}', handlers = '["mail"]'`)
	r := p.examine(p.db)
	if slices.ContainsFunc(r.Findings, func(f Finding) bool { return f.Check == "unplaced-jobs" }) {
		t.Error("there is a node for it, and it is found all the same")
	}

	p.addJob("far", map[string]any{"next_due": ahead(800 * 24 * time.Hour)})
	p.finds("far-jobs", Notice, "1 job is next due in over a year; default/far on ")
	paused := p.addJob("paused", map[string]any{"paused": 1})
	p.exec("INSERT INTO job_pause (job_id, since, who) VALUES (?, ?, 'ann')", paused, p.ago(40*24*time.Hour))
	p.finds("paused-jobs", Notice, "default/paused for 40 days")
	at := ahead(3*time.Hour) / 1_000_000 * 1_000_000
	for i := range 150 {
		p.addJob(fmt.Sprintf("herd %d", i), map[string]any{"next_due": at})
	}

	if f := p.finds("herds", Notice, "150 jobs are due at "); len(f.Jobs) != 10 {
		t.Errorf("%d jobs are named, want 10", len(f.Jobs))
	}

	p.exec("UPDATE session SET slots = 8")
	p.finds("herds", Notice, "all nodes together have 16 slots")
	never, fails, mixed := p.addJob("never", nil), p.addJob("fails", nil), p.addJob("mixed", nil)
	for i := range 12 {
		for id, outcome := range map[int64]string{never: "skipped", fails: "failed",
			mixed: []string{"succeeded", "failed"}[i%2]} {
			p.addEnd(id, int64(i)+1, outcome)
		}
	}

	f := p.finds("unrun-jobs", Warning,
		"1 job never runs; the last 12 due times of default/never were skipped or missed")
	if len(f.Jobs) != 1 || f.Jobs[0].ID != never {
		t.Errorf("got jobs %v", f.Jobs)
	}

	// One run executes just now, and one has executed for long, so that later due times were
	// skipped.
	runs, ran := p.addJob("runs", nil), p.addJob("ran", nil)
	p.addRun(runs, 50, job.Executing, 1, map[string]any{"started": p.ago(time.Minute)})
	p.addRun(ran, 50, job.Ended, -2, map[string]any{"outcome": "failed", "started": 1, "ended": 1})
	for i := range 12 {
		for _, id := range []int64{runs, ran} {
			p.addEnd(id, int64(i)+51, "skipped")
		}
	}

	p.finds("unrun-jobs", Warning, "1 job never runs; the last 12 due times of default/never were skipped or missed")
	if f := p.finds("unrun-jobs", Notice,
		"1 job always fails; the last 12 runs of default/fails did not succeed"); len(f.Jobs) != 1 {
		t.Errorf("got jobs %v", f.Jobs)
	}

	spec := job.Spec{Name: "zone", Schedule: "0 3 * * *", Timezone: "Europe/Nowhere", Command: "true"}
	text, err := spec.Encode()
	if err != nil {
		t.Fatal(err)
	}

	p.addJob("zone", map[string]any{"spec": text})
	p.finds("time-zones", Error, "the time zone Europe/Nowhere (jobs: 1) cannot be loaded")
	x := &exam{ctx: t.Context(), db: read.Checks{DB: p.db}, machine: &Machine{Unlimited: fmt.Errorf("no")}, most: 3, at: &check{}}
	for _, check := range []func(*exam) error{zones, cgroups} {
		if err := check(x); len(x.findings) != 0 || err == nil ||
			x.excuse(err) != "there are more than 3 job definitions, and only the first 3 were checked" {
			t.Errorf("found %+v, %v; want it said that not all were looked at", x.findings, err)
		}
	}
}

// TestUnrunJobsBehindOthers: jobs that never run, or always fail, are found however many runs of
// other jobs came later, and however old their last runs are.
func TestUnrunJobsBehindOthers(t *testing.T) {
	p := admitShared(t)
	never, stopped := p.addJob("nightly", nil), p.addJob("stopped", nil)
	fails, retried := p.addJob("fails", nil), p.addJob("retried", nil)
	good, busy := p.addJob("good", nil), p.addJob("busy", nil)
	at := func(day int) int64 { return p.ago(time.Duration(100-day) * 24 * time.Hour) }
	add := func(id int64, day, attempt, final int, outcome job.Outcome, code job.ReasonCode, started int64) {
		p.addRun(id, at(day), job.Ended, -2, map[string]any{
			"attempt": attempt, "final": final, "outcome": outcome.String(), "reason_code": code,
			"started": started, "ended": 1,
		})
	}

	paused, mended, rarely := p.addJob("paused", nil), p.addJob("mended", nil), p.addJob("rarely", nil)
	for day := range 60 {
		add(never, day, 1, 1, 7, job.ReasonNoNode, 0)
		add(fails, day, 1, 1, 2, "", 1)
		for attempt := 1; attempt <= 3; attempt++ {
			add(retried, day, attempt, attempt/3, 3, "", 1)
		}
		add(good, day, 1, 1, 1, "", 1)
		add(paused, day, 1, 1, 6, job.ReasonAppPaused, 0)
		switch { // ran half of the time
		case day < 30:
			add(stopped, day, 1, 1, 1, "", 1)
		default:
			add(stopped, day, 1, 1, 6, job.ReasonPreviousRunExecuting, 0)
		}
		if day < 59 {
			add(mended, day, 1, 1, 2, "", 1)
		} else {
			add(mended, day, 1, 1, 1, "", 1)
		}
		if day >= 57 { // too few runs to judge
			add(rarely, day, 1, 1, 7, "", 0)
		}
	}

	p.exec(`INSERT INTO run (id, job_id, app_id, due, kind, state, owner, claim, due_now, hash,
			outcome, started, ended, final)
		SELECT 1000000 + a.id * 1000 + b.id, ?, 1, ? + a.id * 1000 + b.id, 'schedule', 'ended', -2, 1, 1, 1,
			'succeeded', 1, 1, 1
		FROM locks a, locks b
		WHERE a.id BETWEEN 1 AND 100 AND b.id BETWEEN 1 AND 55`, busy, at(70))
	if f := p.finds("unrun-jobs", Warning,
		"2 jobs never run; the last 50 due times of default/nightly were skipped or missed"); len(f.Jobs) != 2 ||
		f.Jobs[0].ID != never || f.Jobs[1].ID != stopped {
		t.Errorf("got jobs %v", f.Jobs)
	}

	if f := p.finds("unrun-jobs", Notice,
		"2 jobs always fail; the last 50 runs of default/fails did not succeed"); len(f.Jobs) != 2 ||
		f.Jobs[0].ID != fails || f.Jobs[1].ID != retried {
		t.Errorf("got jobs %v", f.Jobs)
	}

	x := &exam{ctx: t.Context(), db: read.Checks{DB: p.db}, most: 3, at: &check{}}
	if err := unbegun(x); len(x.findings) != 2 || err == nil ||
		x.excuse(err) != "there are more than 3 job definitions, and only the first 3 were checked" {
		t.Errorf("found %+v, %v; want it said that not all were looked at", x.findings, err)
	}
}

func TestMachineFaults(t *testing.T) {
	p := admitShared(t)
	p.machine.OpenFiles = 256
	p.finds("ulimits", Warning, "a may open 256 files and has 64 slots")
	p.machine.OpenFiles, p.machine.Processes = 0, 100
	p.finds("ulimits", Warning, "may run 100 processes")
	p.machine.Unguarded = true
	p.finds("guard", Warning, "a has no guard")
	p.machine.Unlimited = fmt.Errorf("nobody has delegated a cgroup")
	if r := p.examine(p.db); slices.ContainsFunc(r.Findings, func(f Finding) bool { return f.Check == "cgroup" }) {
		t.Error("no job has limits, and their lack is found")
	}

	spec := job.Spec{Name: "big", Schedule: "0 3 * * *", Command: "true"}
	spec.Limits.Memory = 1 << 30
	text, err := spec.Encode()
	if err != nil {
		t.Fatal(err)
	}

	p.addJob("big", map[string]any{"spec": text})
	p.finds("cgroup", Warning,
		"1 job has a limit of memory, cpu or pids that a cannot enforce: nobody has delegated a cgroup")
	p.machine.StateDir = p.machine.StateDir + "/there is none"
	p.finds("state-folder", Warning, "cannot write to its state folder")
	p.machine.StateDir = ""
	p.finds("state-folder", Warning, "a has no state folder")
	p.machine.Zones = false
	p.finds("zone-data", Notice, "no time zone data of its own")
	m := &Machine{}
	m.Look()
	if m.OpenFiles == 0 {
		t.Errorf("got %+v of this machine", *m)
	}
}

// TestHugeAuditRows: rows with huge numbers, which any user of the nodes' DSN can insert, are
// found, with a fix.
func TestHugeAuditRows(t *testing.T) {
	p := admitShared(t)
	p.exec("INSERT INTO audit_chain (seq, line, at, hash) VALUES (?, 77, 1, REPEAT('x', 32))", int64(math.MaxInt64))
	p.finds("audit-chain", Error,
		"no node wrote this link, for audit line 77: the chain ends at link 0 and continues there. "+
			"A user who may delete from audit_chain can remove it: DELETE FROM audit_chain WHERE seq = 9223372036854775807")
	p.exec("DELETE FROM audit_chain WHERE seq = 9223372036854775807")

	p.exec("INSERT INTO audit (id, at, who, action, kind) VALUES (?, ?, 'x', 'update', 'job')", int64(math.MaxInt64),
		p.ago(time.Second))
	_, err := p.db.Raw().Exec("INSERT INTO audit (at, who, action, kind) VALUES (1, 'x', 'update', 'job')")
	if err == nil {
		t.Error("the server has an id left: this test plants too little")
	}
	f := p.finds("audit-chain", Error, "the newest audit line has the id 9223372036854775807")
	_, fix, _ := strings.Cut(f.Fix, ": ")
	for range 2 {
		var statement string
		statement, fix, _ = strings.Cut(fix, "; ")
		p.exec(statement)
	}
	p.exec("INSERT INTO audit (at, who, action, kind) VALUES (1, 'x', 'update', 'job')")
	p.exec("DELETE FROM audit WHERE at = 1")
}

func TestHistoryFaults(t *testing.T) {
	p := admitShared(t)
	p.exec("UPDATE chore SET session_id = ?, failures = 3, error = 'exit status 3: no room', error_at = ?",
		p.nodes[0][:], p.ago(time.Minute))
	if f := p.finds("retention", Warning, "failed 3 times in a row"); !slices.Equal(f.Nodes, []string{"a"}) {
		t.Errorf("got nodes %v", f.Nodes)
	}
	p.exec("UPDATE chore SET failures = 0, until = 0, ended = ?", p.ago(25*time.Hour))
	p.exec("UPDATE session SET started = ?", p.ago(2*time.Hour))
	p.exec(`UPDATE retention SET spec = '{"age":"100h","archive":true}'`)
	if f := p.finds("retention", Warning, "no node has looked for expired records"); !strings.Contains(f.Fix,
		"needs the archive command") {
		t.Errorf("got fix %q", f.Fix)
	}
	p.exec(`UPDATE retention SET spec = '{"age":"100h"}'`)
	if f := p.finds("retention", Warning, "no node has looked for expired records"); !strings.Contains(f.Fix,
		"cannot remove old records") {
		t.Errorf("got fix %q", f.Fix)
	}
	p.exec("UPDATE retention SET spec = 'x'")
	if f := p.finds("retention", Warning, "the rule of the cluster cannot be read"); len(f.Commands) != 2 ||
		f.Commands[1] != "go-crontab retention set --age 90d --failures 365d" ||
		!strings.Contains(f.Fix, "--archive") {
		t.Errorf("got %q, %q", f.Fix, f.Commands)
	}
	p.exec("UPDATE retention SET spec = '{}'")
	p.exec("INSERT INTO retention (app, spec) VALUES ('my shop', 'x')")
	if f := p.finds("retention", Warning, `the rule of app "my shop" cannot be read`); !slices.Equal(f.Commands,
		[]string{"go-crontab audit --kind retention --app 'my shop'",
			"go-crontab retention set --app 'my shop' --age 90d --failures 365d"}) {
		t.Errorf("got commands %q, and the cluster's rule is a good one", f.Commands)
	}
	p.exec("DELETE FROM retention WHERE app <> ''")
	if err := p.db.AcceptRestore(t.Context()); err != nil {
		t.Fatal(err)
	}
	p.finds("restored", Warning, "its database was restored")

	x := &exam{ctx: t.Context(), db: read.Checks{DB: p.db},
		tables: map[string]*sql.TableState{"run": {Rows: 12_000_000, Bytes: 3 << 30}}, at: &check{id: "history-size"}}
	if err := historySize(x); err != nil || len(x.findings) != 1 || x.findings[0].Severity != Warning ||
		!strings.Contains(x.findings[0].Seen, "12.0 million records and takes 3.0 GiB") {
		t.Errorf("got %+v, %v", x.findings, err)
	}
	// The suggested rule keeps less, and preserves everything else of the present rule.
	for spec, want := range map[string]struct {
		severity Severity
		command  string
	}{
		`{}`:                                  {Warning, "--age 90d --failures 365d"},
		`{"failures":"9000h","archive":true}`: {Warning, "--age 90d --failures 375d --archive"},
		`{"age":"2160h","failures":"8760h"}`:  {Notice, "--age 45d --failures 365d"},
		`{"age":"721h","runs":500,"bytes":"1GiB","failures":"8h","archive":true}`: {Notice,
			"--age 15d --runs 500 --bytes 1GiB --failures 8h --archive"},
		`{"age":"1m"}`:                    {Notice, "--age 1m"},
		`{"runs":1000,"bytes":"3GiB"}`:    {Notice, "--runs 500 --bytes 3GiB"},
		`{"bytes":"3GiB","archive":true}`: {Notice, "--bytes 1536MiB --archive"},
	} {
		p.exec("UPDATE retention SET spec = ?", spec)
		x.findings = nil
		if err := historySize(x); err != nil || len(x.findings) != 1 || x.findings[0].Severity != want.severity ||
			!slices.Equal(x.findings[0].Commands, []string{"go-crontab retention set " + want.command}) {
			t.Errorf("%s: got %+v, %v; want %s to be copied", spec, x.findings, err, want.command)
		}
	}
}

// TestChannelFaults: a channel that accepts no message is found until it accepts one, whatever
// other channels get.
func TestChannelFaults(t *testing.T) {
	p := admitShared(t)
	for id, c := range map[int]string{1: `{"name":"my chat","type":"slack"}`, 2: `{"name":"good","type":"slack"}`,
		3: `{"name":"off","type":"slack","disabled":true}`, 4: `{`} {
		name := []string{"", "my chat", "good", "off", "unreadable"}[id]
		p.exec("INSERT INTO alert_channel (id, name, spec, created, updated) VALUES (?, ?, ?, 1, 1)", id, name, c)
	}

	message := func(channel, state, tries int, said string) {
		p.exec(`INSERT INTO delivery (idem, kind, channel_id, state, attempts, next_at, items, said, rule_id, created,
				updated)
			VALUES (?, 'alert', ?, ?, ?, 1, '[]', ?, RAND() * 100, ?, 2)`,
			uuid.NewString()[:16], channel, state, tries, said, p.ago(48*time.Hour))
	}

	none := func(what string) {
		t.Helper()
		for _, f := range p.examine(p.db).Findings {
			if f.Check == "channels" {
				t.Errorf("%s: found %q", what, f.Seen)
			}
		}
	}

	message(1, 3, 1, "401")
	for range 3 {
		message(1, 2, 1, "200 OK")
		message(3, 3, 1, "it is disabled")
		message(2, 3, 1, "500")
		message(2, 3, 1, "500")
		message(2, 2, 1, "200 OK")
	}
	message(1, 0, 0, "")
	message(1, 0, 2, "it is tried again")
	message(1, 1, 1, "it is tried now")
	message(1, 5, 0, "suppressed")

	none("two tries failed after a message that was sent")
	message(1, 0, 1, "502 bad gateway")
	if f := p.finds("channels", Warning, "the channel my chat is failing: 3 tries failed since "); !strings.HasSuffix(
		f.Seen, ": 502 bad gateway") || !slices.Equal(f.Commands, []string{"go-crontab alert test 'my chat'"}) {
		t.Errorf("got %q, %q", f.Seen, f.Commands)
	}

	p.exec("UPDATE alert_channel SET updated = 2 WHERE id = 1")
	none("the channel was changed")
	p.exec("UPDATE alert_channel SET updated = 1 WHERE id = 1")
	p.exec("DELETE FROM delivery WHERE channel_id = 1 AND state = 0")
	none("nothing failed")
	message(1, 3, 1, "410 gone")
	p.finds("channels", Warning, "the channel my chat is failing: 1 try failed since ")

	message(1, 2, 1, "200 OK") // like a successful test of the channel
	none("it was mended")
}

// TestTroublesOfTheCluster: what lasts until a person acts is found.
func TestTroublesOfTheCluster(t *testing.T) {
	p := admitShared(t)
	p.exec("INSERT INTO folder (id, name, past) VALUES (1, '/jobs', '')")
	p.exec("INSERT INTO folder_node (folder_id, node, state, error, since) VALUES (1, 'a', 'refused', 'x.yaml:3: no', 1)")
	if f := p.finds("folders", Error, "the node a cannot apply the folder /jobs: x.yaml:3: no"); !slices.Equal(f.Nodes,
		[]string{"a"}) {
		t.Errorf("got nodes %q", f.Nodes)
	}

	p.exec(`INSERT INTO api_token (name, hash, role, created, created_by, expires)
		VALUES ('ci', REPEAT('x', 32), 'viewer', 1, 'ann', ?)`, p.ago(-24*time.Hour))
	p.finds("expiring", Warning, "the token ci expires at ")
	p.exec("INSERT INTO node_note (node, what, expires, since) VALUES ('b', 'certificate', ?, 1)", p.ago(time.Hour))
	p.finds("expiring", Warning, "the TLS certificate of the node b expired at ")
	p.exec("INSERT INTO node_note (node, what, error, since) VALUES ('b', 'oidc', 'no route to host', 1)")
	p.finds("oidc", Warning, "the node b has not reached the OIDC issuer since ")

	p.exec("INSERT INTO setting (name, value) VALUES ('backup', ?)", fmt.Sprint(p.ago(27*time.Hour), int64(26*time.Hour)))
	p.finds("backup", Warning, "the last backup was made at ")

	for _, off := range []string{"UPDATE alert_channel SET spec = '{\"disabled\":true}'", "DELETE FROM alert_rule"} {
		p.exec(off)
		p.finds("alerting", Notice, "no alert rule is enabled that sends to an enabled channel")
	}
}

// TestBadRowsHarmNoCheck: rows that our programs never write do not break a check.
func TestBadRowsHarmNoCheck(t *testing.T) {
	p := admitShared(t)
	p.addJob("no JSON", map[string]any{"spec": "{", "next_due": int64(1) << 62})
	p.addJob("JSON of another kind", map[string]any{"spec": `{"timezone": {"limits": 7}, "limits": [1]}`})
	p.addJob("no selector", map[string]any{"spec": `{"selector": "((", "handler": 7}`, "next_due": int64(1) << 61})
	p.exec("UPDATE session SET labels = 'no JSON', handlers = '7', clock_offset = -9223372036854775808")
	p.addRun(99, 1, job.Executing, 77, map[string]any{"session": 78})
	p.addRun(99, 2, job.Waiting, -1, nil)
	p.exec("UPDATE job SET running = -9223372036854775808")
	p.machine.Unlimited = fmt.Errorf("no")
	for _, c := range p.examine(p.db).Checks {
		if c.Skipped != "" {
			p.Errorf("%s could not look: %s", c.ID, c.Skipped)
		}
	}
}

// TestAwayDatabase: without a database, Examine returns an error and no report.
func TestAwayDatabase(t *testing.T) {
	p := admitShared(t)
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if r, err := Examine(ctx, Patient{DB: p.db}); err == nil {
		t.Errorf("got %+v, want an error", r)
	}
	p.db.Close()
	if r, err := Examine(t.Context(), Patient{DB: p.db}); err == nil {
		t.Errorf("got %+v, want an error", r)
	}
}
