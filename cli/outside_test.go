package cli

import (
	"io"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"testing"
	"time"
)

// TestOutsideClient generates a client from the node's OpenAPI description with a common generator,
// and runs a program that uses it: see tools/outside. A new operation must be added to that
// program.
func TestOutsideClient(t *testing.T) {
	t.Parallel()

	if testing.Short() {
		t.Skip("it builds a generator")
	}

	dir := t.TempDir()
	key := filepath.Join(dir, "key")
	_, text := run(t, nil, "secret", "keygen")
	if err := os.WriteFile(key, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}

	s := serve(t, migrated(t), "web-1", "--"+secretKeyFlag, key).ready()
	resp, err := http.Get(s.url + "/openapi.json")
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()

	document, err := io.ReadAll(resp.Body)
	if err != nil {
		t.Fatal(err)
	}

	outside := filepath.Join(dir, "outside")
	if err := os.CopyFS(outside, os.DirFS("../tools/outside")); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(outside, "openapi.json"), document, 0o600); err != nil {
		t.Fatal(err)
	}

	for _, args := range [][]string{
		{"tool", "oapi-codegen", "-config", "client.yaml", "-o", "client/client.gen.go", "openapi.json"},
		{"vet", "./..."},
		{"run", "./drive", "openapi.json"},
	} {
		began := time.Now()
		cmd := exec.CommandContext(t.Context(), "go", args...)
		cmd.Dir, cmd.Env = outside, append(os.Environ(), s.env()...)
		if out, err := cmd.CombinedOutput(); err != nil {
			t.Fatalf("go %q: %v\n%s", args, err, out)
		}
		t.Logf("go %s: %s", args[0], time.Since(began).Round(time.Second))
	}
}
