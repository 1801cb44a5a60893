package execute

import (
	"fmt"
	"os"
	"os/user"
	"slices"
	"strconv"
	"strings"

	"github.com/google/uuid"
	"golang.org/x/sys/unix"

	"go-crontab/job"
)

// reserved is the prefix of variables that commands do not inherit: the daemon's own settings, its
// secrets among them, and the variables that describe a run.
const reserved = job.ReservedEnv

const defaultPath = "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"

// inherited are the variables that a command inherits from the daemon. All others are dropped, as
// with cron and unlike in a shell. Even LD_* and BASH_ENV are dropped, because they would change
// what runs.
var inherited = []string{"PATH", "HOME", "USER", "LOGNAME", "LANG", "LC_ALL", "TZ"}

// environ returns the variables of every command: the inherited ones, cron's defaults for missing
// ones, and extra. If extra names a variable twice, the later entry wins.
func environ(bash string, extra []string) ([]string, error) {
	env := map[string]string{"PATH": defaultPath, "SHELL": bash}
	if u, err := user.Current(); err == nil {
		env["HOME"], env["USER"], env["LOGNAME"] = u.HomeDir, u.Username, u.Username
	}
	for _, name := range inherited {
		if v := os.Getenv(name); v != "" {
			env[name] = v
		}
	}

	for _, pair := range extra {
		name, value, ok := strings.Cut(pair, "=")
		if !ok || name == "" || strings.ContainsRune(pair, 0) || strings.HasPrefix(name, reserved) {
			return nil, fmt.Errorf("environment: variable %q: want NAME=value, and no name that begins with %s",
				name, reserved)
		}
		env[name] = value
	}

	var pairs []string
	for name, value := range env {
		if value != "" {
			pairs = append(pairs, name+"="+value)
		}
	}
	slices.Sort(pairs)
	return pairs, nil
}

// variable returns the name in NAME=value.
func variable(pair string) string {
	name, _, _ := strings.Cut(pair, "=")
	return name
}

// Marker returns the beginning of an environment entry that all commands of a session have. The
// run's id follows it. By this entry the guard finds processes that left their groups.
func Marker(session uuid.UUID) string { return reserved + "SEAT=" + session.String() + "-" }

// about appends the variables that describe the attempt. The due instant is in UTC with microseconds.
func about(a Attempt, env []string) []string {
	if len(a.Params) > 0 {
		env = withParams(a, env)
	}
	if a.TraceParent != "" {
		env = append(slices.Clip(env), "TRACEPARENT="+a.TraceParent)
		if a.TraceState != "" {
			env = append(env, "TRACESTATE="+a.TraceState)
		}
	}
	if a.Given != nil && a.Given.Upstream != nil {
		env = append(slices.Clip(env),
			reserved+"UPSTREAM_RUN="+job.RunID(a.Given.Upstream.Run),
			reserved+"UPSTREAM_OUTCOME="+a.Given.Upstream.Outcome.String(),
		)
	}

	last := ""
	if due := a.lastSuccess(); due != 0 {
		last = due.String()
	}
	return append(slices.Clip(env),
		reserved+"JOB="+a.Job,
		reserved+"APP="+a.App,
		reserved+"DUE="+job.MicrosOf(a.Due).String(),
		reserved+"LAST_SUCCESS="+last,
		reserved+"SCHEDULED="+a.Given.ScheduledAt(job.MicrosOf(a.Due)).String(),
		reserved+"ATTEMPT="+strconv.Itoa(a.Attempt),
		reserved+"LAUNCH="+a.Launch.String(),
		Marker(a.Session)+job.RunID(a.Launch.Run),
	)
}

// seal marks every open descriptor above 2 close-on-exec. Go marks its own descriptors, but
// descriptors of the parent or of a C library may be open, and a command must not get them. seal
// skips descriptors that it cannot list or mark.
func seal() {
	open, err := os.ReadDir("/dev/fd")
	if err != nil {
		return
	}
	for _, e := range open {
		if fd, err := strconv.Atoi(e.Name()); err == nil && fd > 2 {
			unix.CloseOnExec(fd)
		}
	}
}
