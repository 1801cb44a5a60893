//go:build unix

package cli

import (
	"context"
	"errors"
	"path/filepath"
	"strings"
	"time"

	"go-crontab/internal/privatedb"
	"go-crontab/sql"
)

const devSchema = "gocrontab"

// openDatabase starts the server and returns the DSN of a migrated schema.
func (d *dev) openDatabase(ctx context.Context) (dsn string, err error) {
	server, err := privatedb.Find()
	if err != nil {
		return "", err
	}

	d.say("starting %s in %s", product(server), d.data)
	if d.db, err = privatedb.Start(ctx, privatedb.Options{
		Dir: filepath.Join(d.data, "db"), Pool: 64, Durable: true,
	}); err != nil {
		if errors.Is(err, privatedb.ErrInUse) {
			err = withHint(err,
				"another dev is running; to see it:  %[1]s cluster\n"+
					"to start a second one:  %[1]s dev --data ANOTHER-FOLDER",
				program())
		}
		return "", err
	}

	if err := d.db.CreateSchema(ctx, devSchema); err != nil {
		return "", err
	}

	dsn = d.db.DSN(devSchema)
	db, err := sql.Open(dsn, sql.MigrateTimeouts, 2)
	if err != nil {
		return "", err
	}
	defer db.Close()

	var m migration
	if m.From, m.To, err = db.Migrate(ctx); err != nil {
		return "", err
	}
	if m.From != m.To {
		d.say("%s", m)
	}
	if err := d.takeSecretKey(); err != nil {
		return "", err
	}

	return dsn, d.takeToken(ctx, db)
}

// product returns the name and version of a server, such as "MariaDB 10.11.6" or "MySQL 8.4.0". It
// reads them from the output of --version.
func product(s privatedb.Server) string {
	name := "MySQL"
	if s.MariaDB {
		name = "MariaDB"
	}
	_, rest, _ := strings.Cut(s.Version, "Ver ")
	version, _, _ := strings.Cut(strings.TrimSpace(rest), "-")
	version, _, _ = strings.Cut(version, " ")
	return strings.TrimSpace(name + " " + version)
}

// keepDatabase restarts the server whenever it dies.
func (d *dev) keepDatabase(ctx context.Context) {
	for {
		err := d.db.Wait(ctx)
		if ctx.Err() != nil {
			return
		}

		how, _, _ := strings.Cut(err.Error(), "\n")
		d.say("%s", strings.TrimSuffix(how, ":")) // the log lines after the first describe only its start
		for {
			d.say("restarting the database; the nodes wait for it")
			if err = d.db.Restart(ctx); err == nil {
				break
			}
			if ctx.Err() != nil {
				return
			}
			d.say("%v", err)
			select {
			case <-ctx.Done():
				return
			case <-time.After(5 * time.Second):
			}
		}

		d.say("the database is back, pid %d", d.db.PID())
	}
}
