//go:build faults && members

package faults

import (
	"context"
	"fmt"
	"log/slog"
	"net/http"
	"os"
	"os/exec"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"github.com/go-sql-driver/mysql"
	"github.com/google/uuid"

	"go-crontab/internal/privatedb"
	"go-crontab/lock"
	"go-crontab/session"
	crontab "go-crontab/sql"
	tripsql "go-crontab/sql/trip"
	"go-crontab/test/faultproxy"
	"go-crontab/test/members"
	"go-crontab/test/testdb"
)

// A replica set is a cluster with several database servers. Each node begins with a different
// server.
type replicaSet struct {
	*cluster
	servers *members.Cluster
	links   [][]*faultproxy.Proxy // from each node to each server
}

// onMembers makes a cluster on replicating servers, and starts a node for each.
func onMembers(r *report, servers *members.Cluster) *replicaSet {
	r.t.Helper()
	s := &replicaSet{cluster: clusterOn(r, servers.Servers[0]), servers: servers}

	// The engines take 5 s to give up a member, and the promises are for the default expiry.
	s.expiry = session.DefaultExpiry
	s.watch(0)

	// Use TCP where the server has it: over a socket MySQL wants the password in clear, which a
	// client of a proxy does not send.
	for _, statement := range []string{
		"CREATE USER IF NOT EXISTS 'node'@'127.0.0.1' IDENTIFIED BY '" + password(s.server) + "'",
		"GRANT ALL ON " + s.schema + ".* TO 'node'@'127.0.0.1'",
	} {
		s.exec(statement)
	}

	for i := range servers.Servers {
		m := s.add()
		var links []*faultproxy.Proxy
		var addrs []string
		for _, server := range servers.Servers {
			network, addr := "tcp", server.Addr()
			if addr == "" {
				network, addr = "unix", server.Socket()
			}
			p, err := faultproxy.Start(network, addr)
			if err != nil {
				r.t.Fatal(err)
			}

			r.t.Cleanup(p.Close)
			links, addrs = append(links, p), append(addrs, p.Addr())
		}

		config, err := mysql.ParseDSN(s.dsn())
		if err != nil {
			r.t.Fatal(err)
		}
		config.Net, config.Addr = "tcp", addrs[i]
		list := strings.Join(append(addrs[i:len(addrs):len(addrs)], addrs[:i]...), ",")
		m.env = []string{"GOCRONTAB_DSN=" + strings.Replace(config.FormatDSN(), addrs[i], list, 1)}
		s.links = append(s.links, links)
		m.start()
	}

	s.together(2 * time.Minute)
	return s
}

// watch directs the scenario's own queries to another server from now on.
func (s *replicaSet) watch(server int) {
	s.server, s.socket = s.servers.Servers[server], s.servers.Servers[server].Socket()
	s.db = pool(s.t, s.server.DSN(s.schema))
	s.db.SetMaxOpenConns(4)
}

// asks returns the server that a node sends its statements to.
func (s *replicaSet) asks(node int) (server int) {
	s.t.Helper()
	await(s.t, fmt.Sprintf("node %d asks one server", node+1), time.Minute, func() bool {
		var before []int
		for _, p := range s.links[node] {
			before = append(before, p.Statements())
		}

		time.Sleep(3 * time.Second)

		server = -1
		for i, p := range s.links[node] {
			if p.Statements() > before[i] {
				if server >= 0 {
					return false
				}
				server = i
			}
		}

		return server >= 0
	})

	return server
}

// apart fails the scenario unless each node asks a different server.
func (s *replicaSet) apart() {
	s.t.Helper()
	for i := range s.nodes {
		if at := s.asks(i); at != i {
			s.t.Errorf("node %d asks server %d, want each node at another one", i+1, at+1)
		}
	}
}

// fenced counts the nodes with a new session.
func (s *replicaSet) fenced(before []uuid.UUID) (n int) {
	for i, id := range s.sessions() {
		if id != before[i] {
			n++
		}
	}
	return n
}

