package cli

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"net"
	"os"
	"os/signal"
	"strings"
	"syscall"

	"go-crontab/internal/audit"
	"go-crontab/internal/auth"
	"go-crontab/job"
	"go-crontab/sql"

	"github.com/spf13/cobra"
)

// migration is the result of `migrate`.
type migration struct {
	From int64 `json:"from"`
	To   int64 `json:"to"`

	Token string `json:"token,omitempty"` // the first token, if it was just created

	AuditRemoved int `json:"audit_removed,omitempty"` // number of old audit lines that were removed

	Restored *restored `json:"restored,omitempty"` // with --after-restore
}

func migrateCommand(c *console) *cobra.Command {
	var (
		dsn              string
		grantee          string
		bootstrap, again bool
		afterRestore     bool
		out              output
	)

	cmd := &cobra.Command{
		Use:   "migrate",
		Short: "Create or upgrade the tables in MySQL",
		Long: `Create or upgrade the tables of a cluster in an existing schema (CREATE DATABASE …). Nodes never do
this: run migrate once before the first start, and before you start a newer version. A signal ends
it between two migrations, never inside one. If it is killed, run it again; it continues where it
stopped.

--bootstrap also creates the first token, for an admin, and prints it. This happens once in the life
of a cluster, so the command may be repeated. The token does not expire: use it to create tokens for
people and programs (token create), then revoke it. --again replaces the first token, in case all
tokens are lost.

--after-restore puts a database into use that was restored from a backup. Stop all nodes first.
Without this, nodes that worked with a later state refuse the database, because they might run due
times twice. The cluster is paused afterwards, and no due time since the backup runs again; see
docs/backup.md.

Migrate also removes audit entries that are older than 400 days, which the MySQL user of the nodes
should not be able to do.

--print-grants changes nothing. It prints the statements that grant a MySQL user exactly the
privileges that nodes need. Run them again after each upgrade, which may add tables.`,
		Example: `  export GOCRONTAB_DSN='crontab_migrate:secret@tcp(db:3306)/crontab'
  go-crontab migrate
  go-crontab migrate --bootstrap -o json | jq -r .token > admin-token
  go-crontab migrate --print-grants crontab | mysql -u root -p`,
		Args: nothing,
		RunE: func(cmd *cobra.Command, _ []string) error {
			if err := checkVariables(); err != nil {
				return err
			}
			if err := takeEnv(cmd.Flags(), nil, []string{"dsn"}); err != nil {
				return err
			}
			if again && !bootstrap {
				return usageError("--again needs --bootstrap")
			}

			if cmd.Flags().Changed("print-grants") {
				return printGrants(cmd.Context(), c, out, dsn, grantee)
			}
			if afterRestore {
				if err := wasRestored(cmd.Context(), dsn); err != nil {
					return err
				}
			}

			m, err := migrate(cmd.Context(), c, dsn, bootstrap, again)
			if err == nil && afterRestore {
				m.Restored, err = acceptRestore(cmd.Context(), dsn)
			}
			if err != nil {
				return err
			}

			return out.object(c, m, "", func() error {
				c.printf("%s\n", m)
				if m.Restored != nil {
					m.Restored.tell(c)
				}
				if m.Token != "" {
					c.printf("%s\n", m.Token)
					c.notef("This is the token of an admin. It is shown only once, and does not expire.\n")
				} else if bootstrap {
					c.notef("The first token already exists. If it is lost, replace it with --bootstrap --again.\n")
				}
				return nil
			})
		},
	}

	dsnVar(cmd.Flags(), &dsn)
	cmd.Flags().BoolVar(&bootstrap, "bootstrap", false,
		"create and print the first token, unless it already exists")
	cmd.Flags().BoolVar(&afterRestore, "after-restore", false,
		"use a database that was restored from a backup: pause the cluster and report what is unknown")
	cmd.Flags().StringVar(&grantee, "print-grants", "",
		"only print the statements that grant this MySQL user, USER or USER@HOST, the privileges of nodes")
	cmd.MarkFlagsMutuallyExclusive("print-grants", "bootstrap")
	cmd.MarkFlagsMutuallyExclusive("print-grants", "after-restore")
	cmd.Flags().BoolVar(&again, "again", false, "with --bootstrap: replace the first token")
	out.flags(cmd, "table", "json", "yaml")

	return cmd
}

