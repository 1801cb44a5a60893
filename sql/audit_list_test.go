package sql

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"go-crontab/internal/faultproxy"

	"github.com/google/go-cmp/cmp"
)

// TestAuditList asks for 100,000 lines of the audit by each filter, page after page, and holds what comes against what
// the table has, and the rows that the server read against those that were shown.
func TestAuditList(t *testing.T) {
	const lines, limit = 100_000, 100
	f := setUp(t).patient()
	f.exec("ALTER TABLE audit STATS_PERSISTENT=1, STATS_AUTO_RECALC=0") // the server believes that it is empty
	f.exec("INSERT INTO audit (at, who, origin, action, kind, ref, app, name, reason) VALUES (1, '', '', '', '', 0, '', '', '')")
	for n := 1; n < lines; n *= 2 {
		f.exec(`INSERT INTO audit (at, who, origin, action, kind, ref, app, name, reason)
			SELECT 1 + (n DIV 3), CONCAT('p', n MOD 400), 'here', ELT(1 + (n MOD 7), 'create', 'update', 'pause', 'resume', 'run', 'kill', 'delete'),
				ELT(1 + (n MOD 5), 'job', 'job', 'app', 'calendar', 'node'), n MOD 1000, CONCAT('a', n MOD 300), CONCAT('n', n MOD 500), ''
			FROM (SELECT id + ? AS n FROM audit ORDER BY id LIMIT ?) numbers`, n, min(n, lines-n))
	}
	db, proxy := f.behind(1)
	var statements []string
	proxy.OnCommand(func(c faultproxy.Command) {
		if c.IsStatement() {
			statements = append(statements, c.SQL)
		}
	})
	read := func() int64 { return handlerReads(t, db) }
	asking := -read()
	asking += read()
	few, many := []string{"a3", "a5", "none"}, []string{}
	for i := range manyAppsOfAudit + 4 {
		many = append(many, fmt.Sprintf("a%d", i))
	}
	for name, c := range map[string]struct {
		filter AuditFilter
		where  string
		most   int // rows that may be read for a page; 0: those that are shown, and a few
		index  string
	}{
		"all":                         {AuditFilter{}, "TRUE", 0, "at"},
		"a job":                       {AuditFilter{JobID: 5}, "kind = 'job' AND ref = 5", 0, "ref"},
		"a name":                      {AuditFilter{Name: "n7"}, "name = 'n7'", 0, "name"},
		"no such name":                {AuditFilter{Name: "x"}, "FALSE", 0, "name"},
		"somebody":                    {AuditFilter{Who: "p9"}, "who = 'p9'", 0, "who"},
		"an app":                      {AuditFilter{App: "a9"}, "app = 'a9'", 0, "app"},
		"a few apps":                  {AuditFilter{Apps: few}, "app IN ('a3', 'a5', 'none')", 0, "app"},
		"no app":                      {AuditFilter{Apps: []string{}}, "FALSE", 0, ""},
		"an action":                   {AuditFilter{Action: "kill"}, "action = 'kill'", 0, "action"},
		"a kind":                      {AuditFilter{Kind: "node"}, "kind = 'node'", 0, "kind"},
		"some time":                   {AuditFilter{From: 5000, To: 6000}, "at >= 5000 AND at < 6000", 0, "at"},
		"somebody for some time":      {AuditFilter{Who: "p9", From: 5000, To: 6000}, "who = 'p9' AND at >= 5000 AND at < 6000", 0, "who"},
		"an action of an app":         {AuditFilter{App: "a9", Action: "kill"}, "app = 'a9' AND action = 'kill'", 1500, "app|PRIMARY"},
		"somebody in a few apps":      {AuditFilter{Who: "p9", Apps: few}, "who = 'p9' AND app IN ('a3', 'a5', 'none')", 1500, "who|PRIMARY"},
		"many apps":                   {AuditFilter{Apps: many}, "SUBSTRING(app, 2) < 20 AND app <> ''", 4 * examinedMost, "at|PRIMARY"},
		"a kind and an action of all": {AuditFilter{Kind: "node", Action: "kill"}, "kind = 'node' AND action = 'kill'", 4 * examinedMost, "action|PRIMARY"},
	} {
		want := f.list("SELECT id FROM audit WHERE "+c.where+" ORDER BY at DESC, id DESC LIMIT ?", 3*limit)
		var got []int64
		for page := 1; len(got) < len(want) || page == 1; page++ {
			statements = nil
			c.filter.Limit = limit
			before := read()
			p, err := db.Audit(t.Context(), c.filter)
			cost := read() - before - asking
			if err != nil {
				t.Fatalf("%s: %v", name, err)
			}
			most := int64(c.most)
			if most == 0 {
				most = int64(2*len(p.Lines)) + 12
			}
			if cost > most {
				t.Errorf("%s, page %d: %d rows read for %d shown, want at most %d", name, page, cost, len(p.Lines), most)
			}
			if c.index != "" {
				f.wantIndex(name, statements, c.index)
			} else if slices.ContainsFunc(statements, func(s string) bool { return strings.Contains(s, "FROM audit") }) {
				t.Errorf("%s: it asked for what there cannot be: %q", name, statements)
			}
			for _, l := range p.Lines {
				got = append(got, l.ID)
				if l.ID == 0 || l.At == 0 || l.Origin != "here" && l.Who != "" {
					t.Fatalf("%s: got the line %+v", name, l)
				}
			}
			if c.filter.After = p.Next; p.Next == nil {
				break
			}
			if page > 100 {
				t.Fatalf("%s: it does not end", name)
			}
		}
		if diff := cmp.Diff(want, got[:min(len(got), len(want))]); diff != "" {
			t.Errorf("%s (-want +got):\n%.2000s", name, diff)
		}
	}
}

