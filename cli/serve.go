//go:build unix

package cli

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"net/url"
	"os"
	"runtime/debug"
	"slices"
	"strings"
	"syscall"
	"time"

	"go-crontab/api"
	"go-crontab/internal/guard"
	"go-crontab/internal/secret"
	"go-crontab/internal/trace"
	"go-crontab/job"
	"go-crontab/node"
	"go-crontab/session"
	"go-crontab/sql"

	"github.com/spf13/cobra"
)

// serveSettings are the flags of serve.
type serveSettings struct {
	dsn       string
	listen    string
	probes    string // address for probes; empty: none
	advertise string
	address   string // address for others, from advertise and the listener
	node      string
	expiry    time.Duration
	slots     int
	lookAhead time.Duration
	grace     time.Duration
	stateDir  string
	spool     string // the state folder in use; empty: none
	archive   string
	archiving time.Duration
	auditLog  string
	labels    []string
	runAs     string
	allow     []string // users that commands may run as
	newPrivs  bool
	cgroup    string
	noGuard   bool
	httpAllow []string
	secrets   string
	grants    []string // of the node's own secrets
	keyFile   string   // of secrets
	keys      *secret.Ring
	stopOnEOF bool
	access    accessSettings
	folder    folderSettings
	tracer    *trace.Tracer // nil: no tracing
	logging
}

func serveCommand(c *console) *cobra.Command {
	var s serveSettings
	cmd := &cobra.Command{
		Use:   "serve",
		Short: "Run a node: API, scheduler and executor",
		Long: `Run a node of the cluster that is kept in one MySQL schema. Each setting can be given as GOCRONTAB_<FLAG> too, such
as GOCRONTAB_DSN; the flag wins. Another variable that begins so is misspelt, and an error. The node waits for a MySQL that is not up yet.

SIGTERM or SIGINT drains: nothing more is started, what was only prepared is given back, and commands get --drain-grace
to end. A second signal kills them at once. Exit code 4: the node may not join, and the message says why.`,
		Example: `  export GOCRONTAB_DSN='crontab:secret@tcp(db:3306)/crontab'
  go-crontab serve
  GOCRONTAB_DSN_FILE=/run/secrets/dsn go-crontab serve --node web-1`,
		Args: nothing,
		RunE: func(cmd *cobra.Command, _ []string) error {
			if err := checkVariables(); err != nil {
				return err
			}
			if err := takeEnv(cmd.Flags(), serveVariables, serveSecrets); err != nil {
				return err
			}
			return s.serve(c)
		},
	}

	s.flags(cmd)
	return cmd
}

// serveFlags are the flags that also have a variable, except for the DSN.
var serveFlags = []string{
	"listen", "probe-listen", "advertise", "node", "session-expiry", "slots", "look-ahead", "drain-grace", "state-dir",
	"label", "run-as", "run-as-allow", "allow-new-privs", "cgroup", "no-guard", "http-allow", "secrets-dir",
	"grant-secret", "archive-command", "archive-timeout", "audit-log", "log-level", "log-format",
}

