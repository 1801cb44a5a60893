package doctor

import (
	"go/ast"
	"go/parser"
	"go/token"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
)

// TestPage: docs/doctor.md lists exactly the existing checks.
func TestPage(t *testing.T) {
	t.Parallel()
	page, err := os.ReadFile("../../docs/doctor.md")
	if err != nil {
		t.Fatal(err)
	}

	var told, want []string
	for _, row := range regexp.MustCompile("(?m)^\\| `([a-z-]+)` \\| [^|]+ \\|$").FindAllStringSubmatch(string(page),
		-1) {
		told = append(told, row[1])
	}

	for _, c := range checks {
		want = append(want, c.id)
		if slices.Contains(want[:len(want)-1], c.id) {
			t.Errorf("two checks are called %s", c.id)
		}
	}

	if !slices.Equal(told, want) {
		t.Errorf("docs/doctor.md tells of\n%v\nthere are\n%v", told, want)
	}
}

// TestPageOfCodes holds the table of codes in docs/internals/reasons.md against the codes.
func TestPageOfCodes(t *testing.T) {
	t.Parallel()
	page, err := os.ReadFile("../../docs/internals/reasons.md")
	if err != nil {
		t.Fatal(err)
	}
	var told, want []string
	for _, row := range regexp.MustCompile("(?m)^\\| `([a-z-]+)` \\| `([a-z_]+)` \\| [^|]+ \\|$").FindAllStringSubmatch(string(page), -1) {
		told = append(told, row[1]+" "+row[2])
	}
	for _, c := range codes {
		want = append(want, c.check+" "+string(c.code))
	}
	if !slices.Equal(told, want) {
		t.Errorf("docs/internals/reasons.md tells of the codes\n%v\nthere are\n%v", told, want)
	}
}

// TestFindingsHaveCodes holds that each code is found once, and that as many findings have none as there are checks
// without codes: such a check finds one thing only.
func TestFindingsHaveCodes(t *testing.T) {
	t.Parallel()
	names, err := filepath.Glob("*.go")
	if err != nil {
		t.Fatal(err)
	}
	with, without := 0, 0
	for _, name := range names {
		if strings.HasSuffix(name, "_test.go") {
			continue
		}
		f, err := parser.ParseFile(token.NewFileSet(), name, nil, parser.SkipObjectResolution)
		if err != nil {
			t.Fatal(err)
		}
		ast.Inspect(f, func(n ast.Node) bool {
			lit, is := n.(*ast.CompositeLit)
			if !is {
				return true
			}
			if id, is := lit.Type.(*ast.Ident); !is || id.Name != "Finding" {
				return true
			}
			coded := slices.ContainsFunc(lit.Elts, func(e ast.Expr) bool {
				kv, is := e.(*ast.KeyValueExpr)
				return is && kv.Key.(*ast.Ident).Name == "Code"
			})
			if coded {
				with++
			} else {
				without++
			}
			return true
		})
	}
	plain := 0
	for _, c := range checks {
		of := 0
		for _, code := range codes {
			if code.check == c.id {
				of++
			}
		}
		switch of {
		case 0:
			plain++
		case 1:
			t.Errorf("the check %s has one code, and needs none", c.id)
		}
	}
	if with != len(codes) || without != plain {
		t.Errorf("%d findings have one of %d codes, and %d have none, with %d checks that have no codes", with, len(codes), without, plain)
	}
}
