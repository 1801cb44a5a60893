//go:build faults

package faults

import (
	"bytes"
	"cmp"
	"context"
	"database/sql"
	"encoding/json"
	"fmt"
	"io"
	"math/rand/v2"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"github.com/go-sql-driver/mysql"
	"github.com/google/uuid"

	"go-crontab/execute"
	"go-crontab/internal/privatedb"
	"go-crontab/test/faultproxy"
)

// expiry is the expiry of sessions unless a scenario sets another. All limits follow from it, so a
// short expiry makes the suite short.
const expiry = 6 * time.Second

// A cluster is node processes on a database server, or on a schema of a server that scenarios
// share.
type cluster struct {
	t      *testing.T
	r      *report
	rng    *rand.Rand
	server *privatedb.DB
	socket string // of the server, as the proxies dial it
	schema string
	db     *sql.DB // bypasses the proxies, as root
	dir    string
	token  string
	expiry time.Duration
	nodes  []*member
	looked time.Time // time of the last call of sessions
	ledger string    // the file that commands write to
}

// shared is a server for scenarios that do not break it. It ends with this process.
var shared = sync.OnceValues(func() (*privatedb.DB, error) {
	return privatedb.Start(context.Background(), privatedb.Options{Pool: 128, Redo: 64, Durable: true})
})

var schemas atomic.Int64

// newCluster makes a schema on the shared server.
func newCluster(r *report) *cluster {
	r.t.Helper()
	server, err := shared()
	if err != nil {
		r.t.Fatal(err)
	}
	return clusterOn(r, server)
}

// newClusterOf is newCluster with the tables of another program.
func newClusterOf(r *report, program string) *cluster {
	r.t.Helper()
	server, err := shared()
	if err != nil {
		r.t.Fatal(err)
	}
	return clusterOf(r, server, program)
}

// newServer makes a cluster with a separate server, to be broken.
func newServer(r *report, o privatedb.Options) *cluster {
	r.t.Helper()
	o.Pool, o.Redo, o.Durable = 64, 16, true
	server, err := privatedb.Start(context.Background(), o)
	if err != nil {
		r.t.Fatal(err)
	}

	r.t.Cleanup(func() {
		if err := server.Stop(); err != nil {
			r.t.Errorf("stop the database: %v", err)
		}
	})

	return clusterOn(r, server)
}

// pool connects to a server without a proxy. It does not report broken connections: scenarios break
// them.
func pool(t *testing.T, dsn string) *sql.DB {
	t.Helper()
	config, err := mysql.ParseDSN(dsn)
	if err != nil {
		t.Fatal(err)
	}
	config.Logger, config.Timeout, config.ReadTimeout = &mysql.NopLogger{}, 5*time.Second, 20*time.Second
	connector, err := mysql.NewConnector(config)
	if err != nil {
		t.Fatal(err)
	}

	db := sql.OpenDB(connector)
	t.Cleanup(func() { _ = db.Close() })
	return db
}

// password returns the password of the nodes. Their user is not a superuser, so limits of
// connections apply to them. On MySQL the password is empty. After a start MySQL answers the first
// login only over a link that both ends consider secure, or with an exchange of keys. A proxy with
// TCP on one side and a socket on the other makes them disagree about that. See
// TestLoginAfterRestart in package sql.
func password(server *privatedb.DB) string {
	if server.Program().MariaDB {
		return "rabbit"
	}
	return ""
}

func clusterOn(r *report, server *privatedb.DB) *cluster { return clusterOf(r, server, binary) }

func clusterOf(r *report, server *privatedb.DB, program string) *cluster {
	t := r.t
	t.Helper()
	c := &cluster{t: t, r: r, rng: dice(r.id), server: server, socket: server.Socket(), expiry: expiry,
		dir: t.TempDir(), schema: fmt.Sprintf("faults_%d", schemas.Add(1))}
	c.ledger = filepath.Join(c.dir, "ledger")

	setup := pool(t, server.DSN(""))
	for _, s := range []string{
		"CREATE DATABASE " + c.schema + " CHARACTER SET utf8mb4",
		"CREATE USER IF NOT EXISTS 'node'@'localhost' IDENTIFIED BY '" + password(server) + "'",
		"GRANT ALL ON " + c.schema + ".* TO 'node'@'localhost'",
	} {
		if _, err := setup.Exec(s); err != nil {
			t.Fatal(err)
		}
	}

	_ = setup.Close()
	c.db = pool(t, server.DSN(c.schema))
	c.db.SetMaxOpenConns(4)
	if err := os.WriteFile(c.ledger, nil, 0o666); err != nil {
		t.Fatal(err)
	}
	if err := os.Chmod(c.ledger, 0o666); err != nil { // some commands run as other users
		t.Fatal(err)
	}

	out := c.runsOf(program, "migrate", "--bootstrap", "-o", "json")
	var made struct{ Token string }
	if err := json.Unmarshal([]byte(out), &made); err != nil || made.Token == "" {
		t.Fatalf("migrate: %q, %v", out, err)
	}
	c.token = made.Token
	return c
}

