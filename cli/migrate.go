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

	AuditRemoved int `json:"audit_removed,omitempty"` // number of old audit lines

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
		Long: `Create or upgrade the tables of a cluster. The schema itself (CREATE DATABASE …) must be there. Nodes never do this
by themselves: run it once before the first start, and before starting a newer version. Signals end it between two migrations
and not in the middle of one; if it is killed there all the same, run it again: it goes on where it was.

With --bootstrap it also makes the first token, that of an admin, and prints it: this once in the life of a cluster, so
it may be run again and again. It does not expire; make tokens for people and programs with it (token create), and then
revoke it. With --again it makes another one in its place, for whoever has lost all tokens: who knows the DSN could
write the row by hand anyway.

With --after-restore it says that a database that was restored from a backup is to be used. Nodes that have worked with a
later state of it refuse to go on before, since they would start again what has been started. Stop all nodes first. The
cluster is paused then, and nothing that was due since the backup is started again; see docs/backup.md.

It also removes audit lines that are older than 400 days: the user of the nodes should not be able to. With --print-grants it
changes nothing, and prints the statements that give a user of MySQL the rights that nodes need, and no others. Run it again
after each upgrade, which may bring tables.`,
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
				return usageError("--again is of no use without --bootstrap")
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
					c.notef("This is the token of an admin. It is shown only now, and does not expire.\n")
				} else if bootstrap {
					c.notef("The first token was made before; who has lost it makes another with --again.\n")
				}
				return nil
			})
		},
	}

	dsnVar(cmd.Flags(), &dsn)
	cmd.Flags().BoolVar(&bootstrap, "bootstrap", false,
		"make the first token, unless that was done before, and print it")
	cmd.Flags().BoolVar(&afterRestore, "after-restore", false,
		"the database was restored from a backup, and is to be used: pause the cluster, and say what it does not know")
	cmd.Flags().StringVar(&grantee, "print-grants", "",
		"change nothing, and print what grants a user the rights of nodes: USER, or USER@HOST")
	cmd.MarkFlagsMutuallyExclusive("print-grants", "bootstrap")
	cmd.MarkFlagsMutuallyExclusive("print-grants", "after-restore")
	cmd.Flags().BoolVar(&again, "again", false, "with --bootstrap: make another one, in place of the first")
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
		err = fmt.Errorf("%w: no migration was begun", context.Cause(migrating))
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
		err = withHint(err, "create it first, and let the user in: GRANT ALL ON <name>.* TO <user>")
	case strings.Contains(err.Error(), "Error 1045 "):
		err = withHint(err, "is the user of the DSN there for this machine, and is the password right?")
	case errors.As(err, &dial) && dial.Op == "dial":
		err = withHint(err, "no MySQL answers there; is the address of the DSN right?")
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
			return removed, fmt.Errorf("remove old audit lines: %w", err)
		}
	}
	return removed, nil
}

// printGrants prints the SQL statements that grant a user the rights of a node.
func printGrants(ctx context.Context, c *console, out output, dsn, grantee string) error {
	user, host, _ := strings.Cut(grantee, "@")
	if user == "" {
		return usageError("--print-grants %q: want the name of a user of MySQL, such as crontab or crontab@10.0.0.%%",
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
		return fmt.Errorf("the tables have version %d, and this program is made for %d: run migrate first, rights are granted table by table", have, want)
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

// untilSignal returns a context that ends at the first signal. Each signal prints that migrate will
// end by itself. A broken pipe is not a request to end: the reader of our output may have received
// the same signal.
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
				c.notef("%s: a migration is not to be interrupted; migrate ends by itself behind the one that is under way\n", sig)
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
	return fmt.Sprintf("%s; removed %d audit lines that were older than %d days", m.upgraded(), m.AuditRemoved,
		int(audit.Kept.Hours()/24))
}

func (m migration) upgraded() string {
	switch {
	case m.From == m.To:
		return fmt.Sprintf("the tables are at version %d already", m.To)
	case m.From == 0:
		return fmt.Sprintf("created the tables, version %d", m.To)
	}
	return fmt.Sprintf("upgraded the tables from version %d to %d", m.From, m.To)
}
