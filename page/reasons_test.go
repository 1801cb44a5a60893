package page

import (
	"go/ast"
	"go/parser"
	"go/token"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"
)

// freeReasons are formats of reasons that quote an error, or what somebody wrote: nothing of them is known beforehand.
var freeReasons = map[string]bool{"%s": true, "%v": true, "collect the exit status: %v": true}

// TestReasonsAreSaidInChinese holds the console's Chinese against the reasons of runs in the source of the packages that
// write them.
func TestReasonsAreSaidInChinese(t *testing.T) {
	t.Parallel()
	chinese := patternsOf(t, "reasons")
	sample, optional := regexp.MustCompile(`%[a-z.0-9]*[a-z]`), regexp.MustCompile(`([a-z])%s$`)
	found := 0
	for _, pkg := range []string{"schedule", "schedule/edit", "execute", "session", "result"} {
		for reason, where := range reasonsIn(t, filepath.Join("..", pkg)) {
			if freeReasons[reason] {
				continue
			}
			found++
			// A value as it may be: a number does for numbers, lengths of time, instants and names alike.
			// What follows a word without a space, as in "is disabled%s", may be nothing.
			said := sample.ReplaceAllStringFunc(optional.ReplaceAllString(reason, "$1"), func(verb string) string {
				if verb == "%q" {
					return `"7"`
				}
				return "7"
			})
			known := matches(chinese, said)
			if !known {
				known = true
				for part := range strings.SplitSeq(strings.TrimPrefix(said, "7; "), "; ") { // 7: another reason
					known = known && matches(chinese, part)
				}
			}
			if !known {
				t.Errorf("%s: page/src/zh-server.ts has no Chinese for the reason %q", where, reason)
			}
		}
	}
	if found < 25 {
		t.Errorf("only %d reasons were found in the source: have they moved?", found)
	}
}

// sourcesOf reads the sources of a package, but for its tests.
func sourcesOf(t *testing.T, dir string) (files []*ast.File, set *token.FileSet) {
	t.Helper()
	names, err := filepath.Glob(filepath.Join(dir, "*.go"))
	if err != nil || len(names) == 0 {
		t.Fatal(dir, len(names), err)
	}
	set = token.NewFileSet()
	for _, name := range names {
		if strings.HasSuffix(name, "_test.go") {
			continue
		}
		f, err := parser.ParseFile(set, name, nil, parser.SkipObjectResolution)
		if err != nil {
			t.Fatal(err)
		}
		files = append(files, f)
	}
	return files, set
}

// TestFreeReasonsStay holds that what a job says of itself is no reason of ours, whatever it begins with.
func TestFreeReasonsStay(t *testing.T) {
	t.Parallel()
	chinese := patternsOf(t, "reasons")
	for _, own := range []string{
		"timeout waiting for lock invoice-7", "killed by the customer", "is missing: orders.csv", "no node in the answer", "overlap of two invoices", "want 3 rows, got 2", "paused invoices are left",
		"nobody paid", "exit status 1 of convert", "group 7 has no members",
	} {
		if matches(chinese, own) {
			t.Errorf("page/src/zh-server.ts takes %q, which a handler wrote, for a reason of ours", own)
		}
	}
	for said, ours := range map[string]bool{
		"paused by ann: moving; not before May": true, "paused with app shop by ann smith": true, "paused with the cluster: new disks": true, "paused": true,
		"paused from 2027-01-01T00:00:00Z to 2027-01-02T00:00:00Z with app shop by ann: moving": true, "handler shop/pay is disabled by ann: it pays twice": true,
	} {
		if matches(chinese, said) != ours {
			t.Errorf("%q: got %t, want %t", said, !ours, ours)
		}
	}
}

func matches(patterns []*regexp.Regexp, text string) bool {
	for _, p := range patterns {
		if p.MatchString(text) {
			return true
		}
	}
	return false
}

