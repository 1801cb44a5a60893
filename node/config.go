package node

import (
	"cmp"
	"context"
	"errors"
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
	"go-crontab/sql"
)

// Config configures a node. Zero fields get their defaults.
type Config struct {
	DSN string // in the format of github.com/go-sql-driver/mysql; names a migrated schema
	// Name is unique in the cluster: a node does not join while another node with the same name is
	// alive. Default: the host name.
	Name    string
	Address string // where its API is reachable, for people
	Version string
	// PublicURL is where people reach the console, such as https://cron.example.com; "": alerts have
	// no links.
	PublicURL string
	// Notes reports what only this node can see: its certificate and its identity provider. It is
	// called once a minute; nil: nothing.
	Notes func(context.Context) []sql.NodeNote

	Expiry time.Duration // see session.NewTimings; the same on all nodes
	// Slots bounds the attempts that execute at once. An HTTP request takes a sixteenth of a slot.
	// Default: 64 per processor.
	Slots        int
	LookAhead    time.Duration     // how long before its due time a run is claimed at most; default 10 s
	Cap          int               // bound on the prepared runs; default 100,000
	Grace        time.Duration     // time that a drain gives commands before it kills them; default 8 s
	Labels       map[string]string // for the selectors of jobs, in addition to node, os and arch
	HandlersOnly bool              // the node takes only jobs for its handlers: no commands and no HTTP jobs

	// NoGuard turns off the helper process that watches over this one (only Linux has one).
	// Without the guard, commands live on if this process is killed, crashes, or is stopped for
	// longer than its lease. Their runs still end lost, and later runs may start on other nodes
	// while these commands live on. Also, peers take over only when the session expires, and not
	// within two seconds. Set NoGuard for a program that is stopped in a debugger while a handler
	// runs. With a guard, the guard would kill the program when the lease is over.
	NoGuard bool

	// AuditKept is the age at which audit lines are removed; default 400 days, negative: never.
	AuditKept time.Duration

	Traced func(execute.Executor) execute.Executor // wraps the executor, see package trace; nil: not wrapped

	// AuditLog copies all audit lines of the cluster to the machine's syslog ("syslog") or to the
	// file with this path, one line of JSON each; "": no copy. Its position is kept in SpoolDir.
	AuditLog string

	// MetricsJobs bounds the jobs with metrics of their own. A job gets its own metrics by the
	// label metrics. Default 100; negative: none.
	MetricsJobs int

	// Archive is a bash command that receives records as lines of JSON before they are removed; "":
	// none.
	Archive string
	// ArchiveTimeout bounds the command for a batch; default DefaultArchiveTimeout, at most 4
	// minutes.
	ArchiveTimeout time.Duration

	// SpoolDir is a folder for outcomes that cannot be written because MySQL is unreachable when
	// the node stops. Nodes must not share it. If it is "", such outcomes are lost.
	SpoolDir string

	// RunAs is the user for commands of jobs that name no user, see execute.Config; "": the node's
	// own user.
	RunAs string
	// RunAsAllow are the users that jobs may name. If it is empty, jobs may name only RunAs. If
	// RunAs is also empty, they may name any user that this process may become.
	RunAsAllow []string
	NewPrivs   bool // commands may gain rights through setuid programs and file capabilities

	// Cgroup is the folder of a cgroup v2 for commands with limits; "": the cgroup of this
	// process, if it was delegated.
	Cgroup string

	// HTTPAllow lists what HTTP jobs may call in addition to public addresses, see
	// execute.HTTPConfig.
	HTTPAllow []string
	// SecretsDir holds the node's own secrets, with a folder for each app; "": secrets are only in
	// the environment.
	SecretsDir string
	SecretKeys *secret.Ring // opens the cluster's secrets; nil: jobs that name one fail here
	// SecretGrants allow apps to use the node's own secrets in the environment, as NAME=APP|APP.
	SecretGrants []string
	Handlers     *execute.Handlers // the handlers that jobs may name; Handle adds to it
	Executor     execute.Executor  // default: an executor of commands, HTTP jobs and handlers
	// The handler of Log must never block: a node that waits for its log starts nothing. See
	// NewLogWriter.
	Log *slog.Logger
}

