package guard

import (
	"log/slog"
	"os"
	"strings"
	"time"

	"go-crontab/internal/failpoint"
)

// variable is set for a process of this program that must be a guard. Its value is the guard's
// stage.
const variable = "GOCRONTAB_BE_GUARD"

// The stages of a guard's life.
const (
	stageWatch = "watch" // from the start, with as little of the program as possible
	stageBury  = "bury"  // after it has executed the program again, with the packages for MySQL
)

// Names of the process. A kill of all `go-crontab` by name must not hit the guard.
const (
	comm    = "crontab-guard"
	selfExe = "/proc/self/exe"
)

// environ returns the environment of a guard. It has settings for little memory and one CPU, and
// those variables of this process that a connection to MySQL may need.
func environ(stage string) []string {
	env := []string{variable + "=" + stage, "GOMAXPROCS=1", "GOGC=50"}
	for _, pair := range os.Environ() {
		switch name, _, _ := strings.Cut(pair, "="); name {
		case "GODEBUG", "JOURNAL_STREAM", "LD_LIBRARY_PATH", "LOCALDOMAIN", "RES_OPTIONS", "SSL_CERT_DIR", "SSL_CERT_FILE":
			env = append(env, pair)
		default:
			if failpoint.Reads(name) {
				env = append(env, pair)
			}
		}
	}

	return env
}

// Dead is a session whose processes are all dead. OnBury passes it to bury, which deletes the
// session's row.
type Dead struct {
	Session  string
	Node     string
	DSN      string
	Expiry   time.Duration
	Patience time.Duration // time after which further tries are useless
	Log      *slog.Logger
}
