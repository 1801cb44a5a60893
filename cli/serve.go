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
	"github.com/spf13/pflag"
)

// serveSettings are the flags of serve.
type serveSettings struct {
	dsn       string
	listen    string
	probes    string // address for probes; empty: none
	advertise string
	address   string // the address that others use, from advertise and the listener
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
	check := false
	cmd := &cobra.Command{
		Use:   "serve",
		Short: "Run a node: API, scheduler and executor",
		Long: `Run a node of a cluster: API, scheduler and executor. All nodes of a cluster share one MySQL schema.
Each flag can also be set by the variable GOCRONTAB_<FLAG>, such as GOCRONTAB_DSN; the flag takes
precedence. An unknown GOCRONTAB_ variable is an error. The node waits until MySQL is up.

--check starts nothing: it prints the settings and where each comes from, without secrets, and
everything that is wrong with them (exit code 2).

SIGTERM or SIGINT drains the node: it starts no runs, gives prepared runs back, and waits up to
--drain-grace for commands to end. A second signal kills the commands at once. Exit code 4: the node
may not join the cluster; the message says why.`,
		Example: `  export GOCRONTAB_DSN='crontab:secret@tcp(db:3306)/crontab'
  go-crontab serve
  GOCRONTAB_DSN_FILE=/run/secrets/dsn go-crontab serve --node web-1
  go-crontab serve --check`,
		Args: nothing,
		RunE: func(cmd *cobra.Command, _ []string) error {
			onLine := setFlags(cmd.Flags())
			err := errors.Join(checkVariables(), takeEnv(cmd.Flags(), serveVariables, serveSecrets))
			switch {
			case check:
				return s.report(c, cmd.Flags(), onLine, err)
			case err != nil:
				return err
			}
			return s.serve(c)
		},
	}

	s.flags(cmd)
	cmd.Flags().VisitAll(func(f *pflag.Flag) { allowEmpty(cmd.Flags(), f.Name) }) // an empty flag wins
	cmd.Flags().BoolVar(&check, checkFlag, false, "only print the settings and what is wrong with them; exit with 0 or 2")
	return cmd
}

func (s *serveSettings) flags(cmd *cobra.Command) {
	flags := cmd.Flags()
	flags.SortFlags = false
	dsnVar(flags, &s.dsn)
	flags.StringVar(&s.listen, "listen", "127.0.0.1:8610",
		"address of the API; an address that others can reach needs --tls-cert or --insecure-http")
	flags.StringVar(&s.probes, "probe-listen", "",
		`additional address that answers only /healthz and /readyz, in plain HTTP, for orchestrators;
load on the API does not affect it (default none)`)
	flags.StringVar(&s.advertise, "advertise", "",
		`host, host:port or URL at which others reach the API, for the list of nodes
(default the --listen address, or the host name if that is all addresses)`)
	flags.StringVar(&s.node, "node", "", "name of the node, unique in the cluster (default the host name)")
	flags.StringSliceVar(&s.labels, "label", nil,
		`label for the selectors of jobs, such as zone=a, besides node, os and arch; may be
repeated, or separated by commas (GOCRONTAB_LABELS)`)
	durationVar(flags, &s.expiry, "session-expiry", session.DefaultExpiry,
		`consider a node dead after this long without a sign of life, 5s to 10m; the same on all nodes;
to change it, stop all nodes`)
	flags.IntVar(&s.slots, "slots", 0,
		"most runs at once; an HTTP request counts as a sixteenth of a run (default 64 for each processor)")
	durationVar(flags, &s.lookAhead, "look-ahead", node.DefaultLookAhead,
		"claim runs this long before they are due, 1s to 15s")
	durationVar(flags, &s.grace, "drain-grace", node.DefaultGrace, "longest time that a drain waits for commands")
	flags.StringVar(&s.stateDir, "state-dir", "",
		`folder for outcomes that cannot be written to MySQL yet (default /var/lib/go-crontab/<node>
for root, else ~/.local/state/go-crontab/<node>)`)
	flags.StringVar(&s.runAs, "run-as", "",
		`user, or user:group, for commands of jobs that name none; needs root, or CAP_SETUID, CAP_SETGID and CAP_KILL
(default the node's own user, so commands can read the database password)`)
	flags.StringSliceVar(&s.allow, "run-as-allow", nil,
		`users that commands may run as, by name or id, separated by commas (default the --run-as user; without
--run-as all users, if the node may switch); without --run-as, list the node's own user for jobs that name none`)

	flags.BoolVar(&s.newPrivs, "allow-new-privs", false,
		`let commands gain privileges by setuid programs such as sudo, and by file capabilities
(default commands run with no_new_privs)`)
	flags.StringVar(&s.cgroup, "cgroup", "",
		`folder of a cgroup v2 that only this node uses, for jobs with limits of memory, cpu or pids
(default the node's own cgroup, if systemd has delegated it)`)
	flags.BoolVar(&s.noGuard, "no-guard", false,
		`start no guard; the guard is a helper process that kills the commands if the node dies or hangs,
so that other nodes take over at once`)
	flags.StringSliceVar(&s.httpAllow, "http-allow", nil,
		`additional targets of HTTP jobs, besides public addresses: 10.0.0.0/8, [fd00::1]:8080,
intranet.example, *.intranet.example:8080; may be repeated, or separated by commas`)
	flags.StringVar(&s.secrets, "secrets-dir", "",
		`folder with node secrets, for signatures and TLS keys of HTTP jobs: the file APP/NAME for jobs of
an app, */NAME for jobs of all apps (default none)`)
	flags.StringSliceVar(&s.grants, "grant-secret", nil,
		`apps that may use the node secret in GOCRONTAB_SECRET_<NAME>, as NAME=APP|APP, or NAME=* for all apps;
may be repeated, or separated by commas (default no apps)`)
	flags.StringVar(&s.keyFile, secretKeyFlag, "",
		`file with the encryption key of secrets, the same on all nodes; "go-crontab secret keygen" creates one
(default the key in GOCRONTAB_SECRET_KEY, or none)`)
	flags.StringVar(&s.archive, "archive-command", "",
		`bash command that gets records on standard input, as lines of JSON, before they are removed;
the same on all nodes (default none)`)
	durationVar(flags, &s.archiving, "archive-timeout", node.DefaultArchiveTimeout,
		"longest time of the archive command for a batch of records, 1s to 4m")
	flags.StringVar(&s.auditLog, "audit-log", "",
		`copy all audit entries of the cluster to this file, as lines of JSON, or to "syslog"
(default none)`)
	s.access.flags(flags)
	s.folder.flags(flags)
	s.logging.flags(flags)
	flags.BoolVar(&s.stopOnEOF, "stop-on-eof", false, "drain when standard input ends")
	_ = flags.MarkHidden("stop-on-eof")
}

