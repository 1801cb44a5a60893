package api

import (
	"crypto/tls"
	"fmt"
	"log/slog"
	"os"
	"sync"
	"time"
)

// certificate is a certificate in files. Certificates are renewed while nodes run, so the files are
// read again when they change.
type certificate struct {
	certFile, keyFile string
	log               *slog.Logger

	mu      sync.Mutex
	loaded  *tls.Certificate
	read    [2]fileState // the files of loaded
	failed  [2]fileState // the latest files that could not be loaded
	checked time.Time    // when the files were last checked
}

// fileState identifies a version of a file. Links are followed, because some tools change a folder
// by pointing a link to another folder.
type fileState struct {
	changed time.Time
	size    int64
}

// strongSuites are the TLS 1.2 suites with forward secrecy and authenticated encryption. No CBC
// suite is among them. All suites of TLS 1.3 have both properties.
var strongSuites = []uint16{
	tls.TLS_ECDHE_ECDSA_WITH_AES_128_GCM_SHA256,
	tls.TLS_ECDHE_RSA_WITH_AES_128_GCM_SHA256,
	tls.TLS_ECDHE_ECDSA_WITH_AES_256_GCM_SHA384,
	tls.TLS_ECDHE_RSA_WITH_AES_256_GCM_SHA384,
	tls.TLS_ECDHE_ECDSA_WITH_CHACHA20_POLY1305_SHA256,
	tls.TLS_ECDHE_RSA_WITH_CHACHA20_POLY1305_SHA256,
}

// fileCheckEvery is the interval between checks of the files. A check costs two system calls.
const fileCheckEvery = time.Second

// LoadTLS makes a Config.TLS from PEM files: a certificate with its chain, and its key. When the
// files change, new connections use the new certificate within about a second. If the new
// certificate is unusable, the old one stays in use and an error is logged.
func LoadTLS(certFile, keyFile string, log *slog.Logger) (*tls.Config, error) {
	c := &certificate{certFile: certFile, keyFile: keyFile, log: log}
	if err := c.load(); err != nil {
		return nil, err
	}
	return &tls.Config{
		MinVersion:     tls.VersionTLS12,
		CipherSuites:   strongSuites,
		GetCertificate: func(*tls.ClientHelloInfo) (*tls.Certificate, error) { return c.current(time.Now()), nil },
	}, nil
}

// current returns the certificate to use at the given time.
func (c *certificate) current(now time.Time) *tls.Certificate {
	c.mu.Lock()
	defer c.mu.Unlock()

	if now.Sub(c.checked) < fileCheckEvery {
		return c.loaded
	}

	c.checked = now
	state, err := c.state()
	if err != nil || state == c.read || state == c.failed {
		return c.loaded // a missing file is probably being replaced
	}

	if err := c.load(); err != nil {
		// The certificate and the key may be written one after the other. So these versions of the
		// files are not tried again, but the next change is.
		c.failed = state
		c.log.Error("cannot use the new certificate; keeping the old one", "error", err)
		return c.loaded
	}

	c.log.Info("reloaded the certificate", "file", c.certFile)
	return c.loaded
}

func (c *certificate) load() error {
	state, err := c.state() // first, so that the next check sees a change made during the load
	if err != nil {
		return err
	}

	pair, err := tls.LoadX509KeyPair(c.certFile, c.keyFile)
	if err != nil {
		return fmt.Errorf("certificate %s and key %s: %w", c.certFile, c.keyFile, err)
	}

	c.loaded, c.read = &pair, state
	return nil
}

func (c *certificate) state() (s [2]fileState, err error) {
	for i, name := range []string{c.certFile, c.keyFile} {
		info, err := os.Stat(name)
		if err != nil {
			return s, err
		}
		s[i] = fileState{info.ModTime(), info.Size()}
	}
	return s, nil
}
