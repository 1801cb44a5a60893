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

// reserved begins the names of the daemon's own settings, secrets among them, and of what a command is told.
const reserved = job.ReservedEnv

const defaultPath = "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"

// inherited are the variables that a command takes over from the daemon, where it has them. Like cron, and unlike a
// shell, nothing else is: not even LD_* or BASH_ENV, which would change what runs.
var inherited = []string{"PATH", "HOME", "USER", "LOGNAME", "LANG", "LC_ALL", "TZ"}

// environ returns what every command of a shell gets: inherited, with the defaults that cron has for what is missing,
// and then extra, of which the later wins.
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
			return nil, fmt.Errorf("environment: variable %q: want NAME=value, and no name that begins with %s", name, reserved)
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

// variable is the name in NAME=value.
func variable(pair string) string {
	name, _, _ := strings.Cut(pair, "=")
	return name
}

// Marker is what the environment of each command of a session has before the run's id: by it the guard finds what
// commands have left outside of their groups.
func Marker(session uuid.UUID) string { return reserved + "SEAT=" + session.String() + "-" }

// about appends what a command may know of its attempt. The due instant is UTC with microseconds.
func about(a Attempt, env []string) []string {
	if a.TraceParent != "" {
		env = append(slices.Clip(env), "TRACEPARENT="+a.TraceParent)
		if a.TraceState != "" {
			env = append(env, "TRACESTATE="+a.TraceState)
		}
	}
	return append(slices.Clip(env),
		reserved+"JOB="+a.Job,
		reserved+"APP="+a.App,
		reserved+"DUE="+job.MicrosOf(a.Due).String(),
		reserved+"ATTEMPT="+strconv.Itoa(a.Attempt),
		reserved+"LAUNCH="+a.Launch.String(),
		Marker(a.Session)+job.RunID(a.Launch.Run),
	)
}

// seal marks every descriptor that this process was born with close-on-exec. Go opens its own that way, but the
// parent of a daemon, or a C library in it, may not have, and a command must not get at them. What cannot be listed
// or marked stays as it is: that is no reason not to run.
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
