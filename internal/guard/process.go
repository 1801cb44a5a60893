package guard

import (
	"log/slog"
	"os"
	"strings"
	"time"

	"go-crontab/internal/failpoint"
)

// variable makes a process of this program a guard; its value is the stage.
const variable = "GOCRONTAB_BE_GUARD"

// Stages of a guard's life.
const (
	stageWatch = "watch" // from its start on, with as little of the program as possible
	stageBury  = "bury"  // after it has executed itself once more, with what talks to MySQL
)

// Names of the process. Who kills all of `go-crontab` by name does not mean the guard.
const (
	comm    = "crontab-guard"
	selfExe = "/proc/self/exe"
)

// environ is that of a guard: little memory, one processor, and of ours only what opening a connection may need.
func environ(stage string) []string {
	env := []string{variable + "=" + stage, "GOMAXPROCS=1", "GOGC=50"}
	for _, pair := range os.Environ() {
		switch name, _, _ := strings.Cut(pair, "="); name {
		case "GODEBUG", "LD_LIBRARY_PATH", "LOCALDOMAIN", "RES_OPTIONS", "SSL_CERT_DIR", "SSL_CERT_FILE":
			env = append(env, pair)
		default:
			if failpoint.Reads(name) {
				env = append(env, pair)
			}
		}
	}
	return env
}

// Dead is a session of which nothing lives and that is to be buried.
type Dead struct {
	Session  string
	Node     string
	DSN      string
	Expiry   time.Duration
	Patience time.Duration // how long it is worth trying
	Log      *slog.Logger
}