// dsn is the DSN of the nodes, without a proxy.
func (c *cluster) dsn() string {
	config, err := mysql.ParseDSN(c.server.DSN(c.schema))
	if err != nil {
		c.t.Fatal(err)
	}
	config.User, config.Passwd = "node", password(c.server)
	return config.FormatDSN()
}

// runs runs a command of the program to its end and returns its output.
func (c *cluster) runs(args ...string) string { return c.runsOf(binary, args...) }

func (c *cluster) runsOf(program string, args ...string) string {
	c.t.Helper()
	cmd := exec.Command(program, args...)
	cmd.Env = append(plainEnv(), "GOCRONTAB_DSN="+c.dsn())
	cmd.Stderr = os.Stderr
	out, err := cmd.Output()
	if err != nil {
		c.t.Fatalf("%v: %v", args, err)
	}
	return string(out)
}

// plainEnv returns our environment without go-crontab's settings.
func plainEnv() (env []string) {
	for _, pair := range os.Environ() {
		if !strings.HasPrefix(pair, "GOCRONTAB_") {
			env = append(env, pair)
		}
	}
	return env
}

// A member is a node: a process, restarted by the scenario, with its proxy.
type member struct {
	c     *cluster
	name  string
	proxy *faultproxy.Proxy
	args  []string
	env   []string
	log   string // of all its lives

	program string // "": binary

	cmd   *exec.Cmd
	url   string
	ended chan struct{}
	begun int64 // where this life begins in the log
}

// start adds nodes and waits until they are ready.
func (c *cluster) start(n int, args ...string) {
	c.t.Helper()
	var fresh []*member
	for range n {
		m := c.add(args...)
		m.start()
		fresh = append(fresh, m)
	}

	for _, m := range fresh {
		m.ready(60 * time.Second)
	}
}

// add makes a node that is not started yet.
func (c *cluster) add(args ...string) *member {
	c.t.Helper()
	m := &member{c: c, name: fmt.Sprintf("%s-%c", c.schema, 'a'+len(c.nodes)), args: args}
	m.log = filepath.Join(c.dir, m.name+".log")
	proxy, err := faultproxy.Start("unix", c.socket)
	if err != nil {
		c.t.Fatal(err)
	}
	m.proxy = proxy
	c.nodes = append(c.nodes, m)

	c.t.Cleanup(func() {
		m.end()
		m.proxy.Close()
		m.audit()
	})

	return m
}

// start begins a life of the node's process.
func (m *member) start() {
	t := m.c.t
	t.Helper()
	log, err := os.OpenFile(m.log, os.O_APPEND|os.O_CREATE|os.O_WRONLY, 0o644)
	if err != nil {
		t.Fatal(err)
	}
	defer log.Close()

	info, err := log.Stat()
	if err != nil {
		t.Fatal(err)
	}
	m.begun, m.url = info.Size(), ""
	args := append([]string{"serve", "--node", m.name, "--listen", "127.0.0.1:0", "--session-expiry",
		m.c.expiry.String(),
		"--state-dir", filepath.Join(m.c.dir, m.name), "--rate-limit", "0", "--drain-grace", "2s"}, m.args...)

	m.cmd = exec.Command(cmp.Or(m.program, binary), args...)
	m.cmd.Env = append(append(plainEnv(), "GOCRONTAB_DSN="+m.proxy.DSN(m.c.dsn())), m.env...)
	m.cmd.Stdout, m.cmd.Stderr = log, log
	m.cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	if err := m.cmd.Start(); err != nil {
		t.Fatal(err)
	}

	ended, cmd := make(chan struct{}), m.cmd
	m.ended = ended

	go func() {
		defer close(ended)
		_ = cmd.Wait()
	}()
}

var apiLine = regexp.MustCompile(`"api":"(http://[^"]+)"`)

// logged returns the log of this life.
func (m *member) logged() string {
	content, err := os.ReadFile(m.log)
	if err != nil || int64(len(content)) < m.begun {
		return ""
	}
	return string(content[m.begun:])
}

// ready waits until the node has a session and a fresh lease, and returns the time that it took.
func (m *member) ready(limit time.Duration) time.Duration {
	m.c.t.Helper()
	return await(m.c.t, m.name+" ready", limit, func() bool {
		if m.url == "" {
			if found := apiLine.FindStringSubmatch(m.logged()); found != nil {
				m.url = found[1]
			}
		}
		return m.url != "" && m.isReady()
	})
}

func (m *member) isReady() bool {
	answer, err := plainClient.Get(m.url + "/readyz")
	if err != nil {
		return false
	}
	answer.Body.Close()
	return answer.StatusCode == http.StatusOK
}

func (m *member) pid() int { return m.cmd.Process.Pid }

func (m *member) isDead() bool {
	select {
	case <-m.ended:
		return true
	default:
		return false
	}
}

func (m *member) signal(s syscall.Signal) {
	m.c.t.Helper()
	if err := m.cmd.Process.Signal(s); err != nil && !m.isDead() {
		m.c.t.Errorf("%v to %s: %v", s, m.name, err)
	}
}