func migrate(ctx context.Context, c *console, dsn string, bootstrap, again bool) (m migration, err error) {
	if err := checkDSN(dsn); err != nil {
		return m, err
	}

	db, err := sql.Open(dsn, sql.MigrateTimeouts, 2)
	if err != nil {
		return m, err
	}
	defer db.Close()

	// Migrate until a signal, but never interrupt a running migration.
	migrating, over := untilSignal(ctx, c)
	m.From, m.To, err = db.Migrate(migrating)
	if errors.Is(err, context.Canceled) {
		err = fmt.Errorf("%w: stopped before a migration", context.Cause(migrating))
	}

	over()
	if err == nil {
		m.AuditRemoved, err = removeOldAudit(ctx, db)
	}

	// Explain common errors.
	switch dial := (*net.OpError)(nil); {
	case err == nil:
	case strings.Contains(err.Error(), "Unknown database"):
		err = withHint(err, "create it first: CREATE DATABASE <name> CHARACTER SET utf8mb4")
	case strings.Contains(err.Error(), "Error 1044 "):
		err = withHint(err,
			"the user of the DSN has no access: create the schema, then GRANT ALL ON <name>.* TO <user>")
	case strings.Contains(err.Error(), "Error 1045 "):
		err = withHint(err,
			"check the user and the password of the DSN, and that the user may connect from this machine")
	case strings.Contains(err.Error(), "Error 1142 "):
		err = withHint(err,
			"the user of the DSN may not change tables; run migrate as a user with all privileges on the schema")
	case errors.As(err, &dial) && dial.Op == "dial":
		err = withHint(err, "MySQL does not answer there; check that it runs, and the address in the DSN")
	}

	// Create the first token.
	if err == nil && bootstrap {
		ctx := job.WithActor(ctx, job.Actor{Who: "migrate", Origin: "program"})
		m.Token, err = auth.Issuer{DB: db}.Bootstrap(ctx, again)
	}

	return m, err
}

// removeOldAudit removes expired audit lines in small batches.
func removeOldAudit(ctx context.Context, db *sql.DB) (removed int, err error) {
	const batch = 500
	now, err := db.Now(ctx)
	if err != nil {
		return 0, err
	}

	for n := batch; n >= batch; removed += n {
		if n, err = audit.Drop(ctx, db, now.Add(-audit.Kept), batch); err != nil {
			return removed, fmt.Errorf("remove old audit entries: %w", err)
		}
	}
	return removed, nil
}

// printGrants prints the SQL statements that grant a user the rights of a node.
func printGrants(ctx context.Context, c *console, out output, dsn, grantee string) error {
	user, host, _ := strings.Cut(grantee, "@")
	if user == "" {
		return usageError("--print-grants %q: want the name of a MySQL user, such as crontab or crontab@10.0.0.%%",
			grantee)
	}

	if err := checkDSN(dsn); err != nil {
		return err
	}

	db, err := sql.Open(dsn, sql.MigrateTimeouts, 2)
	if err != nil {
		return err
	}
	defer db.Close()

	have, want, err := db.SchemaVersions(ctx)
	if err != nil {
		return err
	}
	if have != want {
		return fmt.Errorf("the tables have version %d, but this program needs version %d; "+
			"run migrate first, because privileges are granted per table", have, want)
	}

	grants, err := db.Grants(ctx, user, cmp.Or(host, "%"))
	if err != nil {
		return err
	}

	return out.object(c, map[string][]string{"grants": grants}, "", func() error {
		for _, g := range grants {
			c.printf("%s;\n", g)
		}
		return nil
	})
}

// untilSignal returns a context that ends at the first signal. At each signal it prints that
// migrate will end by itself. A broken pipe does not end the context: the same signal may have
// ended the reader of our output.
func untilSignal(ctx context.Context, c *console) (migrating context.Context, over func()) {
	migrating, end := context.WithCancelCause(ctx)
	broken, signals, done := make(chan os.Signal, 1), make(chan os.Signal, 2), make(chan struct{})
	signal.Notify(broken, syscall.SIGPIPE)
	signal.Notify(signals, syscall.SIGINT, syscall.SIGTERM)
	if !signal.Ignored(syscall.SIGHUP) { // not under nohup
		signal.Notify(signals, syscall.SIGHUP)
	}

	go func() {
		for {
			select {
			case sig := <-signals:
				c.notef("%s: migrate ends after the current migration, which must not be interrupted\n", sig)
				end(fmt.Errorf("%s", sig))
			case <-done:
				return
			}
		}
	}()

	return migrating, func() {
		signal.Stop(broken)
		signal.Stop(signals)
		close(done)
		end(nil)
	}
}

func (m migration) String() string {
	if m.AuditRemoved == 0 {
		return m.upgraded()
	}
	return fmt.Sprintf("%s; removed %d audit entries older than %d days", m.upgraded(), m.AuditRemoved,
		int(audit.Kept.Hours()/24))
}

func (m migration) upgraded() string {
	switch {
	case m.From == m.To:
		return fmt.Sprintf("the tables are already at version %d", m.To)
	case m.From == 0:
		return fmt.Sprintf("created the tables, version %d", m.To)
	}
	return fmt.Sprintf("upgraded the tables from version %d to %d", m.From, m.To)
}
