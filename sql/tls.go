package sql

import (
	"crypto/tls"
	"crypto/x509"
	"fmt"
	"net"
	"net/netip"
	"net/url"
	"os"
	"regexp"
	"slices"
	"strings"

	"github.com/go-sql-driver/mysql"
)

// Parameters of a DSN that are ours: MySQL gets to see none of them.
const (
	// a PEM file with the authorities that may vouch for the server; nobody else may then
	paramCA       = "tls-ca"
	paramInsecure = "tls-insecure" // true: take tls=preferred and tls=skip-verify all the same
)

// link is what a DSN says by the parameters that are ours.
type link struct{ ca, insecure string }

var linkParam = regexp.MustCompile(`([?&])(` + paramCA + `|` + paramInsecure + `)=([^&]*)&?`)

// cutLink takes our parameters out of a DSN. A path in one of them may be written as it is, which a
// DSN otherwise does not allow.
func cutLink(dsn string) (rest string, l link, err error) {
	for {
		at := linkParam.FindStringSubmatchIndex(dsn)
		if at == nil {
			return strings.TrimRight(dsn, "?&"), l, nil
		}

		value, err := url.QueryUnescape(dsn[at[6]:at[7]])
		if err != nil {
			return "", l, fmt.Errorf("%s: cannot be decoded", dsn[at[4]:at[5]])
		}

		if dsn[at[4]:at[5]] == paramCA {
			l.ca = value
		} else {
			l.insecure = value
		}

		dsn = dsn[:at[0]] + dsn[at[2]:at[3]] + dsn[at[1]:]
	}
}

// secureLink settles how the link to MySQL is protected. What only looks like protection is
// refused: a server whose certificate nobody checks may be anybody's, and one that need not speak
// TLS at all as well.
func secureLink(cfg *mysql.Config, l link) error {
	ca, insecure := l.ca, l.insecure
	if insecure != "" && insecure != "true" && insecure != "false" {
		return fmt.Errorf("%s is %q, want true or false", paramInsecure, insecure)
	}

	weak := strings.EqualFold(cfg.TLSConfig, "preferred") || strings.EqualFold(cfg.TLSConfig, "skip-verify") ||
		cfg.AllowFallbackToPlaintext
	if weak && insecure != "true" {
		return fmt.Errorf(
			"tls=preferred and tls=skip-verify protect against nobody who can get between; use tls=true, or "+
				"%s=/path/ca.pem for an authority of your own, or add %s=true",
			paramCA, paramInsecure)
	}

	if ca == "" {
		return nil
	}
	if weak {
		return fmt.Errorf("%s and tls=%s contradict each other", paramCA, cfg.TLSConfig)
	}

	text, err := os.ReadFile(ca)
	if err != nil {
		return fmt.Errorf("%s: %w", paramCA, err)
	}

	pool := x509.NewCertPool()
	if !pool.AppendCertsFromPEM(text) {
		return fmt.Errorf("%s: %s has no certificate in PEM", paramCA, ca)
	}

	host, _, err := net.SplitHostPort(cfg.Addr)
	if err != nil {
		host = cfg.Addr
	}

	cfg.TLSConfig, cfg.TLS = "", &tls.Config{RootCAs: pool, ServerName: host, MinVersion: tls.VersionTLS12}
	return nil
}

// Exposed tells whether a DSN leads over a network without TLS: then others on the way can read
// what the cluster knows, change what it does, and have the password: without TLS it is encrypted
// to the key that whoever answers sends.
func Exposed(dsn string) bool {
	all, err := configs(dsn, DefaultTimeouts)
	return err == nil && slices.ContainsFunc(all, exposed)
}

func exposed(cfg *mysql.Config) bool {
	if cfg.Net != "tcp" || cfg.TLS != nil {
		return false
	}
	host, _, err := net.SplitHostPort(cfg.Addr)
	if err != nil {
		host = cfg.Addr
	}
	a, err := netip.ParseAddr(host)
	return host != "localhost" && (err != nil || !a.Unmap().IsLoopback())
}