// patternsOf reads a table of patterns of the console.
func patternsOf(t *testing.T, table string) (out []*regexp.Regexp) {
	t.Helper()
	file, err := os.ReadFile("src/zh-server.ts")
	if err != nil {
		t.Fatal(err)
	}
	_, part, _ := strings.Cut(string(file), "export const "+table+": Patterns = [")
	part, _, _ = strings.Cut(part, "\n];")
	for _, m := range regexp.MustCompile(`\[/(\^.+?\$)/(s?), '`).FindAllStringSubmatch(part, -1) {
		if strings.HasPrefix(m[1], "^ ") {
			continue // an end of a sentence
		}
		if m[2] != "" {
			m[1] = "(?s)" + m[1]
		}
		out = append(out, regexp.MustCompile(m[1]))
	}
	if len(out) < 20 {
		t.Fatalf("src/zh-server.ts has %d patterns in its table %s: has it moved?", len(out), table)
	}
	return out
}

// reasonsIn finds the texts that become reasons of runs, and where: the formats of functions that end tasks, the field
// Reason of results, notes, and the errors for which attempts are stopped.
func reasonsIn(t *testing.T, dir string) map[string]string {
	t.Helper()
	out := map[string]string{}
	files, set := sourcesOf(t, dir)
	add := func(e ast.Expr) {
		if call, ok := e.(*ast.CallExpr); ok && len(call.Args) > 0 && (calls(call, "Sprintf") || calls(call, "New") || calls(call, "Errorf")) {
			e = call.Args[0]
		}
		if lit, ok := e.(*ast.BasicLit); ok && lit.Kind == token.STRING {
			if text, err := strconv.Unquote(lit.Value); err == nil && text != "" {
				out[text] = set.Position(lit.Pos()).String()
			}
		}
	}
	for _, f := range files {
		ast.Inspect(f, func(n ast.Node) bool {
			switch n := n.(type) {
			case *ast.CallExpr:
				switch {
				case calls(n, "refusal") && len(n.Args) >= 2:
					add(n.Args[1])
				case calls(n, "waits") && len(n.Args) == 3:
					add(n.Args[2])
				case calls(n, "over") && len(n.Args) >= 2: // of an app, at a limit
					add(n.Args[1])
				case exprOf(n.Fun) == "v.count" && len(n.Args) == 2: // due times that passed without a run
					add(n.Args[0])
				}
			case *ast.KeyValueExpr:
				if key, ok := n.Key.(*ast.Ident); ok && (key.Name == "reason" || key.Name == "Reason") && inResult(f, n) {
					add(n.Value)
				}
			case *ast.AssignStmt:
				for i, to := range n.Lhs {
					if i < len(n.Rhs) && isReason(to) {
						add(n.Rhs[i])
					}
				}
				if len(n.Rhs) == 1 { // c.notes = append(c.notes, "…")
					if call, ok := n.Rhs[0].(*ast.CallExpr); ok && calls(call, "append") && len(call.Args) == 2 && named(n.Lhs[0]) == "notes" {
						add(call.Args[1])
					}
				}
			case *ast.ValueSpec:
				for i, v := range n.Values {
					if name := n.Names[i].Name; name == "ErrKilled" || name == "ErrReplaced" || name == "ErrLapsed" || name == "ErrBuried" || name == "tookItsPlace" {
						add(v)
					}
				}
			}
			return true
		})
	}
	return out
}

func calls(c *ast.CallExpr, name string) bool { return named(c.Fun) == name }

func named(e ast.Expr) string {
	switch e := e.(type) {
	case *ast.Ident:
		return e.Name
	case *ast.SelectorExpr:
		return e.Sel.Name
	}
	return ""
}

// isReason tells whether something is the reason of a result, or becomes it.
func isReason(e ast.Expr) bool {
	n := named(e)
	return n == "said" || n == "cause" || n == "late" || strings.HasSuffix(exprOf(e), "counted.reason") || n == "Reason" && !strings.Contains(exprOf(e), "line")
}

func exprOf(e ast.Expr) string {
	if s, ok := e.(*ast.SelectorExpr); ok {
		return exprOf(s.X) + "." + s.Sel.Name
	}
	return named(e)
}

// inResult tells whether a field is one of a job.Result: audit lines have reasons too.
func inResult(f *ast.File, kv *ast.KeyValueExpr) (is bool) {
	ast.Inspect(f, func(n ast.Node) bool {
		if lit, ok := n.(*ast.CompositeLit); ok && slices.Contains([]string{"Result", "End", "counted"}, named(lit.Type)) {
			for _, e := range lit.Elts {
				is = is || e == kv
			}
		}
		return !is
	})
	return is
}
