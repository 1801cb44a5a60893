package bench

import (
	"context"
	stdsql "database/sql"
	"errors"
	"fmt"
	"math/rand/v2"
	"net"
	"os"
	"runtime"
	"strconv"
	"strings"
	"time"

	"go-crontab/internal/privatedb"
	"go-crontab/job"
	"go-crontab/node"

	"github.com/go-sql-driver/mysql"
)

// server is the measured MySQL server.
type server struct {
	private *privatedb.DB // nil: the user's own server
	cfg     *mysql.Config
	db      *stdsql.DB // without a schema
	given   string     // schema to use; "": make one
}

// The private server has a buffer pool and a redo log that are as large as its tables need. Its
// commits survive a power cut.
const (
	poolMB = 1024
	redoMB = 512
)

func open(ctx context.Context, o *Options) (*server, error) {
	s := &server{given: o.Schema}
	dsn := o.DSN
	if dsn == "" {
		var err error
		private := privatedb.Options{Pool: poolMB, Redo: redoMB, Durable: true}
		if o.Binlog {
			private.Extra = []string{"--server-id=1", "--log-bin=binlog", "--binlog-format=ROW", "--sync-binlog=1"}
		}
		if s.private, err = privatedb.Start(ctx, private); err != nil {
			return nil, err
		}
		dsn = s.private.DSN("mysql")
	}

	var err error
	if s.cfg, err = mysql.ParseDSN(dsn); err != nil {
		return nil, fmt.Errorf("--dsn: %w", err)
	}

	s.cfg.DBName = ""
	c, err := mysql.NewConnector(s.cfg)
	if err != nil {
		return nil, errors.Join(fmt.Errorf("--dsn: %w", err), s.close())
	}

	s.db = stdsql.OpenDB(c)
	if err := s.db.PingContext(ctx); err != nil {
		return nil, errors.Join(err, s.close())
	}
	return s, nil
}

func (s *server) close() error {
	var err error
	if s.db != nil {
		err = s.db.Close()
	}
	if s.private != nil {
		err = errors.Join(err, s.private.Stop())
	}
	return err
}

// dsn returns the DSN of a schema.
func (s *server) dsn(schema string) string {
	cfg := s.cfg.Clone()
	cfg.DBName = schema
	return cfg.FormatDSN()
}

// over returns a DSN that reaches a schema through d, the simulated slow network.
func (s *server) over(d *distance, schema string) string {
	cfg := s.cfg.Clone()
	cfg.DBName, cfg.Net, cfg.Addr = schema, "tcp", d.addr()
	return cfg.FormatDSN()
}

// address returns the address to which a distance forwards.
func (s *server) address() string {
	if s.cfg.Net == "unix" || strings.HasPrefix(s.cfg.Addr, "/") {
		return s.cfg.Addr
	}
	if _, _, err := net.SplitHostPort(s.cfg.Addr); err != nil {
		return net.JoinHostPort(s.cfg.Addr, "3306")
	}
	return s.cfg.Addr
}

// schema is the schema of one measurement.
type schema struct {
	*server
	name string
	db   *stdsql.DB
	jobs int64 // id of the last job that was added
	made bool  // made by the bench
}

// newSchema makes a schema with the tables of a cluster, under a random name. If the user names a
// schema, that must be empty, because the bench never touches the schema of a cluster.
func (s *server) newSchema(ctx context.Context) (*schema, error) {
	c := &schema{server: s, name: s.given}
	if c.name == "" {
		c.name = fmt.Sprintf("gocrontab_bench_%08x", rand.Uint32())
		if _, err := s.db.ExecContext(ctx, "CREATE DATABASE `"+c.name+"`"); err != nil {
			return nil, fmt.Errorf("make a schema: %w\n"+
				"The user needs: GRANT ALL ON `gocrontab\\_bench\\_%%`.* TO …; "+
				"or name an empty schema with --schema", err)
		}
		c.made = true
	} else if tables, err := c.tables(ctx); err != nil {
		return nil, err // its contents are unknown: drop nothing
	} else if len(tables) > 0 {
		return nil, fmt.Errorf(
			"--schema %s has tables (%s, …): want an empty one, or none; a bench drops all that is in it",
			c.name, tables[0])
	}

	var err error
	if c.db, err = stdsql.Open("mysql", s.dsn(c.name)); err != nil {
		return nil, errors.Join(err, c.drop())
	}
	if err := node.Migrate(ctx, s.dsn(c.name)); err != nil {
		return nil, errors.Join(fmt.Errorf("make the tables: %w", err), c.drop())
	}

	// Without this row, the first node would check all jobs, in case they were planned with other
	// time zone data.
	if _, err := c.db.ExecContext(ctx, "INSERT INTO setting (name, value) VALUES ('zones', ?)",
		job.ZoneData()); err != nil {
		return nil, errors.Join(err, c.drop())
	}

	return c, nil
}

