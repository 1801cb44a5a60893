package cli

import (
	"fmt"
	"os"
	"regexp"
	"slices"
	"strings"

	"go-crontab/api"
)

// serveVariables and serveSecrets are the flags of serve that can be given as variables. Of a secret, a variable that ends
// in _FILE may name a file that holds it.
var (
	serveVariables = slices.Concat(serveFlags, accessFlags, folderFlags)
	serveSecrets   = []string{"dsn", oidcSecret}
)

// clientVariables and clientSecrets are the flags of all commands that ask a node.
var (
	clientVariables = []string{"server", "context"}
	clientSecrets   = []string{"token"}
)

// moreVariables are variables that no flag of ours stands for, without the prefix: the secret key, and what a job's command or an
// archive command is told, which may itself run this program.
var moreVariables = []string{
	"SECRET_KEY", "SECRET_KEY_FILE", "JOB", "APP", "DUE", "ATTEMPT", "LAUNCH", "SEAT", "RECORDS",
}

// families begin names of variables, without the prefix: the values of secrets; a guard and a node of bench, which are this
// program once more; and what building and testing this program reads.
var families = []string{
	"SECRET_", "BE_GUARD", "BENCH_", "FAILPOINT",
	"TEST_", "FAULTS_", "POISON_", "MYSQLD", "ENGINES", "TRACES", "LONG_SEARCH", "DEBIAN_MIRROR", "UBUNTU_MIRROR",
	"EXAMPLE",
}

// linked are variables that Kubernetes and Docker make of a service that is called gocrontab or gocrontab-…, without the
// prefix.
var linked = regexp.MustCompile(`^(\w+_)?(SERVICE_HOST|SERVICE_PORT(_\w+)?|PORT_\d+_(TCP|UDP|SCTP)(_(PROTO|PORT|ADDR))?)$`)

// namesOf are the variables of flags.
func namesOf(flags, secrets []string) (names []string) {
	for _, flag := range flags {
		names = append(names, envName(flag))
	}
	for _, flag := range secrets {
		names = append(names, envName(flag), envName(flag)+"_FILE")
	}
	return names
}

// variables are all that some command reads or makes, but for families.
func variables() []string {
	names := slices.Concat(namesOf(serveVariables, serveSecrets), namesOf(clientVariables, clientSecrets))
	for _, name := range moreVariables {
		names = append(names, envPrefix+name)
	}
	return names
}

// isVariable reports whether a variable means something to this program, or is no attempt to set anything of it.
func isVariable(name, value string) bool {
	rest, ours := strings.CutPrefix(name, envPrefix)
	switch {
	case !ours || value == "" || slices.Contains(variables(), name):
		return true
	case linked.MatchString(rest):
		return true
	case strings.HasSuffix(rest, "PORT") && strings.Contains(value, "://"): // Kubernetes, too: tcp://10.0.0.1:8610
		return true
	}
	return slices.ContainsFunc(families, func(family string) bool { return strings.HasPrefix(rest, family) })
}

// checkVariables refuses variables that look like settings and are none: a misspelt one would be ignored.
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
		hint: "to see which there are: " + program() + " help environment",
	}
}

// checkClientVariables refuses misspelt variables that say which node is asked, and by whom. Other programs of the same
// environment may have variables with our prefix, so that only a near miss is an error.
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

// nearestVariable is the variable that somebody probably meant, or "".
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
