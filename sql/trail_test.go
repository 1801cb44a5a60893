package sql

import (
	"bytes"
	"go/ast"
	"go/parser"
	"go/printer"
	"go/token"
	"os"
	"strings"
	"testing"
)

// TestEveryWriteHasAPoint: every write goes through Exec or Insert, or has its own fail points
// before and after it. Only a migration has none: TestMigrateGoesOn and TestMigrateStopsBetween
// interrupt it between its steps.
func TestEveryWriteHasAPoint(t *testing.T) {
	files, err := os.ReadDir(".")
	if err != nil {
		t.Fatal(err)
	}

	var writes int
	for _, f := range files {
		if !strings.HasSuffix(f.Name(), ".go") || strings.HasSuffix(f.Name(), "_test.go") {
			continue
		}

		source, err := os.ReadFile(f.Name())
		if err != nil {
			t.Fatal(err)
		}

		n, faults := writesWithoutPoints(t, f.Name(), string(source))
		writes += n
		for _, fault := range faults {
			t.Error(fault)
		}
	}

	if writes < 4 { // Exec, Insert, the beat, and the mark
		t.Errorf("found %d places that write: the test does not see them any more", writes)
	}
}

// TestWritesWithoutPoints tests the check of the test above.
func TestWritesWithoutPoints(t *testing.T) {
	t.Parallel()
	for what, c := range map[string]struct {
		body string
		want int
	}{
		"a statement of a transaction": {`tx.tx.ExecContext(tx.ctx, "x")`, 1},
		"with a point":                 {`tx.trail.Before("x"); tx.tx.ExecContext(tx.ctx, "x")`, 0},
		"the point is behind":          {`tx.tx.ExecContext(tx.ctx, "x"); tx.trail.Before("x")`, 1},
		"two with one point": {
			`tx.trail.Before("x"); tx.tx.ExecContext(tx.ctx, "x"); tx.tx.ExecContext(tx.ctx, "y")`, 1,
		},
		"one without a transaction": {`db.db.ExecContext(ctx, "x")`, 1},
		"and with points": {
			`failpoint.Here("before", "x"); db.db.ExecContext(ctx, "x"); failpoint.Here("behind", "x")`, 0,
		},
		"and with the first of them alone":     {`failpoint.Here("before", "x"); db.db.ExecContext(ctx, "x")`, 1},
		"another transaction":                  {`db.db.BeginTx(ctx, nil)`, 1},
		"what the driver of a link is handed":  {`c.driverConn.ExecContext(ctx, "x", nil)`, 0},
		"a statement that reads":               {`tx.tx.QueryContext(tx.ctx, "x")`, 0},
		"a statement that is prepared instead": {`tx.tx.PrepareContext(tx.ctx, "x")`, 1},
	} {
		_, faults := writesWithoutPoints(t, "x.go", "package sql\nfunc x() { "+c.body+" }")
		if len(faults) != c.want {
			t.Errorf("%s: got %q, want %d", what, faults, c.want)
		}
	}
}

// writesWithoutPoints checks one file. It looks for statements on a transaction (….tx) or a pool
// (….db).
func writesWithoutPoints(t *testing.T, file, source string) (writes int, faults []string) {
	t.Helper()
	set := token.NewFileSet()
	parsed, err := parser.ParseFile(set, file, source, 0)
	if err != nil {
		t.Fatal(err)
	}

	for _, d := range parsed.Decls {
		f, is := d.(*ast.FuncDecl)
		if !is || f.Body == nil {
			continue
		}

		fault := func(at token.Pos, text string) {
			faults = append(faults, set.Position(at).String()+": "+f.Name.Name+" "+text)
		}
		// open counts points without a statement yet; owed is a statement that still needs a point
		// after it.
		open, owed := 0, token.NoPos
		ast.Inspect(f.Body, func(n ast.Node) bool {
			call, is := n.(*ast.CallExpr)
			if !is {
				return true
			}

			var name bytes.Buffer
			_ = printer.Fprint(&name, set, call.Fun)
			to, method := "", name.String()
			if i := strings.LastIndexByte(method, '.'); i >= 0 {
				to, method = method[:i], method[i+1:]
			}

			ours := to == "tx" || to == "db" || strings.HasSuffix(to, ".tx") || strings.HasSuffix(to, ".db")
			switch {
			case method == "Before" && strings.HasSuffix(to, "trail"), method == "Here" && to == "failpoint" &&
				owed == token.NoPos:
				open++
			case method == "Here" && to == "failpoint":
				owed = token.NoPos
			case ours && (method == "ExecContext" || method == "Exec" && to != "tx"): // Exec of a Tx has its point
				writes++
				if open == 0 {
					fault(call.Pos(), "writes without a point in front")
				} else if open--; !strings.HasSuffix(to, "tx") {
					owed = call.Pos()
				}
			case ours && strings.HasPrefix(method, "Prepare"), ours && strings.HasPrefix(method, "Begin") &&
				!(file == "tx.go" && f.Name.Name == "once"):
				fault(call.Pos(), "goes around Exec and Insert")
			}

			return true
		})

		if owed != token.NoPos {
			fault(owed, "writes without a point behind")
		}
	}

	return writes, faults
}
