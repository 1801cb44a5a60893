package api

import (
	"crypto/tls"
	"fmt"
	"log/slog"
	"os"
	"sync"
	"time"
)

// certificate is one in files, which are read again when they have changed: certificates are
// renewed while nodes run.
type certificate struct {
	certFile, keyFile string
	log               *slog.Logger

	mu     sync.Mutex
	loaded *tls.Certificate
	read   [2]fileState // of what was loaded
	failed [2]fileState // of what could not be
	looked time.Time
}

// fileState tells versions of a file apart. Links are followed: some replace the folder that they
// lead to.
type fileState struct {
	changed time.Time
	size    int64
}

// strongSuites are the suites of TLS 1.2 with forward secrecy and authenticated encryption: none
// with CBC. TLS 1.3 has no others.
var strongSuites = []uint16{
	tls.TLS_ECDHE_ECDSA_WITH_AES_128_GCM_SHA256,
	tls.TLS_ECDHE_RSA_WITH_AES_128_GCM_SHA256,
	tls.TLS_ECDHE_ECDSA_WITH_AES_256_GCM_SHA384,
	tls.TLS_ECDHE_RSA_WITH_AES_256_GCM_SHA384,
	tls.TLS_ECDHE_ECDSA_WITH_CHACHA20_POLY1305_SHA256,
	tls.TLS_ECDHE_RSA_WITH_CHACHA20_POLY1305_SHA256,
}

// lookEvery is between looks at the files; a look costs two system calls.
const lookEvery = time.Second

// LoadTLS makes what Config.TLS wants of a certificate, with its chain, and a key in PEM files.
// When the files change the new ones are used for new connections, within about a second; if they
// cannot be used the old ones are used on, and the log says so.
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

// current returns the certificate to use now.
func (c *certificate) current(now time.Time) *tls.Certificate {
	c.mu.Lock()
	defer c.mu.Unlock()
	if now.Sub(c.looked) < lookEvery {
		return c.loaded
	}

	c.looked = now
	state, err := c.state()
	if err != nil || state == c.read || state == c.failed {
		return c.loaded // a file that is gone for a moment is being replaced
	}

	if err := c.load(); err != nil {
		// The two may be written one after the other: the next change is looked at again.
		c.failed = state
		c.log.Error("the new certificate cannot be used; the old one is used on", "error", err)
		return c.loaded
	}

	c.log.Info("the certificate was read again", "file", c.certFile)
	return c.loaded
}

func (c *certificate) load() error {
	state, err := c.state() // before the files are read: a change in between is seen by the next look
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
