//go:build faults

package faults

import (
	"context"
	"database/sql"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"go-crontab/internal/privatedb"
	"go-crontab/job"
	"go-crontab/test/ledger"
)

// A dialect holds the names of replication in MariaDB or MySQL.
type dialect struct {
	flag            string // makes a replica write its own log
	position        string // a query for a server's position in the log: file and position come first
	follow          string // of host, port, file, position
	primary         []string
	replica         []string // together they make it semi-synchronous
	start, stop     string
	status, running string // the column with the state of the applier
	forget          string
}

var mariadbDialect = dialect{
	flag:     "--log-slave-updates",
	position: "SHOW MASTER STATUS",
	follow: "CHANGE MASTER TO MASTER_HOST='%s', MASTER_PORT=%s, MASTER_USER='root'," +
		" MASTER_LOG_FILE='%s', MASTER_LOG_POS=%s",
	primary: []string{
		"SET GLOBAL rpl_semi_sync_master_wait_point = 'AFTER_SYNC', rpl_semi_sync_master_timeout = 3600000",
		"SET GLOBAL rpl_semi_sync_master_enabled = 1"},
	replica: []string{"SET GLOBAL rpl_semi_sync_slave_enabled = 1"},
	start:   "START SLAVE", stop: "STOP SLAVE",
	status: "SHOW SLAVE STATUS", running: "Slave_SQL_Running_State",
	forget: "RESET SLAVE ALL",
}

var mysqlDialect = dialect{
	flag:     "--log-replica-updates",
	position: "SHOW BINARY LOG STATUS",
	follow: "CHANGE REPLICATION SOURCE TO SOURCE_HOST='%s', SOURCE_PORT=%s, SOURCE_USER='root'," +
		" SOURCE_LOG_FILE='%s', SOURCE_LOG_POS=%s",
	primary: []string{"INSTALL PLUGIN rpl_semi_sync_source SONAME 'semisync_source.so'",
		"SET GLOBAL rpl_semi_sync_source_wait_point = 'AFTER_SYNC', GLOBAL rpl_semi_sync_source_timeout = 3600000",
		"SET GLOBAL rpl_semi_sync_source_enabled = 1"},
	replica: []string{"INSTALL PLUGIN rpl_semi_sync_replica SONAME 'semisync_replica.so'",
		"SET GLOBAL rpl_semi_sync_replica_enabled = 1"},
	start: "START REPLICA", stop: "STOP REPLICA",
	status: "SHOW REPLICA STATUS", running: "Replica_SQL_Running_State",
	forget: "RESET REPLICA ALL",
}

// A pair is a server and its replica.
type pair struct {
	dialect
	t                *testing.T
	primary, replica *privatedb.DB
	first, second    *sql.DB // their pools
}

// replicated starts a server and its replica. If semiSync, a COMMIT is answered only when the
// replica has it too.
func replicated(t *testing.T, semiSync bool) *pair {
	t.Helper()
	program, err := privatedb.Find()
	if err != nil {
		t.Fatal(err)
	}
	p := &pair{t: t, dialect: mysqlDialect}
	if program.MariaDB {
		p.dialect = mariadbDialect
	}

	p.primary, p.first = p.server(1)
	p.replica, p.second = p.server(2)
	row := p.row(p.first, p.position)
	host, port := splitAddr(t, p.primary.Addr())
	if semiSync {
		p.exec(p.first, p.dialect.primary...)
		p.exec(p.second, p.dialect.replica...)
	}

	p.exec(p.second, fmt.Sprintf(p.follow, host, port, row["File"], row["Position"]), p.start)
	return p
}

// server starts a server that writes a binary log.
func (p *pair) server(id int) (*privatedb.DB, *sql.DB) {
	p.t.Helper()
	server, err := privatedb.Start(context.Background(), privatedb.Options{Pool: 64, Redo: 16, Durable: true, TCP: true,
		Extra: []string{"--log-bin=bin", "--binlog-format=ROW", "--relay-log=relay", p.flag, "--sync-binlog=1",
			fmt.Sprint("--server-id=", id)}})
	if err != nil {
		p.t.Fatal(err)
	}

	p.t.Cleanup(func() {
		if err := server.Stop(); err != nil {
			p.t.Errorf("stop the database: %v", err)
		}
	})

	return server, pool(p.t, server.DSN(""))
}

func (p *pair) exec(db *sql.DB, statements ...string) {
	p.t.Helper()
	for _, s := range statements {
		if _, err := db.Exec(s); err != nil {
			p.t.Fatalf("%s: %v", s, err)
		}
	}
}