// readsWrites changes data through a node and reads it through another at once.
func (s *replicaSet) readsWrites(times int) {
	s.t.Helper()
	stale := 0
	for n := range times {
		writer, reader := s.nodes[n%len(s.nodes)], s.nodes[(n+1)%len(s.nodes)]
		name := fmt.Sprint("fresh-", n)
		made := writer.ask("POST", "/api/v1/jobs", object{"name": name, "schedule": "0 0 1 1 *", "command": "true"})
		if made.code != http.StatusCreated {
			s.t.Fatalf("POST /api/v1/jobs: %d %s", made.code, made.body)
		}
		if a := reader.ask("GET", made.header.Get("Location"), nil); a.code != http.StatusOK {
			stale++
		}
	}

	s.r.figure("%d changes read at once through another node, %d of them not there yet", times, stale)
	if stale > 0 {
		s.t.Errorf("%d of %d changes were not there for a node that was asked behind them", stale, times)
	}
}

// breakCommits injects each fate of a COMMIT at each step of a run, on the links from all nodes to
// a server; -1 means the server that the node asks.
func (s *replicaSet) breakCommits(server int, d time.Duration) {
	s.t.Helper()
	rules := injected{}
	each := times(1, 10)
	for node := range s.nodes {
		to := server
		if to < 0 {
			to = node
		}

		for _, fate := range sorted(fates) {
			for _, stage := range sorted(trip) {
				rules.add(stage, fate, s.links[node][to].Add(faultproxy.Rule{
					Match: faultproxy.CommitOf(trip[stage]), Skip: s.skip(stage, 8*each), Times: each,
					Action: fates[fate](),
				}))
			}
		}
	}

	time.Sleep(d)
	rules.over(s.r)
	s.together(time.Minute)
}

// elsewhere waits until all nodes use living servers.
func (s *replicaSet) elsewhere(gone int) {
	s.t.Helper()
	time.Sleep(2 * time.Second)
	s.together(2 * time.Minute)
	for i := range s.nodes {
		if at := s.asks(i); at == gone {
			s.t.Errorf("node %d still asks server %d, which is not there", i+1, gone+1)
		}
	}
}

func galera(t *testing.T, durable bool) *members.Cluster {
	t.Helper()
	c, err := members.StartGalera(context.Background(), 3, durable)
	return servers(t, c, err)
}

func servers(t *testing.T, c *members.Cluster, err error) *members.Cluster {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}

	t.Cleanup(func() {
		if err := c.Stop(); err != nil {
			t.Errorf("stop the servers: %v", err)
		}
	})

	return c
}

func TestGaleraLoad(t *testing.T) {
	t.Parallel()

	r := scenario(t, "G1", "Galera, each node at another of three members, nothing broken; then kill -9 of a node")
	s := onMembers(r, galera(t, true))
	s.apart()
	l := s.mixed()
	s.readsWrites(times(60, 1000))
	time.Sleep(time.Duration(times(15, 300)) * time.Second)
	l.check(3 * time.Second)
	dead := s.busy()
	gone := dead.session()
	dead.kill()
	s.buried(gone, s.expiry+10*time.Second)
	dead.start()
	s.together(time.Minute)
	time.Sleep(5 * time.Second)
	l.check(s.soon())
}

func TestGaleraCommitFates(t *testing.T) {
	t.Parallel()
	r := scenario(t, "G2",
		"Galera, each node at another of three members, each fate of a COMMIT at plan, claim, start, finish, free")
	s := onMembers(r, galera(t, true))
	l := s.mixed()
	s.breakCommits(-1, time.Duration(times(40, 300))*time.Second)
	time.Sleep(5 * time.Second)
	l.check(s.soon())
}

func TestGaleraLosesMembers(t *testing.T) {
	t.Parallel()

	r := scenario(t, "G3",
		"Galera under load, each node at another of three members: kill -9 of a member and its return, SIGSTOP of"+
			" another for longer than a lease")
	s := onMembers(r, galera(t, true))
	s.apart()
	l := s.mixed()
	time.Sleep(8 * time.Second)

	before := s.sessions()
	if err := s.servers.Servers[1].Kill(); err != nil {
		t.Fatal(err)
	}

	killed := time.Now()
	s.elsewhere(1)
	r.figure("%d of 3 nodes fenced by it", s.fenced(before))
	time.Sleep(5 * time.Second)
	if err := s.servers.Restart(context.Background(), 1); err != nil {
		t.Fatal(err)
	}

	r.figure("the member was back after %s", short(time.Since(killed)))
	time.Sleep(5 * time.Second)
	l.check(0)

	before = s.sessions()
	stop := func(signal syscall.Signal) { _ = syscall.Kill(-s.servers.Servers[2].PID(), signal) }
	stop(syscall.SIGSTOP)
	s.elsewhere(2)
	r.figure("%d of 3 nodes fenced by it", s.fenced(before))
	time.Sleep(s.expiry)
	stop(syscall.SIGCONT)
	if err := s.servers.Await(context.Background(), 2); err != nil {
		t.Fatal(err)
	}

	time.Sleep(5 * time.Second)
	l.check(0)
}