func (s *serveSettings) flags(cmd *cobra.Command) {
	flags := cmd.Flags()
	flags.SortFlags = false
	dsnVar(flags, &s.dsn)
	flags.StringVar(&s.listen, "listen", "127.0.0.1:8610",
		"address of the API; one that others can reach needs --tls-cert, or --insecure-http")
	flags.StringVar(&s.probes, "probe-listen", "",
		`address that answers /healthz and /readyz alone, in plain HTTP, for orchestrators: a flood of
the API does not reach it (default none; the API answers both)`)
	flags.StringVar(&s.advertise, "advertise", "",
		`how others reach the API, for the list of nodes and its links: a host, host:port or URL
(default where it listens; for all addresses the host name)`)
	flags.StringVar(&s.node, "node", "", "the node's name (default the host name)")
	flags.StringSliceVar(&s.labels, "label", nil,
		`what selectors of jobs see of the node, beside node, os and arch: zone=a; may be
repeated, or separated by commas (GOCRONTAB_LABELS)`)
	flags.DurationVar(&s.expiry, "session-expiry", session.DefaultExpiry,
		`a node silent for so long is taken for dead, 5s to 10m; the same on all nodes, which must
all be stopped to change it`)
	flags.IntVar(&s.slots, "slots", 0,
		"attempts at once; an HTTP request counts as a sixteenth of one (default 64 for each processor)")
	flags.DurationVar(&s.lookAhead, "look-ahead", node.DefaultLookAhead,
		"how long before they are due runs are claimed, 1s to 15s")
	flags.DurationVar(&s.grace, "drain-grace", node.DefaultGrace, "how long a drain waits for commands")
	flags.StringVar(&s.stateDir, "state-dir", "", `where outcomes wait that could not be written (default
/var/lib/go-crontab/<node> for root, else ~/.local/state/go-crontab/<node>)`)
	flags.StringVar(&s.runAs, "run-as", "",
		`user, or user:group, that commands run as when their job names none; the node must be root,
or have CAP_SETUID, CAP_SETGID and CAP_KILL (default the node's own user: commands can read the database's password then)`)
	flags.StringSliceVar(&s.allow, "run-as-allow", nil,
		`users that commands may run as, by name or id, separated by commas (default the one of --run-as;
without that anybody, if the node may switch). Jobs without a user run as the node's own if there is no --run-as; it must be
listed then`)

	flags.BoolVar(&s.newPrivs, "allow-new-privs", false,
		`let commands gain rights by setuid programs such as sudo, and by capabilities of files
(default they run with no_new_privs)`)
	flags.StringVar(&s.cgroup, "cgroup", "",
		`folder of a cgroup v2 that is the node's alone, for jobs with limits of memory, cpu or pids
(default the node's own, if systemd has delegated it)`)
	flags.BoolVar(&s.noGuard, "no-guard", false,
		`start no helper that kills the commands if this process is killed, crashes or is stopped, and has
others take over at once`)
	flags.StringSliceVar(&s.httpAllow, "http-allow", nil,
		`what HTTP jobs may call beside public addresses: 10.0.0.0/8, [fd00::1]:8080,
intranet.example, *.intranet.example:8080; may be repeated, or separated by commas`)
	flags.StringVar(&s.secrets, "secrets-dir", "",
		`folder with the node's own secrets, for signatures and TLS keys of HTTP jobs: the file
APP/NAME for jobs of an app, */NAME for those of all (default none)`)
	flags.StringSliceVar(&s.grants, "grant-secret", nil,
		`which apps may use the node's own secret in GOCRONTAB_SECRET_<NAME>, as NAME=APP|APP, or
NAME=* for all; may be repeated, or separated by commas (default none may)`)
	flags.StringVar(&s.keyFile, secretKeyFlag, "",
		`file with the key of the cluster's secrets, the same on all nodes; "go-crontab secret keygen"
prints one (default GOCRONTAB_SECRET_KEY, the key itself, or none)`)
	flags.StringVar(&s.archive, "archive-command", "",
		`a command, which bash runs, that gets records as lines of JSON on its standard input before
they are removed; the same on all nodes`)
	flags.DurationVar(&s.archiving, "archive-timeout", node.DefaultArchiveTimeout,
		"how long it may take for a batch of records, 1s to 4m")
	flags.StringVar(&s.auditLog, "audit-log", "",
		`copy all audit lines of the cluster to a file, by its path, as lines of JSON; or "syslog"
(default nowhere)`)
	s.access.flags(flags)
	s.folder.flags(flags)
	s.logging.flags(flags)
	flags.BoolVar(&s.stopOnEOF, "stop-on-eof", false, "drain when standard input ends")
	_ = flags.MarkHidden("stop-on-eof")
}

