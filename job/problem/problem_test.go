package problem

import (
	"flag"
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"testing"
)

func TestText(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		got     Text
		message string
		values  []string
	}{
		"numbers": {
			TooLong.Of(612, 500), "is 612 characters long; at most 500 are allowed", []string{"612", "500"},
		},
		"no quotes": {NotOneOf.Of("x", "a, b"), `"x" is not one of a, b`, []string{"x", "a, b"}},
		"a cut value": {
			NotAMethod.Of(strings.Repeat("x", 50)), `"` + strings.Repeat("x", 40) +
				`" is not an HTTP method; use capital letters, such as GET, POST, PUT, PATCH, DELETE or HEAD`,
			[]string{strings.Repeat("x", 40)},
		},
		"a character": {
			HeaderCharacter.Of('é'),
			"contains 'é'; only printable ASCII is allowed, so encode it as the server expects", []string{"é"},
		},
		"shown": {
			NotBetween.Of(-1, Shown(0, "0 (none)"), 7), "-1 is not between 0 (none) and 7", []string{"-1", "0", "7"},
		},
		"advice": {Empty.Advise("give 1 to %d", 9).Of(), "is empty; give 1 to 9", nil},
		"a percent sign": {
			URLFragment.Of(), "has a fragment, which is not sent; write %23 for a literal #", nil,
		},
		"of a wrap":       {Of(fmt.Errorf("the name %w", Errorf(Empty))), "the name is empty", nil},
		"cut to 10 bytes": {NotWith.Of(strings.Repeat("é", 9)).Cut(10), "cannot be …", []string{"ééééé…"}},
	} {
		if c.got.Message != c.message || strings.Join(c.got.Values, "|") != strings.Join(c.values, "|") ||
			c.got.Code == "" {
			t.Errorf("%s: got %q, want %q with the values %q", name, c.got, c.message, c.values)
		}
	}

	if got := Of(os.ErrNotExist); got.Code != "other" || got.Message != os.ErrNotExist.Error() {
		t.Errorf("an error without a code: got %q", got)
	}
}

// TestCodes holds that codes are words, and that sentences which share one have the same values.
func TestCodes(t *testing.T) {
	t.Parallel()
	code, values := regexp.MustCompile(`^[a-z][a-z0-9]*(_[a-z0-9]+)*$`), map[string]int{}
	said := map[string]string{}
	for _, s := range All() {
		if !code.MatchString(s.Code()) {
			t.Errorf("%q is no code", s.Code())
		}

		if n, twice := values[s.Code()]; twice && n != len(s.Verbs()) {
			t.Errorf("%s: one sentence has %d values, another %d", s.Code(), n, len(s.Verbs()))
		}

		values[s.Code()] = len(s.Verbs())
		if other, twice := said[s.String()]; twice && strings.Trim(s.String(), `{}1"`) != "" {
			t.Errorf("%s and %s say the same: %s", s.Code(), other, s)
		}

		said[s.String()] = s.Code()
	}
}

var update = flag.Bool("update", false, "write docs/internals/codes.md")

// TestPage holds docs/internals/codes.md against the sentences.
func TestPage(t *testing.T) {
	t.Parallel()

	want, last := "# Codes of messages\n\nWritten by `go test ./job/problem -run TestPage -update`. "+
		"[The API](../api.md#codes-of-messages) says where they appear.\n\n| Code | Message |\n|---|---|\n", ""
	for _, s := range All() {
		if s.Code() != last { // of several sentences with one code, the first
			want += fmt.Sprintf("| `%s` | `%s` |\n", s.Code(), s)
		}
		last = s.Code()
	}

	const page = "../../docs/internals/codes.md"
	if *update {
		if err := os.WriteFile(page, []byte(want), 0o644); err != nil {
			t.Fatal(err)
		}
	}

	got, err := os.ReadFile(page)
	if err != nil {
		t.Fatal(err)
	}
	if string(got) != want {
		t.Error("docs/internals/codes.md differs from the sentences; run go test ./job/problem -run TestPage -update")
	}
}

// declared finds which variable is which sentence.
func declared(t *testing.T) map[string]Sentence {
	t.Helper()
	byFormat := map[string]Sentence{}
	for _, s := range All() {
		byFormat[s.code+" "+s.format] = s
	}

	out := map[string]Sentence{}
	files, err := filepath.Glob("*.go")
	if err != nil {
		t.Fatal(err)
	}

	for _, name := range files {
		f := parse(t, name)
		for _, d := range f.Decls {
			vars, is := d.(*ast.GenDecl)
			if !is || vars.Tok != token.VAR {
				continue
			}
			for _, spec := range vars.Specs {
				v := spec.(*ast.ValueSpec)
				if len(v.Values) != 1 {
					continue
				}
				if call, is := v.Values[0].(*ast.CallExpr); is && nameOf(call.Fun) == "say" {
					s, there := byFormat[textOf(t, call.Args[0])+" "+textOf(t, call.Args[1])]
					if !there {
						t.Fatalf("%s: %s is not among the sentences", name, v.Names[0])
					}
					out[v.Names[0].Name] = s
				}
			}
		}
	}

	return out
}