// group is a group with one primary. A missing member is given up at once, and a primary without a
// majority gives itself up: docs/engines.md recommends both settings.
func group(t *testing.T, durable bool) *members.Cluster {
	t.Helper()
	c, err := members.StartGroup(context.Background(), 3, durable, "member_expel_timeout=0",
		"unreachable_majority_timeout=5", "autorejoin_tries=10")
	return servers(t, c, err)
}

// onGroup makes a cluster on a group in which all nodes ask the primary, the first server.
func onGroup(r *report) *replicaSet {
	r.t.Helper()
	s := onMembers(r, group(r.t, true))
	for i := range s.nodes {
		if at := s.asks(i); at != 0 {
			r.t.Errorf("node %d asks server %d, want the primary", i+1, at+1)
		}
	}
	return s
}

func TestGroupCommitFates(t *testing.T) {
	t.Parallel()

	r := scenario(t, "R1",
		"Group Replication of three members, nothing broken; then each fate of a COMMIT at plan, claim, start,"+
			" finish, free")
	s := onGroup(r)
	l := s.mixed()
	s.readsWrites(times(60, 1000))
	time.Sleep(time.Duration(times(10, 300)) * time.Second)
	l.check(3 * time.Second)
	s.breakCommits(0, time.Duration(times(40, 300))*time.Second)
	time.Sleep(5 * time.Second)
	l.check(s.soon())
}

func TestGroupLosesPrimary(t *testing.T) {
	t.Parallel()

	r := scenario(t, "R2",
		"Group Replication under load: kill -9 of the primary and its return, SIGSTOP of the next primary for longer"+
			" than a lease")
	s := onGroup(r)
	l := s.mixed()
	time.Sleep(8 * time.Second)
	primary := 0

	// lose takes the primary away and waits until all nodes use the next one.
	lose := func(what string, do func(*privatedb.DB) error) (lost int) {
		t.Helper()
		lost = primary
		s.watch((lost + 1) % len(s.servers.Servers))
		before := s.sessions()
		if err := do(s.servers.Servers[lost]); err != nil {
			t.Fatal(err)
		}

		begun := time.Now()

		await(t, "another primary", time.Minute, func() bool {
			at, err := s.servers.Primary(context.Background(), (lost+1)%len(s.servers.Servers))
			primary = at
			return err == nil && at != lost
		})

		s.watch(primary)
		r.figure("another primary %s after the %s", short(time.Since(begun)), what)
		s.elsewhere(lost)
		r.figure("%d of 3 nodes fenced by it", s.fenced(before))
		return lost
	}

	lost := lose("kill", (*privatedb.DB).Kill)
	time.Sleep(5 * time.Second)
	if err := s.servers.Restart(context.Background(), lost); err != nil {
		t.Fatal(err)
	}

	time.Sleep(5 * time.Second)
	l.check(0)

	signal := func(s syscall.Signal) func(*privatedb.DB) error {
		return func(db *privatedb.DB) error { return syscall.Kill(-db.PID(), s) }
	}
	lost = lose("freeze", signal(syscall.SIGSTOP))
	time.Sleep(s.expiry)
	if err := signal(syscall.SIGCONT)(s.servers.Servers[lost]); err != nil {
		t.Fatal(err)
	}

	if err := s.servers.Await(context.Background(), lost); err != nil {
		t.Fatal(err)
	}

	time.Sleep(5 * time.Second)
	l.check(0)
}