// check validates the settings without a connection.
func (s *serveSettings) check() error {
	if err := checkDSN(s.dsn); err != nil {
		return err
	}
	if err := s.access.check(s.listen); err != nil {
		return err
	}
	if err := s.folder.check(); err != nil {
		return err
	}

	if s.probes != "" {
		if _, _, err := net.SplitHostPort(s.probes); err != nil {
			return usageError("--probe-listen %q: want host:port, such as 0.0.0.0:8611", s.probes)
		}
	}
	if s.advertise != "" {
		if _, err := advertised(s.advertise); err != nil {
			return err
		}
	}

	for flag, d := range map[string]time.Duration{
		"session-expiry": s.expiry, "look-ahead": s.lookAhead, "drain-grace": s.grace, "archive-timeout": s.archiving,
	} {
		if d <= 0 {
			return usageError("--%s %s: want more than 0", flag, d)
		}
	}

	if s.slots < 0 {
		return usageError("--slots %d: want at least 1", s.slots)
	}
	if info, err := os.Stat(s.secrets); s.secrets != "" && (err != nil || !info.IsDir()) {
		return usageError("--secrets-dir %q: want a folder", s.secrets)
	}

	return nil
}

// labelsOf parses the labels of a node. A label may lack a value.
func labelsOf(given []string) (map[string]string, error) {
	labels := map[string]string{}
	for _, label := range given {
		key, value, _ := strings.Cut(label, "=")
		if _, twice := labels[key]; twice {
			return nil, usageError("--label %s is given twice", key)
		}
		labels[key] = value
	}

	if err := job.CheckNodeLabels(labels); err != nil {
		return nil, usageError("--label: %w", err)
	}
	return labels, nil
}

// serve runs the API and the node until a signal, or until one of them fails.
func (s *serveSettings) serve(c *console) error {
	if err := s.check(); err != nil {
		return err
	}

	// A Go program that panics or is aborted by a watchdog ends with exit code 2, the code for
	// invalid settings, after which the unit does not restart it. Make a crash end by a signal
	// instead.
	debug.SetTraceback("crash")
	guard.Conceal()
	c.queueLog()
	log := s.logger(c.err)
	slog.SetDefault(log)
	if s.node == "" {
		host, err := os.Hostname()
		if err != nil {
			return fmt.Errorf("node name: %w; give one with --node", err)
		}
		s.node = host
	}

	labels, err := labelsOf(s.labels)
	if err != nil {
		return err
	}

	if s.keys, err = secretKeys(s.keyFile, log); err != nil {
		return err
	}

	stop := onSignals()
	defer stop.forget()

	l, err := net.Listen("tcp", s.listen)
	if err != nil {
		err = fmt.Errorf("API: %w", err)
		if errors.Is(err, syscall.EADDRINUSE) {
			err = withHint(err,
				"another node, or dev, may be running here; to see it:  %s cluster\nto listen elsewhere:  --listen 127.0.0.1:8620", program())
		}
		return err
	}
	defer l.Close()

	var probes net.Listener
	if s.probes != "" {
		if probes, err = net.Listen("tcp", s.probes); err != nil {
			return fmt.Errorf("--probe-listen: %w", err)
		}
		defer probes.Close()
	}

	if s.address, err = address(s.advertise, s.access.scheme(), l.Addr()); err != nil {
		return err
	}

	spool, release, err := takeStateDir(s.stateDir, s.node, log)
	if err != nil {
		return err
	}
	defer release()

	s.spool = spool
	tracer, err := trace.New(context.Background(), s.node, readVersion().Version, log)
	if err != nil {
		return usageError("%w", err)
	}
	defer func() {
		bounded, cancel := context.WithTimeout(context.Background(), 2*time.Second)
		defer cancel()
		if err := tracer.Close(bounded); err != nil {
			log.Warn("the last traces cannot be sent", "error", err)
		}
	}()

	s.tracer = tracer
	n, err := node.New(node.Config{
		DSN: s.dsn, Name: s.node, Address: s.address, Version: readVersion().Version,
		Expiry: s.expiry, Labels: labels, Slots: s.slots, LookAhead: s.lookAhead, Grace: s.grace, SpoolDir: spool,
		Log:   log,
		RunAs: s.runAs, RunAsAllow: s.allow, NewPrivs: s.newPrivs, Cgroup: s.cgroup, NoGuard: s.noGuard,
		HTTPAllow: s.httpAllow, SecretsDir: s.secrets, SecretGrants: s.grants, SecretKeys: s.keys,
		Archive: s.archive, ArchiveTimeout: s.archiving, AuditLog: s.auditLog,
		MetricsJobs: s.access.metricsJobs(), Traced: tracer.Executor,
	})
	if err != nil {
		return usageError("%w", err)
	}

	if s.stopOnEOF {
		go stop.onEOF(c.in)
	}

	return s.run(n, l, probes, stop, log)
}

