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

// dev keeps the token of its admin in a file that only its user can read, in its data folder; and, in a folder that
// commands know, a link to it under the address of each node. So commands find the token without being told, and send
// it to nobody else: another address has no link, and a link of which no node lives any more counts for nothing.

// linkFolder has the links.
func linkFolder() (string, error) {
	return appDir("XDG_DATA_HOME", ".local/share", "", "servers")
}

// linkOf is the link of a server; "" when it is no loopback address: dev's nodes listen on no other.
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

// nodesLock is the file beside dev's token that is locked as long as one of its nodes lives.
const nodesLock = "nodes.lock"

// knownToken returns the token of a server of dev, "" if there is none. Of a dev that was killed links are left, and its ports
// are free for others.
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

// linkToken has commands find a token for a server.
func linkToken(server, file string) error {
	link := linkOf(server)
	if link == "" {
		return errors.New("there is no folder for it")
	}

	if err := os.MkdirAll(filepath.Dir(link), 0o700); err != nil {
		return err
	}
	if err := os.Remove(link); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	return os.Symlink(file, link)
}

// unlinkToken takes the link back, unless it leads elsewhere by now.
func unlinkToken(server, file string) {
	link := linkOf(server)
	if to, err := os.Readlink(link); err == nil && to == file {
		_ = os.Remove(link)
	}
}

// unlinkTokens takes all links to a file back.
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

// writeSecret writes a file that only its owner can read, whole or not at all.
func writeSecret(file, secret string) error {
	tmp, err := os.CreateTemp(filepath.Dir(file), ".token-*") // 0600
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