// check validates the settings without a connection, and returns all mistakes.
func (s *serveSettings) check() error {
	return errors.Join(checkDSN(s.dsn), s.access.check(s.listen), s.folder.check(), s.checkOwn())
}

// checkOwn validates the settings of the node itself.
func (s *serveSettings) checkOwn() error {
	var wrong []error
	if s.probes != "" && !isListen(s.probes) {
		wrong = append(wrong, usageError("--probe-listen %q: want host:port, such as 0.0.0.0:8611", s.probes))
	}
	if s.advertise != "" {
		_, err := advertised(s.advertise)
		wrong = append(wrong, err)
	}

	for _, d := range []struct {
		flag  string
		value time.Duration
	}{
		{"session-expiry", s.expiry}, {"look-ahead", s.lookAhead}, {"drain-grace", s.grace},
		{"archive-timeout", s.archiving},
	} {
		if d.value <= 0 {
			wrong = append(wrong, usageError("--%s %s: want a duration above 0", d.flag, d.value))
		}
	}

	if s.slots < 0 {
		wrong = append(wrong, usageError("--slots %d: want at least 1", s.slots))
	}
	if info, err := os.Stat(s.secrets); s.secrets != "" && (err != nil || !info.IsDir()) {
		wrong = append(wrong, usageError("--secrets-dir %q: not a folder", s.secrets))
	}

	return errors.Join(wrong...)
}

