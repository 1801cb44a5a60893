package execute

import (
	"bytes"
	"crypto/sha256"
	"crypto/tls"
	"crypto/x509"
	"encoding/json"
	"errors"
	"fmt"

	"go-crontab/job"
)

// tlsOptions are a job's TLS options with the key that they name.
type tlsOptions struct {
	job.HTTPTLS
	key    []byte
	digest [sha256.Size]byte // identifies the options and the key
}

func (h *HTTP) newTLS(a *Attempt, o job.HTTPTLS) (*tlsOptions, error) {
	t := &tlsOptions{HTTPTLS: o}
	if o.ClientKey != "" {
		var err error
		if t.key, err = h.secret(a, o.ClientKey); err != nil {
			return nil, job.Coded(job.ReasonSecretUnreadable, fmt.Errorf("client certificate: %w", err))
		}
	}
	return t.sum(), nil
}

func (t *tlsOptions) sum() *tlsOptions {
	text, _ := json.Marshal(t.HTTPTLS) // text and a bool: no error
	t.digest = sha256.Sum256(bytes.Join([][]byte{text, t.key}, []byte{0}))
	return t
}

// elsewhere returns the options for a redirect to another server. It drops the server name and the
// client certificate.
func (t *tlsOptions) elsewhere() *tlsOptions {
	o := &tlsOptions{HTTPTLS: t.HTTPTLS}
	o.ServerName, o.ClientCert, o.ClientKey = "", "", ""
	return o.sum()
}

// config returns the options as the configuration of a connection.
func (t *tlsOptions) config() (*tls.Config, error) {
	cfg := &tls.Config{ServerName: t.ServerName, InsecureSkipVerify: t.SkipVerify}
	if t.CA != "" {
		cfg.RootCAs = x509.NewCertPool()
		if !cfg.RootCAs.AppendCertsFromPEM([]byte(t.CA)) {
			return nil, errors.New("http.tls.ca: holds no certificate")
		}
	}
	if t.ClientCert != "" {
		pair, err := tls.X509KeyPair([]byte(t.ClientCert), t.key)
		if err != nil {
			return nil, fmt.Errorf("client certificate and the secret %s: %w", t.ClientKey, err)
		}
		cfg.Certificates = []tls.Certificate{pair}
	}
	return cfg, nil
}
