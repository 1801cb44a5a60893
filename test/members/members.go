// Package members runs database servers that replicate among each other on this machine, for tests:
// a Galera cluster, or a group of MySQL Group Replication. Each member is a server of package
// privatedb with its own folder. It ends with the process that started it.
package members

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"time"

	"github.com/go-sql-driver/mysql"

	"go-crontab/internal/privatedb"
)

// Cluster is a set of servers that hold the same data.
type Cluster struct {
	Servers []*privatedb.DB

	joins func(ctx context.Context, i int) error // makes a started server a member again
	state string                                 // a query for the state of a member
	want  string                                 // the state of a working member
}

// starting limits the time until a member has caught up with the others.
const starting = 2 * time.Minute

// Restart starts a killed member, and waits until it has caught up.
func (c *Cluster) Restart(ctx context.Context, i int) error {
	if err := c.Servers[i].Restart(ctx); err != nil {
		return err
	}
	if err := c.joins(ctx, i); err != nil {
		return err
	}
	return c.Await(ctx, i)
}

// Await waits until a member belongs to the majority and has caught up.
func (c *Cluster) Await(ctx context.Context, i int) error {
	ctx, cancel := context.WithTimeout(ctx, starting)
	defer cancel()

	for {
		state, err := c.ask(ctx, i, c.state)
		if err == nil && state == c.want {
			return nil
		}

		select {
		case <-ctx.Done():
			return fmt.Errorf("member %d in %s is %q after %s: %w", i+1, c.Servers[i].Dir(), state, starting,
				errors.Join(err, context.Cause(ctx)))
		case <-time.After(50 * time.Millisecond):
		}
	}
}

// careless returns flags for servers that are never restarted on their data.
func careless(durable bool) []string {
	if durable {
		return nil
	}
	return []string{"--innodb-doublewrite=OFF", "--loose-innodb-flush-method=nosync"}
}

// Stop ends all members, and removes their data.
func (c *Cluster) Stop() error {
	var errs []error
	for _, s := range c.Servers {
		errs = append(errs, s.Stop())
	}
	return errors.Join(errs...)
}

// open makes a pool with a single connection to a member, not limited to a schema.
func (c *Cluster) open(i int) (*sql.DB, error) {
	config, err := mysql.ParseDSN(c.Servers[i].DSN(""))
	if err != nil {
		return nil, err
	}
	config.Logger, config.Timeout, config.ReadTimeout = &mysql.NopLogger{}, 5*time.Second, starting
	connector, err := mysql.NewConnector(config)
	if err != nil {
		return nil, err
	}

	db := sql.OpenDB(connector)
	db.SetMaxOpenConns(1)
	return db, nil
}

// ask returns the last column of the only row of a query.
func (c *Cluster) ask(ctx context.Context, i int, query string) (string, error) {
	db, err := c.open(i)
	if err != nil {
		return "", err
	}
	defer db.Close()

	rows, err := db.QueryContext(ctx, query)
	if err != nil {
		return "", err
	}
	defer rows.Close()

	columns, err := rows.Columns()
	if err != nil {
		return "", err
	}
	if !rows.Next() {
		return "", errors.Join(rows.Err(), sql.ErrNoRows)
	}

	out, ignored := "", any(nil)
	into := make([]any, len(columns))
	for n := range into {
		into[n] = &ignored
	}

	into[len(into)-1] = &out
	return out, rows.Scan(into...)
}

// do runs statements on a single connection to a member.
func (c *Cluster) do(ctx context.Context, i int, statements ...string) error {
	db, err := c.open(i)
	if err != nil {
		return err
	}
	defer db.Close()

	for _, s := range statements {
		if _, err := db.ExecContext(ctx, s); err != nil {
			return fmt.Errorf("member %d: %s: %w", i+1, s, err)
		}
	}

	return nil
}
