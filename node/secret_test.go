package node_test

import (
	"bytes"
	stdsql "database/sql"
	"encoding/base64"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"
	"time"

	"go-crontab/internal/secret"
	"go-crontab/job"
	"go-crontab/node"
	"go-crontab/sql/read"
)

// Values that occur nowhere except in secrets.
const (
	pgSecret   = "hunter2-Zq8=+pg"
	hookSecret = "Tr0ub4dor&3 hook"
)

func keyRing(t testing.TB, keys ...string) *secret.Ring {
	t.Helper()
	r, err := secret.Parse(strings.Join(keys, ","))
	if err != nil {
		t.Fatal(err)
	}
	return r
}

// keep sets a secret.
func (c *cluster) keep(keys *secret.Ring, name job.Secret, app, value string) {
	c.t.Helper()
	s := secret.Store{DB: c.db.DB, Keys: keys}
	if _, err := s.Put(c.t.Context(),
		secret.New{AppSecret: job.AppSecret{App: app, Name: name}, Value: value}); err != nil {
		c.t.Fatal(err)
	}
}

// last waits until a job has n runs, and returns the latest with its output.
func (c *cluster) last(j job.Job, n int) read.Run {
	c.t.Helper()
	await(c.t, j.Spec.Name+" has ended", 20*time.Second, func() bool { return len(c.history(j.ID)) >= n })
	runs := c.history(j.ID)
	r, err := c.db.Run(c.t.Context(), runs[len(runs)-1].ID)
	if err != nil {
		c.t.Fatal(err)
	}
	return r
}

// dump returns all bytes of all tables.
func (c *cluster) dump() []byte {
	c.t.Helper()
	var out bytes.Buffer
	for _, table := range c.column(`
		SELECT table_name
		FROM information_schema.tables
		WHERE table_schema = DATABASE() AND table_type = 'BASE TABLE'`) {
		rows, err := c.db.Raw().Query("SELECT * FROM `" + table + "`")
		if err != nil {
			c.t.Fatal(err)
		}

		columns, _ := rows.Columns()
		values, to := make([]stdsql.RawBytes, len(columns)), make([]any, len(columns))
		for i := range values {
			to[i] = &values[i]
		}

		for rows.Next() {
			if err := rows.Scan(to...); err != nil {
				c.t.Fatal(err)
			}
			for _, v := range values {
				out.Write(v)
				out.WriteByte('\n')
			}
		}

		rows.Close()
	}

	return out.Bytes()
}

func (c *cluster) column(query string) (out []string) {
	c.t.Helper()
	rows, err := c.db.Raw().Query(query)
	if err != nil {
		c.t.Fatal(err)
	}
	defer rows.Close()

	for rows.Next() {
		var s string
		if err := rows.Scan(&s); err != nil {
			c.t.Fatal(err)
		}
		out = append(out, s)
	}

	return out
}

// logbook keeps the log lines of nodes.
type logbook struct {
	mu   sync.Mutex
	text bytes.Buffer
}

func (l *logbook) Write(p []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.text.Write(p)
}

