package cli

import (
	"fmt"
	"strings"

	"go-crontab/sql"

	"github.com/spf13/cobra"
)

// migration is what `migrate` did.
type migration struct {
	From int64 `json:"from"`
	To   int64 `json:"to"`
}

func migrateCommand(c *console) *cobra.Command {
	var (
		dsn string
		out output
	)
	cmd := &cobra.Command{
		Use:   "migrate",
		Short: "Create or upgrade the tables in MySQL",
		Long: `Create or upgrade the tables of a cluster. The schema itself (CREATE DATABASE …) must be there. Nodes never do this
by themselves: run it once before the first start, and before starting a newer version.`,
		Example: `  export GOCRONTAB_DSN='crontab:secret@tcp(db:3306)/crontab'
  go-crontab migrate`,
		Args: nothing,
		RunE: func(cmd *cobra.Command, _ []string) error {
			if err := takeEnv(cmd.Flags(), nil, []string{"dsn"}); err != nil {
				return err
			}
			m, err := migrate(cmd, dsn)
			if err != nil {
				return err
			}
			return out.object(c, m, "", func() error {
				c.printf("%s\n", m)
				return nil
			})
		},
	}
	dsnVar(cmd.Flags(), &dsn)
	out.flags(cmd, "table", "json", "yaml")
	return cmd
}

func migrate(cmd *cobra.Command, dsn string) (m migration, err error) {
	if err := checkDSN(dsn); err != nil {
		return m, err
	}
	db, err := sql.Open(dsn, sql.MigrateTimeouts, 2)
	if err != nil {
		return m, err
	}
	defer db.Close()
	m.From, m.To, err = db.Migrate(cmd.Context())
	if err != nil && strings.Contains(err.Error(), "Unknown database") {
		err = withHint(err, "create it first: CREATE DATABASE <name> CHARACTER SET utf8mb4")
	}
	return m, err
}

func (m migration) String() string {
	switch {
	case m.From == m.To:
		return fmt.Sprintf("the tables are at version %d already", m.To)
	case m.From == 0:
		return fmt.Sprintf("created the tables, version %d", m.To)
	}
	return fmt.Sprintf("upgraded the tables from version %d to %d", m.From, m.To)
}
