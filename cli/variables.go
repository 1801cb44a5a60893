package cli

import (
	"fmt"
	"os"
	"regexp"
	"slices"
	"strings"

	"go-crontab/api"
)

// serveVariables and serveSecrets are the flags of serve that also have a variable. For a secret, the
// variable with the suffix _FILE may name a file with the value. Systems without serve know them, too.
var (
	serveVariables = []string{
		"listen", "probe-listen", "advertise", "node", "session-expiry", "slots", "look-ahead", "drain-grace",
		"state-dir", "label", "run-as", "run-as-allow", "allow-new-privs", "cgroup", "no-guard", "http-allow",
		"secrets-dir", "grant-secret", "archive-command", "archive-timeout", "audit-log", "log-level", "log-format",
		"tls-cert", "tls-key", "insecure-http", "host", "public-url", "login-life", "rate-limit", "metrics",
		"metrics-jobs", "oidc-issuer", "oidc-client-id", "oidc-recheck", "oidc-scope", "oidc-groups-claim",
		"oidc-name-claim", "oidc-role", "apply-dir", "apply-prune-app", "apply-prune-label",
	}
	serveSecrets = []string{"dsn", oidcSecret}
)

// oidcSecret is the flag with the secret shared with the identity provider.
const oidcSecret = "oidc-client-secret"

// clientVariables and clientSecrets are the flags that all commands that call a node have.
var (
	clientVariables = []string{"server", "ca-cert", "context"}
	clientSecrets   = []string{"token"}
)

// moreVariables are variables that have no flag, listed without the prefix. They are the secret
// key, and the variables of job commands and archive commands. These commands may run this program.
var moreVariables = []string{
	"SECRET_KEY", "SECRET_KEY_FILE", "JOB", "APP", "DUE", "ATTEMPT", "LAUNCH", "SEAT", "RECORDS",
}

// families are prefixes of further variables, listed without the common prefix. They are secret
// values, settings of the guard and of bench nodes, which are child processes of this program, and
// settings for building and testing this program.
var families = []string{
	"SECRET_", "BE_GUARD", "BENCH_", "FAILPOINT",
	"TEST_", "FAULTS_", "POISON_", "MYSQLD", "ENGINES", "TRACES", "LONG_SEARCH", "DEBIAN_MIRROR", "UBUNTU_MIRROR",
	"EXAMPLE",
}

// linked matches variables that Kubernetes and Docker create for a service called gocrontab or
// gocrontab-…. The prefix is already cut off.
var linked = regexp.MustCompile(`^(\w+_)?(SERVICE_HOST|SERVICE_PORT(_\w+)?|PORT_\d+_(TCP|UDP|SCTP)(_(PROTO|PORT|ADDR))?)$`)

// namesOf returns the variables of flags.
func namesOf(flags, secrets []string) (names []string) {
	for _, flag := range flags {
		names = append(names, envName(flag))
	}
	for _, flag := range secrets {
		names = append(names, envName(flag), envName(flag)+"_FILE")
	}
	return names
}

// variables returns all known variables, except for families.
func variables() []string {
	names := slices.Concat(namesOf(serveVariables, serveSecrets), namesOf(clientVariables, clientSecrets))
	for _, name := range moreVariables {
		names = append(names, envPrefix+name)
	}
	return names
}

// isVariable reports whether a variable is known, or is clearly no setting of this program.
func isVariable(name, value string) bool {
	rest, ours := strings.CutPrefix(name, envPrefix)
	switch {
	case !ours || value == "" || slices.Contains(variables(), name):
		return true
	case linked.MatchString(rest):
		return true
	case strings.HasSuffix(rest, "PORT") && strings.Contains(value, "://"): // Kubernetes again: tcp://10.0.0.1:8610
		return true
	}
	return slices.ContainsFunc(families, func(family string) bool { return strings.HasPrefix(rest, family) })
}

// checkVariables refuses unknown variables that look like settings. Otherwise a misspelt setting
// would be ignored.
func checkVariables() error {
	var wrong []string
	for _, pair := range os.Environ() {
		name, value, _ := strings.Cut(pair, "=")
		if isVariable(name, value) {
			continue
		}
		said := name + " is not a setting"
		if near := nearestVariable(name, variables()); near != "" {
			said += "; did you mean " + near + "?"
		}
		wrong = append(wrong, said)
	}

	if wrong == nil {
		return nil
	}

	slices.Sort(wrong)
	return &exitError{
		code: exitUsage, err: fmt.Errorf("%s", strings.Join(wrong, "\n")),
		hint: "to list all variables:  " + program() + " help environment",
	}
}

// checkClientVariables refuses misspelt variables for the server and the token. Other programs in
// the same environment may use variables with our prefix. So a variable is refused only if its name
// is close to one of ours.
func checkClientVariables() error {
	ours := namesOf(clientVariables, clientSecrets)
	for _, pair := range os.Environ() {
		name, value, _ := strings.Cut(pair, "=")
		if isVariable(name, value) {
			continue
		}
		if near := nearestVariable(name, ours); near != "" {
			return usageError("%s is not a setting; did you mean %s?", name, near)
		}
	}

	return nil
}

// nearestVariable returns the variable that the user probably meant. It returns "" if none is near.
func nearestVariable(name string, known []string) string {
	rest := strings.TrimPrefix(name, envPrefix)
	var names []string
	for _, v := range known {
		names = append(names, strings.ToLower(strings.TrimPrefix(v, envPrefix)))
	}
	near := api.Nearest(rest, names)
	if near == "" {
		return ""
	}
	return envPrefix + strings.ToUpper(near)
}
