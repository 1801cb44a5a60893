package cli

import (
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/spf13/pflag"
)

// Every flag of serve has a variable, and every variable of serve a flag.
func TestVariablesAreTheFlagsOfServe(t *testing.T) {
	t.Parallel()

	var flags []string
	serveCommand(&console{}).Flags().VisitAll(func(f *pflag.Flag) {
		if !f.Hidden && f.Name != secretKeyFlag && f.Name != checkFlag {
			flags = append(flags, f.Name)
		}
	})

	slices.Sort(flags)

	if got := slices.Sorted(slices.Values(slices.Concat(serveVariables, serveSecrets))); !slices.Equal(got, flags) {
		t.Errorf("variables: %v\nflags: %v", got, flags)
	}
	if !slices.Contains(variables(), envName(secretKeyFlag)) {
		t.Errorf("%s is not known", envName(secretKeyFlag))
	}
}

func TestKnownVariables(t *testing.T) {
	t.Parallel()

	for pair, known := range map[string]bool{
		"PATH=/bin":                                      true,
		"GOCRONTAB_SLOTS=5":                              true,
		"GOCRONTAB_SLOT=5":                               false,
		"GOCRONTAB_SLOT=":                                true, // counts as unset
		"GOCRONTAB_LABELS=a=b":                           true,
		"GOCRONTAB_LABEL=a=b":                            false,
		"GOCRONTAB_DSN_FILE=/dsn":                        true,
		"GOCRONTAB_TLS_CERT_FILE=/cert":                  false,
		"GOCRONTAB_SECRET_SHOP_HOOK=x":                   true,
		"GOCRONTAB_SECRETS_DIRS=/x":                      false,
		"GOCRONTAB_LAUNCH=6f9619ff":                      true, // in a job's command
		"GOCRONTAB_MYSQLD=/usr/sbin/mysqld":              true,
		"GOCRONTAB_TEST_LOG=1":                           true,
		"GOCRONTAB_SERVICE_HOST=10.0.0.1":                true,
		"GOCRONTAB_API_SERVICE_PORT_HTTPS=443":           true,
		"GOCRONTAB_PORT=tcp://10.0.0.1:8610":             true,
		"GOCRONTAB_PORT_8610_TCP_ADDR=10.0.0.1":          true,
		"GOCRONTAB_PORT=8610":                            false,
		"GOCRONTAB_RATE=9":                               false,
		"GO_CRONTAB_SERVICE_HOST=10.0.0.1":               true,
		"GOCRONTAB_NODES_PORT_8610_TCP=tcp://10.0.0.1:1": true,
	} {
		name, value, _ := strings.Cut(pair, "=")
		if got := isVariable(name, value); got != known {
			t.Errorf("%s: known %v, want %v", pair, got, known)
		}
	}
}

// A misspelt variable ends serve, dev and migrate. A misspelt server ends any command.
func TestMisspeltVariables(t *testing.T) {
	t.Parallel()

	for _, c := range []struct{ variable, line, want string }{
		{
			"GOCRONTAB_SESION_EXPIRY=5s", "serve",
			"GOCRONTAB_SESION_EXPIRY is not a setting; did you mean GOCRONTAB_SESSION_EXPIRY?",
		},
		{"GOCRONTAB_SLOT=5", "serve", "did you mean GOCRONTAB_SLOTS?"},
		{"GOCRONTAB_SLOT=5", "dev", "did you mean GOCRONTAB_SLOTS?"},
		{"GOCRONTAB_DSN_FIEL=x", "migrate", "did you mean GOCRONTAB_DSN_FILE?"},
		{"GOCRONTAB_SEVER=http://a:1", "job ls", "did you mean GOCRONTAB_SERVER?"},
		{"GOCRONTAB_TOKENFILE=/x", "job ls", "did you mean GOCRONTAB_TOKEN_FILE?"},
	} {
		code, out := run(t, []string{c.variable, "GOCRONTAB_DSN=u@tcp(127.0.0.1:1)/x"}, strings.Fields(c.line)...)
		if code != exitUsage || !strings.Contains(out, c.want) {
			t.Errorf("%s %s: code %d, %s; want code 2 and %q", c.variable, c.line, code, out, c.want)
		}
	}

	if code, out := run(t, []string{"GOCRONTAB_VERSION=1.2"}, "cron", "next", "@daily"); code != 0 {
		t.Errorf("a variable of another program: code %d, %s", code, out)
	}
}

// TestUngrantedSecretIsNamed: the node warns at its start about a secret without a grant, and not
// about a granted one.
func TestUngrantedSecretIsNamed(t *testing.T) {
	t.Parallel()

	p := start(t, []string{
		"GOCRONTAB_DSN=" + migrated(t), "GOCRONTAB_SECRET_SHOP_HOOK=a", "GOCRONTAB_SECRET_SHPO_HOOK=b",
		"GOCRONTAB_SECRET_NONE=",
	},
		"serve", "--node", "one", "--listen", "127.0.0.1:0", "--session-expiry", "5s", "--state-dir", t.TempDir(),
		"--grant-secret", "SHOP_HOOK=shop")

	p.says(`"level":"WARN","msg":"no job may use this secret of the node[^}]*"variable":"(GOCRONTAB_SECRET_SHPO_HOOK)"`,
		20*time.Second)
	p.says(`"api":"(http://[^"]+)"`, 20*time.Second)
	if n := strings.Count(p.out.String(), "no job may use this secret"); n != 1 {
		t.Errorf("%d secrets are named\n%s", n, p.out.String())
	}
}