// TestCalls checks that each sentence is used, always with the right number of values, and that no
// code makes a text without a sentence, which would have no code.
func TestCalls(t *testing.T) {
	t.Parallel()
	sentences, used := declared(t), map[string]bool{"Other": true}
	if len(sentences) < 300 {
		t.Fatalf("only %d sentences were found", len(sentences))
	}

	for _, name := range sources(t) {
		f := parse(t, name)
		ast.Inspect(f, func(n ast.Node) bool {
			switch n := n.(type) {
			case *ast.SelectorExpr:
				if nameOf(n.X) == "problem" {
					used[n.Sel.Name] = true
				}
			case *ast.CompositeLit:
				if s, is := n.Type.(*ast.SelectorExpr); is && nameOf(s.X) == "problem" && s.Sel.Name == "Text" {
					t.Errorf("%s: writes a text without a sentence", name)
				}
			case *ast.CallExpr:
				checkCall(t, name, n, sentences)
			}
			return true
		})
	}

	for v := range sentences {
		if !used[v] {
			t.Errorf("nobody says %s", v)
		}
	}
}

// checkCall compares the values of a call with the verbs of the sentence in it. Values that come as
// a list are not counted.
func checkCall(t *testing.T, file string, call *ast.CallExpr, sentences map[string]Sentence) {
	t.Helper()
	if call.Ellipsis.IsValid() {
		return
	}

	check := func(e ast.Expr, given int) {
		s, is := sentences[sentenceOf(e)]
		want := len(s.Verbs())
		switch {
		case !is:
			return
		case nameOf(call.Fun) == "want": // which describes the value itself
			want--
		// a CronError has its first values itself
		case nameOf(call.Fun) == "wrong" && strings.HasPrefix(s.code, "cron_"):
			want -= 3
		case nameOf(call.Fun) == "meets":
			return
		}
		if given != want {
			t.Errorf("%s: %s gets %d values of %d", file, sentenceOf(e), given, want)
		}
	}

	if sel, is := call.Fun.(*ast.SelectorExpr); is && sel.Sel.Name == "Of" {
		check(sel.X, len(call.Args))
	}

	for i, a := range call.Args {
		check(a, len(call.Args)-i-1)
	}
}

// sentenceOf returns the variable of a sentence, with or without advice; "" for any other
// expression.
func sentenceOf(e ast.Expr) string {
	if call, is := e.(*ast.CallExpr); is && nameOf(call.Fun) == "Advise" {
		return sentenceOf(call.Fun.(*ast.SelectorExpr).X)
	}
	if s, is := e.(*ast.SelectorExpr); is && nameOf(s.X) == "problem" {
		return s.Sel.Name
	}
	return ""
}

func nameOf(e ast.Expr) string {
	switch e := e.(type) {
	case *ast.Ident:
		return e.Name
	case *ast.SelectorExpr:
		return e.Sel.Name
	}
	return ""
}

// textOf is a text in the source, which may have several parts.
func textOf(t *testing.T, e ast.Expr) string {
	t.Helper()
	switch e := e.(type) {
	case *ast.BasicLit:
		text, err := strconv.Unquote(e.Value)
		if err != nil {
			t.Fatal(err)
		}
		return text
	case *ast.BinaryExpr:
		return textOf(t, e.X) + textOf(t, e.Y)
	}

	t.Fatalf("%T is no text", e)
	return ""
}

func parse(t *testing.T, name string) *ast.File {
	t.Helper()
	f, err := parser.ParseFile(token.NewFileSet(), name, nil, parser.SkipObjectResolution)
	if err != nil {
		t.Fatal(err)
	}
	return f
}

// sources lists the Go files of the packages that say something, but for tests.
func sources(t *testing.T) (files []string) {
	t.Helper()
	for _, dir := range []string{"job", "schedule", "api", "cli", "internal", "client", "node", "execute"} {
		err := filepath.WalkDir(filepath.Join("..", "..", dir), func(path string, d fs.DirEntry, err error) error {
			if err == nil && strings.HasSuffix(path, ".go") && !strings.HasSuffix(path, "_test.go") &&
				filepath.Base(filepath.Dir(path)) != "problem" {
				files = append(files, path)
			}
			return err
		})
		if err != nil {
			t.Fatal(err)
		}
	}

	return files
}
