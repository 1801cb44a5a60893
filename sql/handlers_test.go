package sql

import (
	"fmt"
	"maps"
	"testing"

	"go-crontab/internal/faultproxy"
)

// TestHandlerJobs counts them among 70,000 jobs, all of them and those of some apps, by statements of which none looks at many
// jobs, and at none while no job has ever named a handler.
func TestHandlerJobs(t *testing.T) {
	f := setUp(t).patient()
	const jobs = 7 * handlerPart
	f.exec("INSERT INTO job (id, app, name, hash, spec, created, updated) VALUES (1, 'a', '1', 7, '{}', 1, 1)")
	for n := 1; n < jobs; n *= 2 { // with gaps between the ids
		f.exec("INSERT INTO job (id, app, name, hash, spec, created, updated) SELECT id + ?, IF(name MOD 3 = 0, 'b', 'a'), name + ?, 7, '{}', 1, 1 FROM job ORDER BY id LIMIT ?", 3*n, n, min(n, jobs-n))
	}
	db, proxy := f.behind(1)
	var statements []string
	proxy.OnCommand(func(c faultproxy.Command) {
		if c.IsStatement() {
			statements = append(statements, c.SQL)
		}
	})
	read := func() int64 { return handlerReads(t, db) }
	asking := -read() // which itself reads rows
	asking += read()
	count := func(apps []string) (jobs map[string]int, asked []string) {
		t.Helper()
		statements = nil
		got, err := db.HandlerJobs(t.Context(), apps)
		if err != nil {
			t.Fatal(err)
		}
		asked = statements
		for _, s := range asked { // each of them again by itself
			before := read()
			rows, err := db.Raw().Query(s)
			if err != nil {
				t.Fatal(err)
			}
			for rows.Next() {
			}
			rows.Close()
			if n := read() - before - asking; n > 6*handlerPart {
				t.Errorf("a statement has read %d rows, want at most about those of %d jobs: %.100s", n, handlerPart, s)
			}
		}
		return got, asked
	}
	if got, asked := count(nil); len(got) != 0 || len(asked) != 1 {
		t.Errorf("without a handler: got %v by %d statements, want none by one", got, len(asked))
	}

	f.exec("INSERT INTO place (id, selector) VALUES (1, 'handler/mail'), (2, 'handler/mail,zone=a'), (3, 'zone=a'), (4, 'handler/odd,!x')")
	// Of the last two kinds, one wants nodes that have a handler and does not name it, and a hand wrote the other.
	f.exec(`UPDATE job SET living = IF(name MOD 7 = 0, NULL, 1),
		place = CASE WHEN name = ? THEN 4 WHEN name MOD 5 = 0 THEN 1 WHEN name MOD 500 = 1 THEN 2 WHEN name MOD 5 = 2 THEN 3 WHEN name MOD 5 = 3 THEN 4 WHEN name MOD 5000 = 4 THEN 1 ELSE 0 END,
		spec = CASE WHEN name = ? THEN '{"handler":"odd"}' WHEN name MOD 5 = 0 OR name MOD 500 = 1 THEN '{"handler":"mail"}' WHEN name MOD 5000 = 4 THEN 'handler' ELSE '{}' END`, jobs, jobs)
	for name, apps := range map[string][]string{"all": nil, "one app": {"b"}, "apps": {"a", "b", "none"}, "no app": {}} {
		want := map[string]int{}
		for _, key := range []string{"mail", "odd"} {
			cond, args := ofApps("app", apps)
			n := f.number(fmt.Sprintf("SELECT COUNT(*) FROM job WHERE living = 1 AND spec = '{\"handler\":\"%s\"}' AND %s", key, cond), args...)
			if n > 0 {
				want[key] = int(n)
			}
		}
		if got, _ := count(apps); !maps.Equal(got, want) || len(want) == 0 && len(apps) != 0 {
			t.Errorf("%s: got %v, want %v", name, got, want)
		}
	}
}