func (c *schema) tables(ctx context.Context) (names []string, err error) {
	rows, err := c.server.db.QueryContext(ctx, `
		SELECT table_name
		FROM information_schema.tables
		WHERE table_schema = ?
		ORDER BY table_type = 'VIEW' DESC, table_name`, c.name)
	if err != nil {
		return nil, err
	}
	defer rows.Close()

	for rows.Next() {
		var name string
		if err := rows.Scan(&name); err != nil {
			return nil, err
		}
		names = append(names, name)
	}

	return names, rows.Err()
}

// drop removes everything that the bench has made: the schema, or the tables in a schema of the
// user. It has its own time limit, because it also runs after Ctrl-C.
func (c *schema) drop() error {
	ctx, cancel := context.WithTimeout(context.Background(), 5*time.Minute)
	defer cancel()

	var err error
	if c.db != nil {
		err = c.db.Close()
	}

	if c.made {
		_, dropErr := c.server.db.ExecContext(ctx, "DROP DATABASE `"+c.name+"`")
		return errors.Join(err, dropErr)
	}

	names, listErr := c.tables(ctx)
	err = errors.Join(err, listErr)
	for _, name := range names {
		kind := "TABLE"
		if strings.HasPrefix(name, "v_") {
			kind = "VIEW"
		}
		_, dropErr := c.server.db.ExecContext(ctx, "DROP "+kind+" `"+c.name+"`.`"+name+"`")
		err = errors.Join(err, dropErr)
	}

	return err
}

// now returns the server's clock in microseconds.
func (c *schema) now(ctx context.Context) (us int64, err error) {
	err = c.db.QueryRowContext(ctx, "SELECT CAST(UNIX_TIMESTAMP(NOW(6)) * 1000000 AS SIGNED)").Scan(&us)
	return us, err
}

// counters are the server's totals since its start.
type counters struct {
	statements, commits, redo, binlog float64
	cpu                               time.Duration
}

func (c *schema) counters(ctx context.Context) (n counters, err error) {
	rows, err := c.db.QueryContext(ctx, `
		SHOW GLOBAL STATUS
		WHERE Variable_name IN ('Questions', 'Com_commit', 'Innodb_os_log_written', 'Binlog_bytes_written')`)
	if err != nil {
		return n, err
	}
	defer rows.Close()

	counted := false // only MariaDB counts the bytes of its binary log
	for rows.Next() {
		var name, value string
		if err := rows.Scan(&name, &value); err != nil {
			return n, err
		}

		f, _ := strconv.ParseFloat(value, 64)
		switch strings.ToLower(name) {
		case "questions":
			n.statements = f
		case "com_commit":
			n.commits = f
		case "innodb_os_log_written":
			n.redo = f
		case "binlog_bytes_written":
			n.binlog, counted = f, true
		}
	}

	if err := rows.Err(); err != nil {
		return n, err
	}
	if !counted {
		n.binlog = c.binlogSize(ctx)
	}
	if c.private != nil {
		n.cpu = cpuOf(c.private.PID())
	}

	return n, nil
}

// binlogSize returns the total size of the binary log in bytes. It returns 0 if there is no binary
// log, or if the user has no right to see it.
func (c *schema) binlogSize(ctx context.Context) (total float64) {
	rows, err := c.db.QueryContext(ctx, "SHOW BINARY LOGS")
	if err != nil {
		return 0
	}
	defer rows.Close()

	columns, err := rows.Columns() // the name and the size; later versions have more columns
	if err != nil || len(columns) < 2 {
		return 0
	}

	var size float64
	into := make([]any, len(columns))
	for i := range into {
		into[i] = new(any)
	}

	into[1] = &size
	for rows.Next() {
		if rows.Scan(into...) != nil {
			return 0
		}
		total += size
	}

	return total
}

func (n counters) minus(o counters) counters {
	return counters{
		n.statements - o.statements, n.commits - o.commits, n.redo - o.redo, n.binlog - o.binlog, n.cpu - o.cpu,
	}
}

// machine describes the machine and the server.
func (s *server) machine(ctx context.Context) (Machine, error) {
	m := Machine{
		OS: runtime.GOOS + "/" + runtime.GOARCH, CPU: cpuModel(), Cores: runtime.NumCPU(),
		Private: s.private != nil, Settings: map[string]string{},
	}

	if err := s.db.QueryRowContext(ctx, "SELECT VERSION()").Scan(&m.Server); err != nil {
		return m, err
	}

	rows, err := s.db.QueryContext(ctx, `
		SHOW GLOBAL VARIABLES
		WHERE Variable_name IN (
			'innodb_flush_log_at_trx_commit', 'sync_binlog', 'log_bin', 'innodb_buffer_pool_size'
		)`)
	if err != nil {
		return m, err
	}
	defer rows.Close()

	for rows.Next() {
		var name, value string
		if err := rows.Scan(&name, &value); err != nil {
			return m, err
		}
		m.Settings[name] = value
	}

	return m, rows.Err()
}

func cpuModel() string {
	text, _ := os.ReadFile("/proc/cpuinfo")
	for line := range strings.Lines(string(text)) {
		if key, value, ok := strings.Cut(line, ":"); ok && strings.TrimSpace(key) == "model name" {
			return strings.TrimSpace(value)
		}
	}
	return ""
}
