package cli

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"go-crontab/internal/secret"
)

// TestMistypedApps: commands that create something for an app without jobs succeed, with a warning
// that suggests a similar app. Commands that only read end with exit code 3.
func TestMistypedApps(t *testing.T) {
	t.Parallel()

	key := filepath.Join(t.TempDir(), "key")
	if err := os.WriteFile(key, []byte(secret.NewKey()), 0o600); err != nil {
		t.Fatal(err)
	}

	s := serve(t, migrated(t), "one", "--"+secretKeyFlag, key).ready()
	ask := func(line string) result { return s.ask(strings.Fields(line)...) }
	for _, line := range []string{
		"job add a --app shop --every 24h -- true",
		"alert channel set hook --type webhook --url http://127.0.0.1:1/",
	} {
		if got := ask(line); got.code != 0 {
			t.Fatalf("%s: %+v", line, got)
		}
	}

	const hint = `there is no app "shpo"; did you mean "shop"?`
	for _, line := range []string{
		"token create APP-token --role viewer --app APP",
		"secret set APP-secret --from-file " + key + " --app APP",
		"retention set --app APP --age 720h",
		"alert rule set APP-rule --on failed --channel hook --app APP",
		"alert silence add --app APP --until 2h --reason known",
		"app limits APP --jobs 3",
	} {
		if got := ask(strings.ReplaceAll(line, "APP", "shop")); got.code != 0 || strings.Contains(got.err, "warning") {
			t.Errorf("%s, of an app with jobs: %+v", line, got)
		}
		if got := ask(strings.ReplaceAll(line, "APP", "shpo")); got.code != 0 ||
			!strings.Contains(got.err, "warning: "+hint) {
			t.Errorf("%s: %+v", line, got)
		}
	}

	if got := ask("token create far --role viewer --app warehouse"); got.code != 0 ||
		!strings.Contains(got.err, "warning: there is no app \"warehouse\"\n") {
		t.Errorf("nothing is near: %+v", got)
	}

	if got := ask("events --app shpo"); got.code != exitNotFound || !strings.Contains(got.err, hint) ||
		!strings.Contains(got.err, "--absent-ok") {
		t.Errorf("events: %+v", got)
	}
}
