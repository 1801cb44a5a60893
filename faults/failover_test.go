//go:build faults

package faults

import (
	"context"
	"database/sql"
	"fmt"
	"os"
	"path/filepath"
	"testing"
	"time"

	"go-crontab/internal/ledger"
	"go-crontab/internal/privatedb"
	"go-crontab/job"
)

// replicated starts a server that writes a binary log.
func replicated(r *report, id int) (*privatedb.DB, *sql.DB) {
	t := r.t
	t.Helper()
	server, err := privatedb.Start(context.Background(), privatedb.Options{Pool: 64, Redo: 16, Durable: true, TCP: true,
		Extra: []string{"--log-bin=bin", "--binlog-format=ROW", "--relay-log=relay", "--log-slave-updates", "--sync-binlog=1", fmt.Sprint("--server-id=", id)}})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := server.Stop(); err != nil {
			t.Errorf("stop the database: %v", err)
		}
	})
	if !server.Program().MariaDB {
		r.skip("its statements about replication are those of MariaDB")
	}
	return server, pool(t, server.DSN(""))
}

// use has the cluster ask another server from now on. Connections that stand stay where they are.
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
	primary, first := replicated(r, 1)
	replica, second := replicated(r, 2)
	exec := func(db *sql.DB, statements ...string) {
		t.Helper()
		for _, s := range statements {
			if _, err := db.Exec(s); err != nil {
				t.Fatalf("%s: %v", s, err)
			}
		}
	}
	var file, rest string
	var position int
	if err := first.QueryRow("SHOW MASTER STATUS").Scan(&file, &position, &rest, &rest); err != nil {
		t.Fatal(err)
	}
	host, port := splitAddr(t, primary.Addr())
	exec(second, fmt.Sprintf("CHANGE MASTER TO MASTER_HOST='%s', MASTER_PORT=%s, MASTER_USER='root', MASTER_LOG_FILE='%s', MASTER_LOG_POS=%d", host, port, file, position), "START SLAVE")
	c := clusterOn(r, primary)
	link := filepath.Join(shortDir(t), "sock")
	c.use(primary, link)
	c.start(3)
	l := c.mixed()
	time.Sleep(8 * time.Second)
	exec(second, "STOP SLAVE IO_THREAD")
	tail := c.now()
	time.Sleep(time.Second)
	if err := primary.Kill(); err != nil {
		t.Fatal(err)
	}
	killed := time.Now()
	exec(second, "STOP SLAVE", "RESET SLAVE ALL")
	c.use(replica, link)
	for _, m := range c.nodes {
		m.proxy.CutAll()
	}
	r.within("ready again after", c.together(60*time.Second), 10*time.Second)
	time.Sleep(2*c.expiry + 5*time.Second)
	// A run whose claim, start or end is in the tail that was lost may run twice, or be unknown to MySQL. That can be
	// said of what lived then, and of what was claimed then, 10 s ahead at most; of nothing else.
	from, to := job.MicrosOf(tail.Add(-12*time.Second)), job.MicrosOf(killed.Add(11*time.Second))
	l.spare = func(v ledger.Violation) bool { return v.Due >= from && v.Due < to }
	l.check(0)
}