// databaseSuite runs the database tests of all packages on one of several servers, all of which
// take part in each commit. RUN='TestGaleraDatabaseSuite/sql$' runs a single package.
func databaseSuite(t *testing.T, c *members.Cluster) {
	t.Helper()
	list, err := exec.Command("go", "list", "-f",
		`{{.ImportPath}} {{join .TestImports " "}} {{join .XTestImports " "}}`, "../../...").Output()
	if err != nil {
		t.Fatalf("go list: %v", err)
	}

	ran := 0
	for line := range strings.Lines(string(list)) {
		pkg, imports, _ := strings.Cut(line, " ")
		name := strings.TrimPrefix(pkg, "go-crontab/")
		if !slices.Contains(strings.Fields(imports), "go-crontab/test/testdb") || slices.Contains(ownServers, name) {
			continue
		}
		ran++

		t.Run(name, func(t *testing.T) {
			// Only a few in parallel: making a schema delays all commits.
			cmd := exec.Command("go", "test", "-count", "1", "-timeout", "30m", "-parallel", "2", pkg)
			cmd.Env = append(os.Environ(), testdb.External+"="+c.Servers[0].DSN("suite"))
			cmd.Stdout, cmd.Stderr = os.Stdout, os.Stderr
			if err := cmd.Run(); err != nil {
				t.Errorf("%s: %v", strings.Join(cmd.Args, " "), err)
			}
		})
	}

	if ran < 10 {
		t.Errorf("%d packages use %s, want most of them", ran, "test/testdb")
	}
}

// ownServers lists packages whose tests never use the shared server.
var ownServers = []string{"bench", "faults", "test/faultproxy"}

// TestGaleraDatabaseSuite makes the member generate consecutive ids, as a single server does, since
// tests expect them. No other server writes here. The scenarios keep Galera's default, in which
// each member counts in steps.
func TestGaleraDatabaseSuite(t *testing.T) {
	c := galera(t, false)
	db := pool(t, c.Servers[0].DSN(""))
	for _, statement := range []string{"SET GLOBAL wsrep_auto_increment_control = OFF",
		"SET GLOBAL auto_increment_increment = 1", "SET GLOBAL auto_increment_offset = 1"} {
		if _, err := db.Exec(statement); err != nil {
			t.Fatalf("%s: %v", statement, err)
		}
	}
	databaseSuite(t, c)
}

func TestGroupDatabaseSuite(t *testing.T) { databaseSuite(t, group(t, false)) }

// settleElsewhere makes commits of all nodes unknown and sends their settling to another server:
// the reply is lost, or the commit arrives after it has been settled.
func (s *replicaSet) settleElsewhere(rounds int) {
	s.t.Helper()
	var injected atomic.Int64
	var nodes sync.WaitGroup
	stop, cancel := context.WithTimeout(context.Background(), 10*time.Minute)
	defer cancel()

	for node := range s.nodes {
		link := s.links[node][node]
		nodes.Go(func() {
			for range rounds {
				for _, stage := range sorted(trip) {
					for _, action := range []faultproxy.Action{faultproxy.CutAfter(),
						faultproxy.HoldBefore(4 * time.Second)} {
						rule := link.Add(faultproxy.Rule{Match: faultproxy.CommitOf(trip[stage]), Times: 1,
							Action: action})

						wait, done := context.WithTimeout(stop, 6*time.Second)
						if rule.Wait(wait) == nil {
							injected.Add(1)
							link.Refuse() // existing connections continue, and their commit arrives too late
							time.Sleep(5 * time.Second)
							link.Heal()
						}

						done()
						rule.Remove()

						// The next connection goes to the last server used: make it begin with the
						// first again.
						for _, other := range s.links[node] {
							if other != link {
								other.Refuse()
								other.CutAll()
							}
						}

						time.Sleep(time.Second)
						for _, other := range s.links[node] {
							other.Heal()
						}
					}
				}
			}
		})
	}

	nodes.Wait()
	s.r.figure("%d commits that had to be settled on another member", injected.Load())
	if want := int64(3 * rounds * len(trip)); injected.Load() < want {
		s.t.Errorf("%d commits were made unknown, want %d at least", injected.Load(), want)
	}

	s.together(time.Minute)
}