// row returns the only row of a query by the names of its columns.
func (p *pair) row(db *sql.DB, query string) map[string]string {
	p.t.Helper()
	rows, err := db.Query(query)
	if err != nil {
		p.t.Fatalf("%s: %v", query, err)
	}
	defer rows.Close()

	names, _ := rows.Columns()
	values, into := make([]sql.NullString, len(names)), make([]any, len(names))
	for i := range values {
		into[i] = &values[i]
	}

	if !rows.Next() {
		p.t.Fatalf("%s: no row (%v)", query, rows.Err())
	}
	if err := rows.Scan(into...); err != nil {
		p.t.Fatalf("%s: %v", query, err)
	}

	out := map[string]string{}
	for i, name := range names {
		out[name] = values[i].String
	}

	return out
}

// promote makes the replica independent once it has applied everything that it received.
func (p *pair) promote() {
	p.t.Helper()
	p.exec(p.second, p.stop+" IO_THREAD")
	await(p.t, "the replica has applied what it has", 30*time.Second, func() bool {
		return strings.Contains(p.row(p.second, p.status)[p.running], "has read all relay log")
	})
	p.exec(p.second, p.stop, p.forget)
}

// use directs new connections of the cluster to another server. Existing connections are not
// changed.
func (c *cluster) use(server *privatedb.DB, link string) {
	c.t.Helper()
	fresh := link + "-"
	if err := os.Symlink(server.Socket(), fresh); err != nil {
		c.t.Fatal(err)
	}
	if err := os.Rename(fresh, link); err != nil {
		c.t.Fatal(err)
	}

	c.server, c.socket = server, link
	c.db = pool(c.t, server.DSN(c.schema))
}

func TestF14Failover(t *testing.T) {
	t.Parallel()
	r := scenario(t, "F14", "failover to an asynchronous replica that lacks the last second of commits")
	p := replicated(t, false)
	failover(r, p, func() {
		p.exec(p.second, p.stop+" IO_THREAD")
		time.Sleep(time.Second)
	}, true)
}

// TestF14SemiSync: every answered commit is on the replica. Any other is unknown to the nodes,
// which settle it.
func TestF14SemiSync(t *testing.T) {
	t.Parallel()
	r := scenario(t, "F14+", "failover to a semi-synchronous replica (AFTER_SYNC, no timeout)")
	failover(r, replicated(t, true), func() {}, false)
}

// failover kills the primary under load after before has returned, and continues with the replica.
// With tail, some commits since the beginning of before are missing on the replica.
func failover(r *report, p *pair, before func(), tail bool) {
	t := r.t
	t.Helper()
	c := clusterOn(r, p.primary)
	link := filepath.Join(shortDir(t), "sock")
	c.use(p.primary, link)
	c.start(3)
	l := c.mixed()
	time.Sleep(8 * time.Second)
	begun := c.now()
	before()

	if err := p.primary.Kill(); err != nil {
		t.Fatal(err)
	}

	killed := time.Now()
	p.promote()
	c.use(p.replica, link)

	for _, m := range c.nodes {
		m.proxy.CutAll()
	}

	r.within("ready again after", c.together(60*time.Second), 10*time.Second)
	time.Sleep(2*c.expiry + 5*time.Second)
	if tail {
		l.spare = l.inTail(job.MicrosOf(begun), job.MicrosOf(killed))
	}

	l.check(0)
}

// inTail picks the violations that follow from commits lost between two instants. They concern due
// times with a start or end then, according to the ledger. Such a run may be executed twice, or be
// unknown to MySQL. A lost claim is harmless: the run differs from its node's record, so the start
// fails. A run that MySQL does not know does not delay a later run of its job, so those two may
// overlap. Each run is repeated at most once: an attempt that was started three times is not
// excused.
func (l *load) inTail(from, to job.Micros) func(ledger.Violation) bool {
	t := l.c.t
	t.Helper()
	entries, err := l.book.Entries()
	if err != nil {
		t.Fatal(err)
	}
	type attempt struct {
		dueTime
		n int
	}

	touched, jobs := map[dueTime]bool{}, map[string]bool{}
	starts, often := map[attempt]int{}, map[dueTime]bool{}
	const slack = job.Micros(1_000_000) // a start is committed before it is in the ledger, an end after it
	for _, e := range entries {
		if e.Kind != ledger.Alive && e.At >= from-slack && e.At < to+slack {
			touched[dueTime{e.Job, e.Due}], jobs[e.Job] = true, true
		}
		if a := (attempt{dueTime{e.Job, e.Due}, e.Attempt}); e.Kind == ledger.Start {
			if starts[a]++; starts[a] > 2 {
				often[a.dueTime] = true
			}
		}
	}

	l.c.r.figure("%d due times started or ended in the tail", len(touched))
	return func(v ledger.Violation) bool {
		return touched[dueTime{v.Job, v.Due}] && !often[dueTime{v.Job, v.Due}] ||
			v.Fault == ledger.Overlapping && jobs[v.Job] && v.Due >= from && v.Due < to.Add(11*time.Second)
	}
}