// TestSecrets: jobs on two nodes use secrets in all places. Then the test looks for their values
// everywhere.
func TestSecrets(t *testing.T) {
	t.Parallel()
	var mu sync.Mutex
	var asked []string
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		body, _ := io.ReadAll(r.Body)
		mu.Lock()
		asked = append(asked, r.Header.Get("Authorization")+" | "+string(body)+" | "+
			r.Header.Get("X-Gocrontab-Signature"))
		mu.Unlock()
		w.Header().Set("Location", "http://elsewhere.invalid/?"+r.Header.Get("Authorization"))
		if r.URL.Path == "/away" {
			w.WriteHeader(http.StatusTemporaryRedirect)
		}

		_, _ = w.Write(body)
	}))

	t.Cleanup(s.Close)
	c := newCluster(t)
	keys, logs := keyRing(t, secret.NewKey()), new(logbook)
	nodes := map[string]*member{}
	for _, name := range []string{"one", "two"} {
		nodes[name] = c.start(name, func(cfg *node.Config) {
			cfg.SecretKeys, cfg.HTTPAllow = keys, []string{"127.0.0.1"}
			cfg.Log = slog.New(slog.NewTextHandler(logs, &slog.HandlerOptions{Level: slog.LevelDebug}))
		})
	}

	n := nodes["one"]
	c.keep(keys, "pg", "shop", pgSecret)
	c.keep(keys, "hook", "", hookSecret)

	// The output contains the secret in pieces, with a flush of live output in between, and in
	// base64.
	gate := t.TempDir()
	wait := func(name string) string { return "until [ -e " + gate + "/" + name + " ]; do sleep .05; done; " }
	slow := `echo "pid $$"; printf %s "${PW:0:5}"; ` + wait("a") +
		`printf '%s\n' "${PW:5}"; printf %s "$PW" | base64; cat; for c in x y; do printf '%s' "$PW$c"; done; ` +
		wait("b") + `exit 3`
	var jobs []job.Job
	for name := range nodes {
		jobs = append(jobs,
			n.create(job.Spec{App: "shop", Name: "print on " + name, At: ptr(n.Now()), Selector: "node=" + name,
				Command: slow,
				CommandOptions: job.CommandOptions{
					Env: map[string]string{"PW": "{{secret.pg}}"}, Stdin: "in: {{secret.hook}} {{due}}\n",
				}}))
	}

	live := ""
	saying := func(what string) func() bool {
		return func() bool {
			all := strings.Join(c.column("SELECT data FROM chunk"), "")
			live += all
			return strings.Count(all, what) == len(jobs)
		}
	}

	await(t, "both say something", 20*time.Second, saying("pid "))
	touch(t, gate+"/a")
	await(t, "both say the rest", 20*time.Second, saying("in: ***"))
	touch(t, gate+"/b")
	await(t, "the jobs have ended", 20*time.Second, func() bool {
		live += strings.Join(c.column("SELECT data FROM chunk"), "")
		return len(c.history(jobs[0].ID)) > 0 && len(c.history(jobs[1].ID)) > 0
	})

	if !strings.Contains(live, "pid ") || !strings.Contains(live, "in: ***") || strings.Contains(live, pgSecret[:5]) ||
		strings.Contains(live, pgSecret[5:]) {
		t.Errorf("the live output: got %q", live)
	}

	for _, j := range jobs {
		r := c.last(j, 1)
		_, got, _ := strings.Cut(r.Output.Text(), "\n")
		if want := "***\n***\nin: *** {{due}}\n***x***y"; got != want || r.Reason.Text != "exit status 3" {
			t.Errorf("%s: got %+v with %q, want it with %q", j.Spec.Name, r.Result, got, want)
		}
	}

	call := n.create(job.Spec{App: "shop", Name: "call", At: ptr(n.Now()), HTTP: &job.HTTP{
		URL: s.URL, Headers: map[string]string{"Authorization": "Bearer {{secret.hook}}"},
		Body: `{"pw": "{{secret.pg}}"}`, Sign: &job.HTTPSign{Secret: "hook"},
	}})

	if r := c.last(call, 1); r.Outcome != job.Succeeded || r.Output.Text() != `{"pw": "***"}` {
		t.Errorf("the call: got %+v with %q", r.Result, r.Output.Text())
	}

	if want := "Bearer " + hookSecret + ` | {"pw": "` + pgSecret + `"} | t=`; len(asked) != 1 ||
		!strings.HasPrefix(asked[0], want) {
		t.Errorf("the server was asked %q, want %q", asked, want)
	}

	away := n.create(job.Spec{App: "shop", Name: "away", At: ptr(n.Now()), HTTP: &job.HTTP{
		URL: s.URL + "/away", Headers: map[string]string{"Authorization": "{{secret.hook}}"},
		Body: "{{secret.pg}}", Redirects: 3,
	}})

	if r := c.last(away, 1); r.Outcome != job.Failed ||
		!strings.Contains(r.Reason.Text,
			`to "http://elsewhere.invalid/?***", which is not followed: the body has secrets, and this is another server`) {
		t.Errorf("the call that is sent elsewhere: got %+v", r.Result)
	}

	_, err := n.Editor().Create(t.Context(), job.Spec{App: "billing", Name: "x", At: ptr(n.Now()), Command: "true",
		CommandOptions: job.CommandOptions{Env: map[string]string{"A": "{{secret.hook}}", "B": "{{secret.pg}}",
			"C": "{{secret.none}}"}}}, false)
	var p job.Problems
	if !errors.As(err, &p) || len(p) != 2 || p[0].Field != "env.B" || p[1].Field != "env.C" {
		t.Errorf("a job of another app: got %v", err)
	}
	if got := c.count("SELECT COUNT(*) FROM job_ref WHERE kind = 3"); got != 8 { // two each
		t.Errorf("%d references, want 8", got)
	}

	dump := c.dump()
	logs.mu.Lock()
	defer logs.mu.Unlock()
	for _, value := range []string{pgSecret, hookSecret} {
		for _, form := range []string{value, value[:8], value[7:],
			base64.StdEncoding.EncodeToString([]byte(value))[:16]} {
			if bytes.Contains(dump, []byte(form)) {
				t.Errorf("the database has %q", form)
			}
			if bytes.Contains(logs.text.Bytes(), []byte(form)) {
				t.Errorf("the logs have %q", form)
			}
		}
	}

	if !bytes.Contains(dump, []byte("{{secret.pg}}")) || logs.text.Len() == 0 {
		t.Error("nothing was searched")
	}
}

