package audit

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"go-crontab/sql/read"
	"go-crontab/test/faultproxy"
	"go-crontab/test/testdb"

	"github.com/google/go-cmp/cmp"
)

// TestAuditList reads lists of 100,000 audit lines page by page, with each filter. It compares the
// lists with the table, and the rows that the server read with the rows listed.
func TestAuditList(t *testing.T) {
	const lines, limit, examinedMost = 100_000, 100, 2000
	f := setUp(t)
	f.exec("ALTER TABLE audit STATS_PERSISTENT=1, STATS_AUTO_RECALC=0") // the server assumes an empty table
	f.exec(`INSERT INTO audit (at, who, origin, action, kind, ref, app, name, reason)
		VALUES (1, '', '', '', '', 0, '', '', '')`)
	for n := 1; n < lines; n *= 2 {
		f.exec(`INSERT INTO audit (at, who, origin, action, kind, ref, app, name, reason)
			SELECT 1 + (n DIV 3), CONCAT('p', n MOD 400), 'here',
				ELT(1 + (n MOD 7), 'create', 'update', 'pause', 'resume', 'run', 'kill', 'delete'),
				ELT(1 + (n MOD 5), 'job', 'job', 'app', 'calendar', 'node'),
				n MOD 1000, CONCAT('a', n MOD 300), CONCAT('n', n MOD 500), ''
			FROM (SELECT id + ? AS n FROM audit ORDER BY id LIMIT ?) numbers`, n, min(n, lines-n))
	}

	db, proxy := f.proxied()
	var statements []string
	proxy.OnCommand(func(c faultproxy.Command) {
		if c.IsStatement() {
			statements = append(statements, c.SQL)
		}
	})

	reads := func() int64 { return testdb.Reads(t, db.Raw()) }
	asking := -reads()
	asking += reads()
	few, many := []string{"a3", "a5", "none"}, []string{}
	for i := range read.ManyApps + 4 {
		many = append(many, fmt.Sprintf("a%d", i))
	}

	for name, c := range map[string]struct {
		filter Filter
		where  string
		most   int // most rows that a page may read; 0: the listed rows and a few more
		index  string
	}{
		"all":          {Filter{}, "TRUE", 0, "at"},
		"a job":        {Filter{JobID: 5}, "kind = 'job' AND ref = 5", 0, "ref"},
		"a name":       {Filter{Name: "n7"}, "name = 'n7'", 0, "name"},
		"no such name": {Filter{Name: "x"}, "FALSE", 0, "name"},
		"somebody":     {Filter{Who: "p9"}, "who = 'p9'", 0, "who"},
		"an app":       {Filter{App: "a9"}, "app = 'a9'", 0, "app"},
		"a few apps":   {Filter{Apps: few}, "app IN ('a3', 'a5', 'none')", 0, "app"},
		"no app":       {Filter{Apps: []string{}}, "FALSE", 0, ""},
		"an action":    {Filter{Action: "kill"}, "action = 'kill'", 0, "action"},
		"a kind":       {Filter{Kind: "node"}, "kind = 'node'", 0, "kind"},
		"some time":    {Filter{From: 5000, To: 6000}, "at >= 5000 AND at < 6000", 0, "at"},
		"somebody for some time": {Filter{Who: "p9", From: 5000, To: 6000},
			"who = 'p9' AND at >= 5000 AND at < 6000", 0, "who"},
		"an action of an app": {Filter{App: "a9", Action: "kill"}, "app = 'a9' AND action = 'kill'", 1500,
			"app|PRIMARY"},
		"somebody in a few apps": {Filter{Who: "p9", Apps: few}, "who = 'p9' AND app IN ('a3', 'a5', 'none')",
			1500, "who|PRIMARY"},
		"many apps": {Filter{Apps: many}, "SUBSTRING(app, 2) < 20 AND app <> ''", 4 * examinedMost,
			"at|PRIMARY"},
		"a kind and an action of all": {Filter{Kind: "node", Action: "kill"}, "kind = 'node' AND action = 'kill'",
			4 * examinedMost, "action|PRIMARY"},
	} {
		want := testdb.Numbers(t, f.raw, "SELECT id FROM audit WHERE "+c.where+" ORDER BY at DESC, id DESC LIMIT ?",
			3*limit)
		var got []int64
		for page := 1; len(got) < len(want) || page == 1; page++ {
			statements = nil
			c.filter.Limit = limit
			before := reads()
			p, err := List(db.Reader(t.Context()), c.filter)
			cost := reads() - before - asking
			if err != nil {
				t.Fatalf("%s: %v", name, err)
			}
			most := int64(c.most)
			if most == 0 {
				most = int64(2*len(p.Lines)) + 12
			}
			if cost > most {
				t.Errorf("%s, page %d: %d rows read for %d shown, want at most %d", name, page, cost, len(p.Lines),
					most)
			}
			if c.index != "" {
				testdb.WantIndex(t, f.raw, name, statements, c.index)
			} else if slices.ContainsFunc(statements, func(s string) bool {
				return strings.Contains(s,
					"FROM audit")
			}) {
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
