package page

import (
	"io/fs"
	"os"
	"path"
	"regexp"
	"slices"
	"strings"
	"testing"
)

// tsImport matches the path of a relative import: static or dynamic, of values or of types.
var tsImport = regexp.MustCompile(`(?:\bfrom |\bimport\(|^import )'(\.\.?/[^']+)'`)

// TestNoImportCycles holds that no module of the console imports itself, even indirectly.
func TestNoImportCycles(t *testing.T) {
	t.Parallel()

	// Read the imports of each module.
	files, imports := os.DirFS("src"), map[string][]string{}
	err := fs.WalkDir(files, ".", func(name string, _ fs.DirEntry, err error) error {
		if ext := path.Ext(name); err != nil || ext != ".ts" && ext != ".tsx" {
			return err
		}
		text, err := fs.ReadFile(files, name)
		module := strings.TrimSuffix(name, path.Ext(name))
		imports[module] = nil
		for line := range strings.Lines(string(text)) {
			for _, m := range tsImport.FindAllStringSubmatch(line, -1) {
				imports[module] = append(imports[module], path.Join(path.Dir(name), m[1]))
			}
		}
		return err
	})
	if err != nil || len(imports) < 30 {
		t.Fatalf("found %d modules: %v", len(imports), err)
	}

	// Follow them, depth first.
	trail, done := []string{}, map[string]bool{}
	var visit func(string)
	visit = func(module string) {
		if at := slices.Index(trail, module); at >= 0 {
			t.Errorf("import cycle: %s", strings.Join(append(slices.Clone(trail[at:]), module), " → "))
			return
		}
		if done[module] {
			return
		}
		trail = append(trail, module)
		for _, next := range imports[module] {
			visit(next)
		}
		trail, done[module] = trail[:len(trail)-1], true
	}
	for module := range imports {
		visit(module)
	}
}