// TestSecretsThatCannotBeUsed: runs fail with a clear reason on a node without the key, and after a
// secret was deleted or its row was changed by hand.
func TestSecretsThatCannotBeUsed(t *testing.T) {
	t.Parallel()
	c := newCluster(t)
	keys := keyRing(t, secret.NewKey())
	others := keyRing(t, secret.NewKey())
	n := c.start("good", func(cfg *node.Config) { cfg.SecretKeys = keys })
	c.start("none", nil)
	c.start("wrong", func(cfg *node.Config) { cfg.SecretKeys = others })
	for _, name := range []job.Secret{"pg", "other"} {
		c.keep(keys, name, "", pgSecret+string(name))
	}

	use := func(name, on string) job.Job {
		t.Helper()
		return n.create(job.Spec{
			Name: name, At: ptr(n.Now()), Selector: "node=" + on, Command: `echo "$PW"`,
			Retry:          job.Retry{Attempts: 1},
			CommandOptions: job.CommandOptions{Env: map[string]string{"PW": "{{secret.pg}}"}},
		})
	}

	want := func(j job.Job, outcome job.Outcome, reason string) {
		t.Helper()
		if r := c.last(j, 1); r.Outcome != outcome || !strings.Contains(r.Reason.Text, reason) ||
			strings.Contains(r.Output.Text(), pgSecret) {
			t.Errorf("%s: got %+v with %q, want %s, %s", j.Spec.Name, r.Result, r.Output.Text(), outcome, reason)
		}
	}

	good, none, wrong := use("good", "good"), use("none", "none"), use("wrong", "wrong")
	want(good, job.Succeeded, "")
	want(none, job.Failed, "secret pg: this node has no key for secrets")
	want(wrong, job.Failed, "secret pg: it is sealed with the key "+keys.IDs()[0]+", and this node has keys "+
		others.IDs()[0])

	exec := func(query string) {
		t.Helper()
		if _, err := c.db.Raw().Exec(query); err != nil {
			t.Fatal(err)
		}
		time.Sleep(secret.MaxAge + 200*time.Millisecond) // the node caches secrets for this time
	}

	exec("UPDATE secret a JOIN secret b ON b.name = 'other' SET a.sealed = b.sealed WHERE a.name = 'pg'")
	want(use("swapped", "good"), job.Failed, "secret pg: its row in the database is damaged")
	later := n.create(job.Spec{
		Name: "later", At: ptr(n.Now().Add(time.Hour)), Command: "true",
		CommandOptions: job.CommandOptions{Stdin: "{{secret.pg}}"},
	})

	exec("DELETE FROM secret WHERE name = 'pg'")
	if _, err := n.Editor().RunNow(t.Context(), []int64{later.ID}, 0, ""); err != nil {
		t.Fatal(err)
	}

	want(later, job.Failed, "stdin: no secret pg exists that the job may use")
}

