package privatedb

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
)

// Binary is the environment variable that names a server program. It replaces the search.
const Binary = "GOCRONTAB_MYSQLD"

// Server is a server program on this machine.
type Server struct {
	Path    string // absolute
	Version string // the program's answer: "mariadbd  Ver 10.11.6-MariaDB for …"
	MariaDB bool   // false: MySQL, with another way to make a data folder and some other flags
}

// ErrNotFound means that there is no server program. Find wraps it in an error that says what to
// install.
var ErrNotFound = errors.New("no mariadbd or mysqld on this machine")

const hint = `install one, no service is needed:
  Debian, Ubuntu:  apt-get install --no-install-recommends mariadb-server-core mariadb-client-core
  Fedora, RHEL:    dnf install mariadb-server
  Alpine:          apk add mariadb mariadb-client
  macOS:           brew install mariadb
or name a server program in ` + Binary

// folders are searched after PATH, because system accounts and cron rarely have sbin in PATH.
var folders = []string{
	"/usr/sbin", "/usr/libexec", "/usr/bin",
	"/usr/local/sbin", "/usr/local/bin", "/usr/local/libexec",
	"/usr/local/mysql/bin", "/usr/local/mariadb/bin",
	"/opt/homebrew/bin", "/opt/homebrew/opt/mariadb/bin", "/opt/homebrew/opt/mysql/bin",
	"/usr/local/opt/mariadb/bin", "/usr/local/opt/mysql/bin",
}

// Find returns the server program that GOCRONTAB_MYSQLD names. Without the variable, it looks first
// for mariadbd and then for mysqld, each in PATH and then in the usual folders. If it finds none,
// its error wraps ErrNotFound and says what to install.
func Find() (Server, error) {
	if path := os.Getenv(Binary); path != "" {
		return probe(path)
	}
	for _, name := range []string{"mariadbd", "mysqld"} {
		if path := search(name); path != "" {
			return probe(path)
		}
	}
	return Server{}, fmt.Errorf("%w; %s", ErrNotFound, hint)
}

func search(name string) string {
	if path, err := exec.LookPath(name); err == nil {
		return path
	}
	for _, dir := range folders {
		if path, err := exec.LookPath(filepath.Join(dir, name)); err == nil {
			return path
		}
	}
	return ""
}

// probe asks a program for its version. On many systems mysqld is a link to mariadbd, so only the
// answer shows which one it is.
func probe(path string) (Server, error) {
	path, err := filepath.Abs(path)
	if err != nil {
		return Server{}, err
	}

	out, err := exec.Command(path, "--no-defaults", "--version").CombinedOutput()
	version := strings.TrimSpace(string(out))
	if err != nil {
		return Server{}, fmt.Errorf("ask %s for its version: %w: %s", path, err, version)
	}
	return Server{Path: path, Version: version, MariaDB: strings.Contains(version, "MariaDB")}, nil
}

// installer returns the script that makes a MariaDB data folder. If the server was unpacked from
// an archive, the script is in scripts/ and needs the base folder. Otherwise base is "".
func (s Server) installer() (script, base string, err error) {
	bin := filepath.Dir(s.Path)
	root := filepath.Dir(bin)
	names := []string{"mariadb-install-db", "mysql_install_db"}
	for _, name := range names {
		if path := executable(filepath.Join(root, "scripts", name)); path != "" {
			return path, root, nil
		}
		for _, dir := range []string{bin, filepath.Join(root, "bin")} {
			if path := executable(filepath.Join(dir, name)); path != "" {
				return path, "", nil
			}
		}
	}

	for _, name := range names {
		if path := search(name); path != "" {
			return path, "", nil
		}
	}

	return "", "", fmt.Errorf("%s has no mariadb-install-db; %s", s.Path, hint)
}

func executable(path string) string {
	if found, err := exec.LookPath(path); err == nil {
		return found
	}
	return ""
}
