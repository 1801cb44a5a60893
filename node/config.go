package node

import (
	"fmt"
	"io"
	"log/slog"
	"os"
	"runtime"
	"time"

	"go-crontab/execute"
	"go-crontab/internal/audit"
	"go-crontab/internal/logqueue"
	"go-crontab/internal/secret"
	"go-crontab/job"
	"go-crontab/result"
	"go-crontab/session"
)

// Config says how a node runs. Zero fields get their defaults.
type Config struct {
	DSN string // of github.com/go-sql-driver/mysql, naming a schema that was migrated
	// unique in the cluster: a node does not join while another with its name lives; default: the
	// host name
	Name    string
	Address string // where its API can be reached, for people
	Version string

	Expiry time.Duration // see session.NewTimings; the same on all nodes
	// attempts at once, and 16 HTTP requests for one of them; default 64 for each processor
	Slots        int
	LookAhead    time.Duration     // how long before it is due a run is claimed; default 10 s
	Cap          int               // runs prepared at once; default 100,000
	Grace        time.Duration     // how long a drain waits for commands before it kills them; default 8 s
	Labels       map[string]string // what selectors of jobs see of it, beside node, os and arch
	HandlersOnly bool              // it takes only jobs that name one of its handlers: no commands, no HTTP jobs

	// NoGuard has no helper process watch over this one (there is none but on Linux). Then, if this
	// process is killed, crashes, or is stopped for longer than its lease, its commands live on,
	// though their runs end lost and the next ones may start elsewhere; and its peers wait until
	// the session expires instead of taking over within two seconds. A program that is stopped in a
	// debugger while a handler executes wants it, or its guard kills it when the lease is over.
	NoGuard bool

	AuditKept time.Duration // lines of the audit that are older are removed; default 400 days, negative: none is

	Traced func(execute.Executor) execute.Executor // stands around the executor, see package trace; nil: nothing does

	// AuditLog has all audit lines of the cluster copied: to the syslog of the machine ("syslog"),
	// or to a file, by its path, one line of JSON each. "": nowhere. The position is kept in
	// SpoolDir.
	AuditLog string

	// how many jobs may have metrics of their own, those with the label metrics; default 100,
	// negative: none
	MetricsJobs int

	// a command, which bash runs, that gets records as lines of JSON before they go; "": none
	Archive        string
	ArchiveTimeout time.Duration // how long it may take for a batch; default DefaultArchiveTimeout, at most 4 minutes

	// where outcomes wait when MySQL is out of reach at a stop, a folder of this node's alone; "":
	// they are lost then
	SpoolDir string

	RunAs string // user that commands run as when their job names none, see execute.Config; "": the node's own
	// users that commands may run as; none: RunAs, without that anybody whom this process may
	// become
	RunAsAllow []string
	NewPrivs   bool // commands may gain rights by setuid programs and by capabilities of files

	Cgroup string // folder of a cgroup v2 for commands with limits; "": the one of this process, if it was delegated

	HTTPAllow  []string     // what HTTP jobs may call beside public addresses, see execute.HTTPConfig
	SecretsDir string       // where the node's own secrets are, in a folder for each app; "": in the environment only
	SecretKeys *secret.Ring // opens the secrets that the cluster keeps; nil: jobs that name one fail here
	// SecretGrants say which apps may use the node's own secrets in the environment, as
	// NAME=APP|APP.
	SecretGrants []string
	Handlers     *execute.Handlers // what jobs call that name a handler; Handle adds to them
	Executor     execute.Executor  // default: one that executes commands, HTTP jobs and handlers
	// its handler must never block: a node that waits for its log starts nothing; see NewLogWriter
	Log *slog.Logger
}

// LogWriter is a writer for the handler of a log. Write never blocks: while nobody reads, lines
// wait in up to 1 MiB of memory, and further ones are dropped and counted as
// gocrontab_log_lines_dropped_total. Call Flush at the program's end.
type LogWriter = logqueue.Writer

// NewLogWriter makes one, such as for Config.Log:
//
//	slog.New(slog.NewJSONHandler(node.NewLogWriter(os.Stderr), nil))
func NewLogWriter(target io.Writer) *LogWriter {
	w := logqueue.New(target, logqueue.Room)
	w.Notice = func(n int) []byte {
		return fmt.Appendf(nil, "%d log lines were dropped while the reader was blocked\n", n)
	}
	return w
}

// Defaults.
const (
	DefaultLookAhead   = 10 * time.Second
	DefaultCap         = 100_000
	DefaultGrace       = 8 * time.Second
	DefaultAuditKept   = audit.Kept
	DefaultMetricsJobs = 100
	slotsPerCPU        = 64

	maxSlots = 1_000_000 // a column takes no more than two thousand times that, and no machine

	// DefaultArchiveTimeout is how long the archive command may take for a batch of records.
	DefaultArchiveTimeout = result.ArchiveTimeout

	maxArchiveTimeout = 4 * time.Minute // the chore of removing records is held a little longer
)

func (c *Config) defaults() error {
	if c.Name == "" {
		host, err := os.Hostname()
		if err != nil {
			return fmt.Errorf("node name: %w", err)
		}
		c.Name = host
	}

	if err := job.ValidateNode(c.Name, ""); err != nil {
		return fmt.Errorf("node %w", err)
	}
	if err := job.CheckNodeLabels(c.Labels); err != nil {
		return fmt.Errorf("labels: %w", err)
	}
	if c.Handlers == nil {
		c.Handlers = new(execute.Handlers)
	}

	if c.Expiry == 0 {
		c.Expiry = session.DefaultExpiry
	}
	if c.Slots == 0 {
		c.Slots = slotsPerCPU * runtime.NumCPU()
	}
	if c.LookAhead == 0 {
		c.LookAhead = DefaultLookAhead
	}

	if c.Cap == 0 {
		c.Cap = DefaultCap
	}
	if c.Grace == 0 {
		c.Grace = DefaultGrace
	}
	if c.MetricsJobs == 0 {
		c.MetricsJobs = DefaultMetricsJobs
	}

	if c.ArchiveTimeout == 0 {
		c.ArchiveTimeout = DefaultArchiveTimeout
	}
	if c.ArchiveTimeout < time.Second || c.ArchiveTimeout > maxArchiveTimeout {
		return fmt.Errorf("archive timeout: %s, want %s to %s", c.ArchiveTimeout, time.Second, maxArchiveTimeout)
	}
	if c.AuditKept == 0 {
		c.AuditKept = DefaultAuditKept
	}

	if c.Log == nil {
		c.Log = slog.Default()
	}
	return c.check()
}

// check says what is wrong with settings that have a range.
func (c *Config) check() error {
	switch {
	case c.Slots < 1 || c.Slots > maxSlots:
		return fmt.Errorf("slots: %d, want 1 to %d", c.Slots, maxSlots)
	case c.Cap < 1:
		return fmt.Errorf("prepared cap: %d, want at least 1", c.Cap)
	case c.Grace < 0:
		return fmt.Errorf("grace of a drain: %s, want 0 or more", c.Grace)
	case c.Expiry%time.Millisecond != 0: // the cluster keeps that many, and would not know its own again
		return fmt.Errorf("session expiry: %s, want whole milliseconds", c.Expiry)
	case c.LookAhead < time.Second || c.LookAhead > 15*time.Second:
		return fmt.Errorf("look-ahead: %s, want 1s to 15s: due times are written down 20s ahead", c.LookAhead)
	}

	return nil
}
