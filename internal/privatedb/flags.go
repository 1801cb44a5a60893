package privatedb

import (
	"fmt"
	"os"
)

// tuning are the flags that already matter when the data folder is made. None may contain a space: MariaDB's script
// hands them on without quotes. A flag that only one of MariaDB and MySQL
// knows, or knows only up to some version, has the prefix loose-, which makes it a warning elsewhere.
func (db *DB) tuning() []string {
	flush := "2" // at commit to the kernel, to the disk once a second: survives kill -9 of the server
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
		"--loose-performance-schema=OFF", // 250 MB in MySQL
		"--character-set-server=utf8mb4",
	}
	return append(flags, db.options.Extra...)
}

// asRoot is what root has to add: a server refuses to run as root unless asked to.
func asRoot() []string {
	if os.Geteuid() != 0 {
		return nil
	}
	return []string{"--user=root"}
}

// serverArgs is the server's command line.
func (db *DB) serverArgs() []string {
	args := []string{
		db.server.Path, "--no-defaults", // a service's configuration is none of ours
		"--datadir=" + db.data(),
		"--socket=" + db.socket,
		"--pid-file=" + db.data() + "/pid",
		"--skip-log-bin",
		"--loose-mysqlx=OFF", // MySQL's second protocol, with a port of its own
		"--max-connections=500",
	}
	args = append(args, asRoot()...)
	if !db.server.MariaDB {
		args = append(args, "--secure-file-priv=NULL") // its default is a folder that only the service's package makes
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