// list returns the numbers that a query gives.
func (f *fixture) list(query string, args ...any) (out []int64) {
	f.Helper()
	rows, err := f.db.Raw().Query(query, args...)
	if err != nil {
		f.Fatal(err)
	}
	defer rows.Close()
	for rows.Next() {
		var n int64
		if err := rows.Scan(&n); err != nil {
			f.Fatal(err)
		}
		out = append(out, n)
	}
	return out
}

// wantIndex asks the server how it would run the statements now.
func (f *fixture) wantIndex(name string, statements []string, want string) {
	f.Helper()
	explained := 0
	for _, s := range statements {
		verb, _, _ := strings.Cut(strings.TrimPrefix(s, "("), " ")
		if !strings.Contains("SELECT UPDATE DELETE", verb) {
			continue
		}
		rows, err := f.db.Raw().Query("EXPLAIN FORMAT=TRADITIONAL " + s)
		if err != nil {
			f.Fatalf("EXPLAIN %.80s: %v", s, err)
		}
		columns, _ := rows.Columns()
		for rows.Next() {
			values, ptrs := make([]any, len(columns)), make([]any, len(columns))
			for i := range values {
				ptrs[i] = &values[i]
			}
			if err := rows.Scan(ptrs...); err != nil {
				f.Fatal(err)
			}
			line := map[string]string{}
			for i, c := range columns {
				if b, ok := values[i].([]byte); ok {
					line[c] = string(b)
				}
			}
			if line["table"] == "" || line["table"] == "n" { // a constant, or the list that came with the statement
				continue
			}
			explained++
			if key := line["key"]; key == "" || !strings.Contains("|"+want+"|", "|"+key+"|") || line["type"] == "ALL" {
				f.Errorf("%s: got index %q (access %s) of table %s, want %s, in %.120s", name, key, line["type"], line["table"], want, s)
			}
		}
		rows.Close()
	}
	if explained == 0 {
		f.Errorf("%s: no statement was seen", name)
	}
}
