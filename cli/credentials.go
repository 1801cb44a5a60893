package cli

import (
	"errors"
	"io/fs"
	"net"
	"net/url"
	"os"
	"path/filepath"
	"strings"
)

// dev keeps its admin's token in its data folder, in a file that only the user can read. For the
// address of each node, a well-known folder has a link to this file. So commands find the token by
// themselves. They send it to no other server: another address has no link, and a link without a
// living node is ignored.

// linkFolder is the folder with the links.
func linkFolder() (string, error) {
	return appDir("XDG_DATA_HOME", ".local/share", "", "servers")
}

// linkOf returns the link for a server. If the address is not a loopback address, it returns "":
// dev's nodes listen only on loopback addresses.
func linkOf(server string) string {
	u, err := url.Parse(server)
	if err != nil || u.Scheme != "http" || u.Port() == "" {
		return ""
	}

	host := u.Hostname()
	if host == "localhost" {
		host = "127.0.0.1"
	}

	if ip := net.ParseIP(host); ip == nil || !ip.IsLoopback() {
		return ""
	}

	dir, err := linkFolder()
	if err != nil {
		return ""
	}
	return filepath.Join(dir, host+"-"+u.Port())
}

// nodesLock is a file next to dev's token. It is locked while any of dev's nodes lives.
const nodesLock = "nodes.lock"

// knownToken returns the token for a server of dev, or "". If dev is killed, its links remain, and
// other programs may use its ports. So a link counts only while dev's nodes hold the lock.
func knownToken(server string) string {
	file, err := os.Readlink(linkOf(server))
	if err != nil || !isLocked(filepath.Join(filepath.Dir(file), nodesLock)) {
		return ""
	}
	b, err := os.ReadFile(file)
	if err != nil {
		return ""
	}
	return strings.TrimSpace(string(b))
}

// linkToken makes a link by which commands find the token for a server.
func linkToken(server, file string) error {
	link := linkOf(server)
	if link == "" {
		return errors.New("no folder for data: set HOME or XDG_DATA_HOME")
	}

	if err := os.MkdirAll(filepath.Dir(link), 0o700); err != nil {
		return err
	}
	if err := os.Remove(link); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	return os.Symlink(file, link)
}

// unlinkToken removes the link, unless it now points to another file.
func unlinkToken(server, file string) {
	link := linkOf(server)
	if to, err := os.Readlink(link); err == nil && to == file {
		_ = os.Remove(link)
	}
}

// unlinkTokens removes all links to a file.
func unlinkTokens(file string) {
	dir, err := linkFolder()
	if err != nil {
		return
	}

	links, _ := os.ReadDir(dir)
	for _, l := range links {
		link := filepath.Join(dir, l.Name())
		if to, err := os.Readlink(link); err == nil && to == file {
			_ = os.Remove(link)
		}
	}
}

// writeSecret writes a file in one atomic step. Only the owner can read the file.
func writeSecret(file, secret string) error {
	tmp, err := os.CreateTemp(filepath.Dir(file), ".token-*") // mode 0600
	if err != nil {
		return err
	}

	_, err = tmp.WriteString(secret + "\n")
	err = errors.Join(err, tmp.Close())
	if err == nil {
		err = os.Rename(tmp.Name(), file)
	}
	if err != nil {
		_ = os.Remove(tmp.Name())
	}

	return err
}