// kill is kill -9; it returns when the process is gone.
func (m *member) kill() {
	m.signal(syscall.SIGKILL)
	<-m.ended
}

// leave is SIGTERM; it returns the exit code and the duration of the drain.
func (m *member) leave(limit time.Duration) (code int, took time.Duration) {
	m.c.t.Helper()
	begun := time.Now()
	m.signal(syscall.SIGTERM)

	select {
	case <-m.ended:
		return m.cmd.ProcessState.ExitCode(), since(begun)
	case <-time.After(limit):
		m.c.t.Errorf("%s does not end within %s of SIGTERM", m.name, limit)
		return -1, limit
	}
}

// end ends the last life of a node after a scenario, whatever state it is in.
func (m *member) end() {
	if m.cmd == nil || m.isDead() {
		return
	}
	m.proxy.Heal()
	commands := having(m.c.t, "cmdline", m.c.ledger)
	_ = m.cmd.Process.Signal(syscall.SIGKILL)
	_ = m.cmd.Process.Signal(syscall.SIGCONT)
	<-m.ended
	killAll(commands)
}

// audit looks for lines that no log may have, and shows the log of a failed scenario.
func (m *member) audit() {
	content, _ := os.ReadFile(m.log)
	for _, bad := range []string{"panic:", "fatal error:", "DATA RACE", "goroutine 1 ["} {
		if at := bytes.Index(content, []byte(bad)); at >= 0 {
			m.c.t.Errorf("%s logged %q: %.2000s", m.name, bad, content[at:])
		}
	}

	if m.c.t.Failed() {
		if keep := os.Getenv("GOCRONTAB_FAULTS_KEEP"); keep != "" {
			_ = os.MkdirAll(keep, 0o755)
			_ = os.WriteFile(filepath.Join(keep, m.c.r.id+"-"+m.name+".log"), content, 0o644)
		}
	}
}

// session returns the node's session in MySQL, or the nil UUID.
func (m *member) session() uuid.UUID {
	var id []byte
	err := m.c.db.QueryRow("SELECT id FROM session WHERE node = ? ORDER BY started DESC LIMIT 1", m.name).Scan(&id)
	if err != nil {
		return uuid.Nil
	}
	u, err := uuid.FromBytes(id)
	if err != nil {
		m.c.t.Errorf("session of %s: %v", m.name, err)
	}

	return u
}

// commandsOf returns the processes that runs of a session have started.
func (c *cluster) commandsOf(session uuid.UUID) []int {
	return having(c.t, "environ", execute.Marker(session))
}

// buried waits until a session's row is gone, and all its commands have ended.
func (c *cluster) buried(session uuid.UUID, limit time.Duration) {
	c.t.Helper()
	await(c.t, "session "+session.String()+" buried and its runs ended", limit,
		func() bool { return c.isBuried(session) })
}

func (c *cluster) isBuried(session uuid.UUID) bool {
	return c.count("SELECT COUNT(*) FROM session WHERE id = ?", session[:])+c.executing(session) == 0
}

// executedBy is an SQL condition on run r: the session executes it.
const executedBy = "r.state = 'executing' AND r.owner = (SELECT id FROM life WHERE session = ?)"

// executing counts the runs that a session executes according to the rows.
func (c *cluster) executing(session uuid.UUID) int {
	return c.count("SELECT COUNT(*) FROM run r WHERE "+executedBy, session[:])
}

// count returns the number that a query selects. On an error, which is expected when a scenario
// breaks the server, it returns a number that fulfils no condition.
func (c *cluster) count(query string, args ...any) (n int) {
	if err := c.db.QueryRow(query, args...).Scan(&n); err != nil {
		return -1 << 30
	}
	return n
}

func (c *cluster) exec(query string, args ...any) {
	c.t.Helper()
	if _, err := c.db.Exec(query, args...); err != nil {
		c.t.Fatalf("%s: %v", query, err)
	}
}

var plainClient = &http.Client{Timeout: 25 * time.Second, Transport: &http.Transport{DisableKeepAlives: true}}

// An answer of the API; code is 0 without a response.
type answer struct {
	code   int
	header http.Header
	body   string
}

// ask sends a request to the node. A body that is not a string is sent as JSON.
func (m *member) ask(method, path string, body any, header ...string) answer {
	text, isText := body.(string)
	if body != nil && !isText {
		b, err := json.Marshal(body)
		if err != nil {
			m.c.t.Error(err)
		}
		text = string(b)
	}

	request, err := http.NewRequest(method, m.url+path, strings.NewReader(text))
	if err != nil {
		return answer{}
	}
	request.Header.Set("Authorization", "Bearer "+m.c.token)
	if text != "" {
		request.Header.Set("Content-Type", "application/json")
	}

	for i := 0; i+1 < len(header); i += 2 {
		request.Header.Set(header[i], header[i+1])
	}

	response, err := plainClient.Do(request)
	if err != nil {
		return answer{}
	}
	defer response.Body.Close()

	content, _ := io.ReadAll(io.LimitReader(response.Body, 1<<20))
	return answer{response.StatusCode, response.Header, string(content)}
}
