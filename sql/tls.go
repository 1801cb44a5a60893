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

// Our own parameters in a DSN. MySQL never sees them.
const (
	// a PEM file with the only certificate authorities that may vouch for the server
	paramCA       = "tls-ca"
	paramInsecure = "tls-insecure" // true: accept tls=preferred and tls=skip-verify
)

// link holds our own parameters of a DSN.
type link struct{ ca, insecure string }

var linkParam = regexp.MustCompile(`([?&])(` + paramCA + `|` + paramInsecure + `)=([^&]*)&?`)

// cutLink removes our parameters from a DSN. Unlike in other parameters, a path in our parameters
// need not be escaped.
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

// secureLink sets up the protection of the connection to MySQL. It refuses settings that only look
// like protection. A server may be an impostor if its certificate is not checked, or if it need not
// use TLS at all.
func secureLink(cfg *mysql.Config, l link) error {
	ca, insecure := l.ca, l.insecure
	if insecure != "" && insecure != "true" && insecure != "false" {
		return fmt.Errorf("%s is %q, want true or false", paramInsecure, insecure)
	}

	weak := strings.EqualFold(cfg.TLSConfig, "preferred") || strings.EqualFold(cfg.TLSConfig, "skip-verify") ||
		cfg.AllowFallbackToPlaintext
	if weak && insecure != "true" {
		return fmt.Errorf(
			"tls=preferred and tls=skip-verify do not protect against an impostor; use tls=true, or "+
				"%s=/path/ca.pem for your own certificate authority, or add %s=true",
			paramCA, paramInsecure)
	}

	if ca == "" {
		return nil
	}
	if weak {
		return fmt.Errorf("%s and tls=%s conflict; remove one", paramCA, cfg.TLSConfig)
	}

	text, err := os.ReadFile(ca)
	if err != nil {
		return fmt.Errorf("%s: %w", paramCA, err)
	}

	pool := x509.NewCertPool()
	if !pool.AppendCertsFromPEM(text) {
		return fmt.Errorf("%s: %s has no PEM certificate", paramCA, ca)
	}

	host, _, err := net.SplitHostPort(cfg.Addr)
	if err != nil {
		host = cfg.Addr
	}

	cfg.TLSConfig, cfg.TLS = "", &tls.Config{RootCAs: pool, ServerName: host, MinVersion: tls.VersionTLS12}
	return nil
}

// Exposed reports whether a DSN leads over a network without TLS. Then an attacker on the path can
// read all data, change what the cluster does, and get the password. The client encrypts the
// password, but without TLS it uses a key that the server sends.
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