// run starts the API before the node has a database, and stops it after the node has drained.
func (s *serveSettings) run(n *node.Node, l, probes net.Listener, stop *stopping, log *slog.Logger) error {
	cfg := api.Config{
		DB: n.Reads(), Editor: api.EditorOf(n.Editor), Now: n.Now, Ready: n.Ready,
		Node: s.node, Version: readVersion().Version, Listen: l.Addr().String(), Log: log, SecretKeys: s.keys,
		Alerts:   n.Alerts(),
		Machine:  s.machine(n),
		LogLevel: s.live, Traced: s.tracer.Handler, Metrics: n.Metrics().Handler(), Observe: n.Metrics().Answered,
	}

	if err := s.access.apply(&cfg, log); err != nil {
		return err
	}
	if u, err := url.Parse(s.address); err == nil { // clients that follow the address send its host name
		cfg.Hosts = append(slices.Clone(cfg.Hosts), u.Hostname())
	}

	s.access.warn(log, s.listen, s.keys != nil)
	if sql.Exposed(s.dsn) {
		log.Warn("the link to MySQL is not encrypted: who can listen in reads what the cluster knows, and who can answer in MySQL's place gets the password; see tls in docs/security.md")
	}
	if s.runAs == "" && !s.stopOnEOF { // dev runs commands as its own user
		log.Warn("commands run as the node's own user, so any job can get at the database's password, and with it at the cluster; see --run-as in docs/security.md")
	}

	// The API answers before the node has a database.
	server := api.New(cfg)
	answering, silence := context.WithCancel(context.Background())
	served := make(chan error, 1)
	go func() {
		err := server.Serve(answering, l)
		if answering.Err() == nil {
			stop.request(fmt.Errorf("the API ended: %w", err)) // the node must not continue unobserved
		} else {
			err = nil // slow responses were cut off
		}
		served <- err
	}()

	probed := make(chan error, 1)

	go func() { probed <- s.answerProbes(answering, server, probes, stop) }()
	where := []any{"node", s.node, "api", s.access.scheme() + "://" + l.Addr().String()}
	if probes != nil {
		where = append(where, "probes", "http://"+probes.Addr().String())
	}

	// Log the start, and each request to stop.
	log.Info("serving", append(where, "pid", os.Getpid(), "version", readVersion().Version)...)
	go func() {
		<-stop.drain.Done()
		log.Info("stopping", "cause", context.Cause(stop.drain))
		<-stop.hard.Done()
		log.Warn("stopping at once", "cause", context.Cause(stop.hard))
	}()

	// Run the node, and follow the folder.
	running, ended := context.WithCancel(context.Background())
	defer ended()

	go notifySystemd(running, stop.drain, n.Ready)

	following, leave := context.WithCancel(stop.drain)
	followed := make(chan struct{})
	go func() { defer close(followed); s.folder.follow(following, n, s.node, log) }()

	// This returns after the node has drained. Only then does the API stop.
	err := n.RunUntil(stop.drain, stop.hard)
	silence()
	leave()

	err = errors.Join(err, <-served, <-probed)
	if !within(followLeft, followed) {
		log.Warn("the file system of the folder that is followed does not answer; not waiting for it")
	}

	if err == nil {
		log.Info("stopped")
	}

	return err
}

// answerProbes serves the probes until ctx ends, if there is a listener for them.
func (s *serveSettings) answerProbes(ctx context.Context, server *api.Server, l net.Listener, stop *stopping) error {
	if l == nil {
		return nil
	}
	err := server.ServeProbes(ctx, l)
	if ctx.Err() != nil {
		return nil // slow responses were cut off
	}
	stop.request(fmt.Errorf("the listener for probes ended: %w", err)) // an orchestrator would kill the node
	return err
}

// followLeft bounds the wait for the folder's follower. A read on a hanging file system never ends.
const followLeft = 2 * time.Second

// within waits up to d for a channel to close, and reports whether it did.
func within(d time.Duration, done <-chan struct{}) bool {
	select {
	case <-done:
		return true
	case <-time.After(d):
		return false
	}
}