// TestGaleraGhost: a commit that reaches a member after it has been settled on another must be
// refused, unless the settling has seen it.
func TestGaleraGhost(t *testing.T) {
	r := scenario(t, "G5",
		"Galera: a start whose commit arrives at one member while, or after, it is settled on another")
	c := galera(t, true)
	s := clusterOn(r, c.Servers[0])

	var links []*faultproxy.Proxy
	for _, server := range c.Servers[:2] {
		links = append(links, faultproxy.New(t, "unix", server.Socket()))
	}

	timings, err := session.NewTimings(session.DefaultExpiry)
	if err != nil {
		t.Fatal(err)
	}

	link := func(p *faultproxy.Proxy, others ...*faultproxy.Proxy) *crontab.DB {
		config, err := mysql.ParseDSN(p.DSN(s.dsn()))
		if err != nil {
			t.Fatal(err)
		}

		list := config.Addr
		for _, other := range others {
			list += "," + other.Addr()
		}

		db, err := crontab.Open(strings.Replace(config.FormatDSN(), config.Addr, list, 1), timings.SQL, 2)
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { db.Close() })
		return db
	}

	log := slog.New(slog.NewTextHandler(t.Output(), nil))
	stood := 0
	tries := times(6, 60)
	for n := range tries {
		links[0].Heal()
		x := lock.New(link(links[0], links[1]), lock.Unmeasured{}, log) // a separate pool that begins with the first member
		const owner tripsql.Owner = 7
		launch := tripsql.Launch{Run: int64(n + 1), Claim: 1}
		s.exec("INSERT INTO job (id, app_id, name, hash) VALUES (?, 1, ?, 0)", n+1, fmt.Sprint("job-", n))
		s.exec(`
			INSERT INTO run (id, job_id, app_id, due, due_now, kind, state, owner, claim, hash)
			VALUES (?, ?, 1, 1, 1, 'schedule', 'prepared', ?, 1, 0)`,
			n+1, n+1, int(owner))

		begun := []tripsql.Begun{{JobID: int64(n + 1), To: 1, Running: launch.Run}}

		// Before, during and after the settling: the pool waits 3 s for the reply.
		action := faultproxy.CutAfter()
		if n%3 > 0 {
			action = faultproxy.HoldBefore(timings.SQL.Read + time.Duration(s.rng.IntN(1500))*time.Millisecond)
		}
		ghost := links[0].Add(faultproxy.Rule{Match: faultproxy.CommitOf("SET state = 'executing'"), Action: action})

		links[0].OnCommand(func(c faultproxy.Command) {
			if c.IsCommit() {
				links[0].Refuse()
			}
		})

		started, settled := 0, 0
		err := x.Do(t.Context(), lock.Change{
			Name: "start",
			Rows: func(tx *crontab.Tx) error {
				n, err := tripsql.Start(tx, owner, 0, false, []tripsql.Launch{launch}, 1, 1)
				if err != nil {
					return err
				}
				started = int(n)
				return tripsql.MarkBegun(tx, begun)
			},
			Settle: func(tx *crontab.Tx) error {
				settled++
				if err := tripsql.MarkBegun(tx, begun); err != nil { // written by both: the second is refused
					return err
				}
				stands, err := tripsql.StartedAmong(tx, owner, []tripsql.Launch{launch})
				started = len(stands)
				return err
			},
			Sets: func() {},
		})

		links[0].OnCommand(func(faultproxy.Command) {})
		if err != nil || settled == 0 || ghost.Fired() != 1 {
			t.Fatalf("try %d: %v, settled %d times, %d faults; want it settled", n, err, settled, ghost.Fired())
		}
		if err := ghost.Settle(t.Context()); err != nil { // the commit has arrived by now
			t.Fatal(err)
		}

		for member := range c.Servers {
			db := pool(t, c.Servers[member].DSN(s.schema)+"?wsrep_sync_wait=1")
			rows := -1
			err := db.QueryRow("SELECT COUNT(*) FROM run WHERE id = ? AND state = 'executing'", launch.Run).Scan(&rows)
			if err != nil || rows != started {
				t.Errorf("try %d: at member %d the start of %d runs stands, %v, and %d are taken for started", n,
					member+1, rows, err, started)
			}
		}

		stood += started
	}

	r.figure("%d commits settled on another member, %d of them stand", tries, stood)
	if stood == 0 || stood == tries {
		t.Errorf("%d of %d commits stand: only one kind of fate was tried", stood, tries)
	}
}

func TestGaleraSettlesElsewhere(t *testing.T) {
	t.Parallel()
	r := scenario(t, "G4",
		"Galera, each node at another of three members: commits whose reply is lost, or that arrive when they were"+
			" given up, and whose node goes to another member")
	s := onMembers(r, galera(t, true))
	l := s.mixed()
	s.settleElsewhere(times(1, 6))
	time.Sleep(5 * time.Second)
	l.check(s.soon())
}