// TestDeleteSecretInUse deletes secrets while jobs that use them come and go.
func TestDeleteSecretInUse(t *testing.T) {
	t.Parallel()
	c := newCluster(t)
	keys := keyRing(t, secret.NewKey())
	n := c.start("one", func(cfg *node.Config) { cfg.SecretKeys = keys })
	store := secret.Store{DB: c.db.DB, Keys: keys}
	pg := job.AppSecret{Name: "pg"}
	c.keep(keys, "pg", "", pgSecret)
	spec := func(name string) job.Spec {
		return job.Spec{
			Name: name, At: ptr(n.Now().Add(time.Hour)), Command: "true",
			CommandOptions: job.CommandOptions{Stdin: "{{secret.pg}}"},
		}
	}

	j := n.create(spec("a"))
	var used *job.InUse
	if err := store.Delete(t.Context(), pg); !errors.As(err, &used) ||
		used.Error() != `the secret "pg" is in use by default/a` {
		t.Errorf("got %v", err)
	}

	c.keep(keys, "pg", "shop", pgSecret)
	if err := store.Delete(t.Context(), pg); !errors.As(err, &used) {
		t.Errorf("when another app has its own: got %v", err)
	}

	without := j.Spec
	without.Stdin = ""
	if _, err := n.Editor().Update(t.Context(), j.ID, j.Changes, without); err != nil {
		t.Fatal(err)
	}
	if err := store.Delete(t.Context(), pg); err != nil {
		t.Errorf("got %v", err)
	}

	// At the same time: either the job exists and the secret stays, or the secret is deleted and
	// the job is refused.
	for i := range 20 {
		c.keep(keys, "pg", "", pgSecret)
		var deleted, created error
		var wg sync.WaitGroup
		wg.Go(func() { deleted = store.Delete(t.Context(), pg) })
		wg.Go(func() { _, created = n.Editor().Create(t.Context(), spec(fmt.Sprint("b", i)), false) })
		wg.Wait()
		if (deleted == nil) == (created == nil) {
			t.Fatalf("try %d: deleted %v, created %v", i, deleted, created)
		}

		if created == nil {
			if _, err := n.Editor().Delete(t.Context(), c.idOf(fmt.Sprint("b", i))); err != nil {
				t.Fatal(err)
			}
		}
	}
}

func (c *cluster) idOf(name string) int64 {
	c.t.Helper()
	row, err := c.db.JobNamed(c.t.Context(), job.DefaultApp, name)
	if err != nil {
		c.t.Fatal(err)
	}
	return row.ID
}

// TestRotationUnderLoad rotates keys while jobs run every second, on a node with the new key second
// and one with the new key first: no run fails.
func TestRotationUnderLoad(t *testing.T) {
	t.Parallel()
	c := newCluster(t)
	oldKey, newKey := secret.NewKey(), secret.NewKey()
	before, after := keyRing(t, oldKey, newKey), keyRing(t, newKey, oldKey)
	n := c.start("before", func(cfg *node.Config) { cfg.SecretKeys = before })
	c.start("after", func(cfg *node.Config) { cfg.SecretKeys = after })
	c.keep(before, "pg", "", pgSecret)
	j := n.create(job.Spec{
		Name: "use", Every: job.Duration(time.Second), Overlap: job.OverlapAllow,
		Command:        `test "$PW" = '` + pgSecret + `'`,
		CommandOptions: job.CommandOptions{Env: map[string]string{"PW": "{{secret.pg}}"}},
	})
	for i := 0; len(c.history(j.ID)) < 6; i++ {
		keys := before
		if i%2 == 0 {
			keys = after
		}
		if got, err := (&secret.Store{DB: c.db.DB, Keys: keys}).Rotate(t.Context()); err != nil || len(got.Failed) > 0 {
			t.Fatalf("got %+v, %v", got, err)
		}

		time.Sleep(50 * time.Millisecond)
		if i > 400 {
			t.Fatal("the job does not run")
		}
	}

	for _, r := range c.history(j.ID) {
		if r.Outcome != job.Succeeded {
			t.Errorf("got %+v", r.Run)
		}
	}
}