// isListen reports whether a text is an address to listen on.
func isListen(address string) bool {
	_, port, err := net.SplitHostPort(address)
	if err == nil {
		_, err = net.LookupPort("tcp", port)
	}
	return err == nil
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

	// A crash must end by a signal. A Go program that panics, or that a watchdog aborts, normally
	// ends with exit code 2. That is also the code for invalid settings, and after invalid settings
	// the unit does not restart the node.
	debug.SetTraceback("crash")
	guard.Conceal()
	c.queueLog()
	log := s.logger(c.err)
	slog.SetDefault(log)
	if s.node == "" {
		host, err := os.Hostname()
		if err != nil {
			return fmt.Errorf("no name for the node: %w; set one with --node", err)
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
		err = fmt.Errorf("--listen: %w", err)
		if errors.Is(err, syscall.EADDRINUSE) {
			err = withHint(err,
				"another node, or dev, may use this port; to see it:  %s cluster\n"+
					"to use another port:  --listen 127.0.0.1:8620", program())
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
	cfg := s.config(labels, log)
	cfg.SpoolDir, cfg.Traced = spool, tracer.Executor
	n, err := node.New(cfg)
	if err != nil {
		return usageError("%w", err)
	}

	if s.stopOnEOF {
		go stop.onEOF(c.in)
	}

	return s.run(n, l, probes, stop, log)
}

// config returns the configuration of the node.
func (s *serveSettings) config(labels map[string]string, log *slog.Logger) node.Config {
	return node.Config{
		DSN: s.dsn, Name: s.node, Address: s.address, Version: readVersion().Version, PublicURL: s.access.publicURL,
		Expiry: s.expiry, Labels: labels, Slots: s.slots, LookAhead: s.lookAhead, Grace: s.grace, Log: log,
		RunAs: s.runAs, RunAsAllow: s.allow, NewPrivs: s.newPrivs, Cgroup: s.cgroup, NoGuard: s.noGuard,
		HTTPAllow: s.httpAllow, SecretsDir: s.secrets, SecretGrants: s.grants, SecretKeys: s.keys,
		Archive: s.archive, ArchiveTimeout: s.archiving, AuditLog: s.auditLog, MetricsJobs: s.access.metricsJobs(),
		Notes: s.access.notes,
	}
}

// run starts the API before the node has a database. It stops the API after the node has drained.
func (s *serveSettings) run(n *node.Node, l, probes net.Listener, stop *stopping, log *slog.Logger) error {
	cfg := api.Config{
		DB: n.Reads(), Editor: api.EditorOf(n.Editor), Now: n.Now, Ready: n.Ready,
		Node: s.node, Version: readVersion().Version, Listen: l.Addr().String(), Log: log, SecretKeys: s.keys,
		Alerts:   n.Alerts(),
		Machine:  s.machine(n),
		Refuses:  n.Refuses,
		LogLevel: s.live, Traced: s.tracer.Handler, Metrics: n.Metrics().Handler(), Observe: n.Metrics().Answered,
	}

	if err := s.access.apply(&cfg, log); err != nil {
		return err
	}
	if u, err := url.Parse(s.address); err == nil { // clients that follow the address send its host name
		cfg.Hosts = append(slices.Clone(cfg.Hosts), u.Hostname())
	}

	s.access.warn(log, s.listen, s.keys != nil)
	go tryProvider(cfg.OIDC, s.access.oidc.Issuer, log)
	if sql.Exposed(s.dsn) {
		log.Warn("the connection to MySQL is not encrypted: others on the network may read data and the password; " +
			"see tls in docs/security.md")
	}
	if s.runAs == "" && !s.stopOnEOF { // dev runs commands as its own user
		log.Warn("commands run as the node's own user, so any job can read the database password; " +
			"see --run-as in docs/security.md")
	}

	// The API answers before the node has a database.
	server := api.New(cfg)
	answering, silence := context.WithCancel(context.Background())
	served := make(chan error, 1)
	go func() {
		err := server.Serve(answering, l)
		if answering.Err() == nil {
			stop.request(fmt.Errorf("the API stopped: %w", err)) // the node must not continue unobserved
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

	// RunUntil returns after the node has drained. Only then does the API stop.
	err := n.RunUntil(stop.drain, stop.hard)
	silence()
	leave()

	err = errors.Join(err, <-served, <-probed)
	if !within(followLeft, followed) {
		log.Warn("the file system of --apply-dir does not respond; stopping without it")
	}

	if err == nil {
		log.Info("stopped")
	}

	return err
}

// answerProbes serves the probes until ctx ends. Without a listener it does nothing.
func (s *serveSettings) answerProbes(ctx context.Context, server *api.Server, l net.Listener, stop *stopping) error {
	if l == nil {
		return nil
	}
	err := server.ServeProbes(ctx, l)
	if ctx.Err() != nil {
		return nil // slow responses were cut off
	}
	stop.request(fmt.Errorf("the listener of --probe-listen stopped: %w", err)) // failed probes would kill the node
	return err
}

// followLeft limits how long a stop waits for the loop that follows the folder. A read from a file
// system that hangs never returns.
const followLeft = 2 * time.Second

// within waits up to d for a channel to close. It reports whether the channel closed.
func within(d time.Duration, done <-chan struct{}) bool {
	select {
	case <-done:
		return true
	case <-time.After(d):
		return false
	}
}
