package session

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// TestZonesFrom: the release is named if the data contains it.
func TestZonesFrom(t *testing.T) {
	t.Parallel()
	folder := func(files map[string]string) string {
		dir := t.TempDir()
		for name, text := range files {
			if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o600); err != nil {
				t.Fatal(err)
			}
		}
		return dir
	}

	for want, folders := range map[string][]string{
		"2025b": {
			"", "/nowhere", folder(map[string]string{"tzdata.zi": "# version 2025b\n# This zic input file\n"}),
		},
		"2025c": {
			folder(map[string]string{"+VERSION": "2025c\n"}),
			folder(map[string]string{"tzdata.zi": "# version 2025b\n"}),
		},
		"the machine's":  {folder(map[string]string{"tzdata.zi": "R a 1 2\n"})},
		"that of go1.":   {"", "/nowhere"},
		"the machine's ": {folder(nil)},
	} {
		if got := zonesFrom(folders); !strings.HasPrefix(got, strings.TrimSpace(want)) {
			t.Errorf("%q: got %q, want %q", folders, got, want)
		}
	}
}