// LogWriter is a writer for the handler of a log. Write never blocks: while the reader of the log
// is blocked, up to 1 MiB of lines wait in memory. Further lines are dropped and counted in
// gocrontab_log_lines_dropped_total. Call Flush at the end of the program.
type LogWriter = logqueue.Writer

// NewLogWriter returns a LogWriter, for example for Config.Log:
//
//	slog.New(slog.NewJSONHandler(node.NewLogWriter(os.Stderr), nil))
func NewLogWriter(target io.Writer) *LogWriter {
	w := logqueue.New(target, logqueue.Room)
	w.Notice = func(n int) []byte {
		return fmt.Appendf(nil, "%d log lines were dropped because the reader of the log was blocked\n", n)
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
	SlotsPerCPU        = 64

	maxSlots = 1_000_000 // more than any machine can run; the column in MySQL holds 2,000 times as many

	// DefaultArchiveTimeout bounds the archive command for a batch of records.
	DefaultArchiveTimeout = result.ArchiveTimeout

	// This is a little less than the lease of the retention chore.
	maxArchiveTimeout = 4 * time.Minute
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
		c.Slots = SlotsPerCPU * runtime.NumCPU()
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
		return fmt.Errorf("archive timeout: %s, want %s to %s",
			job.Duration(c.ArchiveTimeout), job.Duration(time.Second), job.Duration(maxArchiveTimeout))
	}
	if c.AuditKept == 0 {
		c.AuditKept = DefaultAuditKept
	}

	if c.Log == nil {
		c.Log = slog.Default()
	}
	return c.check()
}

// check validates the settings that have a range.
func (c *Config) check() error {
	switch {
	case c.Slots < 1 || c.Slots > maxSlots:
		return fmt.Errorf("slots: %d, want 1 to %d", c.Slots, maxSlots)
	case c.Cap < 1:
		return fmt.Errorf("prepared cap: %d, want 1 or more", c.Cap)
	case c.Grace < 0:
		return fmt.Errorf("drain grace: %s, want 0 or more", c.Grace)
	// The cluster stores whole milliseconds, so a node with fractions would not recognize its own
	// setting.
	case c.Expiry%time.Millisecond != 0:
		return fmt.Errorf("session expiry: %s, want whole milliseconds", c.Expiry)
	case c.LookAhead < time.Second || c.LookAhead > 15*time.Second:
		return fmt.Errorf("look-ahead: %s, want 1s to 15s", c.LookAhead)
	}

	return nil
}

// CheckConfig reports everything that is wrong with a configuration. Unlike New, it opens and
// changes nothing: no database, spool, audit log or cgroup.
func CheckConfig(cfg Config) error {
	wrong := cfg.defaults()
	_, expiry := session.NewTimings(cmp.Or(cfg.Expiry, session.DefaultExpiry))
	users := execute.CheckShell(execute.Config{RunAs: cfg.RunAs, Allow: cfg.RunAsAllow, NewPrivs: cfg.NewPrivs})
	_, targets := execute.NewHTTP(execute.HTTPConfig{Allow: cfg.HTTPAllow})
	_, grants := execute.ParseGrants(cfg.SecretGrants)
	if grants != nil {
		grants = fmt.Errorf("--grant-secret %w", grants)
	}
	return errors.Join(wrong, expiry, users, targets, grants)
}

// LoadSecretKeys reads the cluster's secret keys from a file, for Config.SecretKeys. It is the
// file that serve gets as --secret-key-file.
func LoadSecretKeys(file string) (*secret.Ring, error) {
	keys, _, err := secret.Load(file)
	return keys, err
}
