package privatedb

import (
	"fmt"
	"os"
)

// tuning returns the flags that already matter when the data folder is made. MariaDB's script
// passes flags on without quotes, so no flag may contain a space. A flag that some versions of
// MariaDB or MySQL do not know has the prefix loose-, which turns the error into a warning.
func (db *DB) tuning() []string {
	// Each commit writes its redo log to the kernel. The server flushes it to the disk once a
	// second. So commits survive kill -9 of the server.
	flush := "2"
	if db.options.Durable {
		flush = "1"
	}

	redo := orDefault(db.options.Redo, 64)
	flags := []string{
		"--innodb-flush-log-at-trx-commit=" + flush,
		fmt.Sprintf("--innodb-buffer-pool-size=%dM", orDefault(db.options.Pool, 128)),
		fmt.Sprintf("--loose-innodb-log-file-size=%dM", redo),
		fmt.Sprintf("--loose-innodb-redo-log-capacity=%dM", redo),
		"--loose-aria-pagecache-buffer-size=8M",
		"--loose-performance-schema=OFF", // it takes 250 MB in MySQL
		"--character-set-server=utf8mb4",
	}

	return append(flags, db.options.Extra...)
}

// asRoot returns the flag without which a server refuses to run as root.
func asRoot() []string {
	if os.Geteuid() != 0 {
		return nil
	}
	return []string{"--user=root"}
}

// serverArgs returns the server's command line.
func (db *DB) serverArgs() []string {
	args := []string{
		db.server.Path, "--no-defaults", // ignore the configuration of a system service
		"--datadir=" + db.data(),
		"--socket=" + db.socket,
		"--pid-file=" + db.data() + "/pid",
		"--skip-log-bin",
		"--loose-mysqlx=OFF", // MySQL's second protocol, with its own port
		"--max-connections=500",
	}

	args = append(args, asRoot()...)
	if !db.server.MariaDB {
		// MySQL's default is a folder that only a package with a system service makes.
		args = append(args, "--secure-file-priv=NULL")
	}

	if db.port == 0 {
		args = append(args, "--skip-networking")
	} else {
		args = append(args, "--bind-address=127.0.0.1", fmt.Sprintf("--port=%d", db.port))
	}

	return append(args, db.tuning()...)
}

func orDefault(n, otherwise int) int {
	if n == 0 {
		return otherwise
	}
	return n
}
