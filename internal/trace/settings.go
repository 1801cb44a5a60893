package trace

import (
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"net/url"
	"os"
	"path"
	"strconv"
	"strings"
	"time"
)

// settings say how to reach the collector.
type settings struct {
	address *url.URL
	headers map[string]string
	gzip    bool
	timeout time.Duration // of an attempt; zero: none
	tls     *tls.Config   // nil: the default
}

// lookup returns the value of a setting, and the name of its variable. The variable for traces
// comes before the variable for all signals.
func lookup(setting string) (value, variable string) {
	for _, variable := range []string{"OTEL_EXPORTER_OTLP_TRACES_" + setting, "OTEL_EXPORTER_OTLP_" + setting} {
		if v := strings.TrimSpace(os.Getenv(variable)); v != "" {
			return v, variable
		}
	}
	return "", ""
}

// readSettings reads the environment. Its errors do not quote values that may hold a password.
func readSettings() (s settings, err error) {
	for _, read := range []func() error{s.readAddress, s.readHeaders, s.readTLS} {
		if err := read(); err != nil {
			return s, err
		}
	}

	switch v, name := lookup("COMPRESSION"); v {
	case "", "none":
	case "gzip":
		s.gzip = true
	default:
		return s, fmt.Errorf("%s=%s: want gzip, or none", name, v)
	}

	s.timeout = 10 * time.Second
	if v, name := lookup("TIMEOUT"); v != "" {
		ms, err := strconv.ParseUint(v, 10, 31)
		if err != nil {
			return s, fmt.Errorf("%s=%s: want a number of milliseconds", name, v)
		}
		s.timeout = time.Duration(ms) * time.Millisecond
	}

	return s, nil
}

func (s *settings) readAddress() error {
	s.address = &url.URL{Scheme: "https", Host: "localhost:4318", Path: "/v1/traces"}
	if v, name := lookup("ENDPOINT"); v != "" {
		u, err := url.Parse(v)
		if err != nil || u.Host == "" || u.Scheme != "http" && u.Scheme != "https" {
			return fmt.Errorf("%s: want a URL, such as http://otel:4318", name)
		}

		s.address.Scheme, s.address.Host, s.address.Path = u.Scheme, u.Host, u.Path
		switch {
		case name == "OTEL_EXPORTER_OTLP_ENDPOINT":
			s.address.Path = path.Join("/", u.Path, "v1/traces")
		case u.Path == "":
			s.address.Path = "/"
		}
	}

	if v, _ := lookup("INSECURE"); v != "" {
		s.address.Scheme = "https"
		if strings.EqualFold(v, "true") {
			s.address.Scheme = "http"
		}
	}

	return nil
}

func (s *settings) readHeaders() error {
	s.headers = map[string]string{}
	list, variable := lookup("HEADERS")
	for pair := range strings.SplitSeq(list, ",") {
		if strings.TrimSpace(pair) == "" {
			continue
		}

		name, escaped, found := strings.Cut(pair, "=")
		value, err := url.PathUnescape(escaped)
		if name = strings.TrimSpace(name); name == "" || !found || err != nil {
			return fmt.Errorf("%s: want NAME=VALUE,NAME=VALUE, with values escaped as in URLs", variable)
		}
		s.headers[name] = strings.TrimSpace(value)
	}

	return nil
}

func (s *settings) readTLS() error {
	var c tls.Config
	if file, name := lookup("CERTIFICATE"); file != "" {
		pem, err := os.ReadFile(file)
		if err != nil {
			return fmt.Errorf("%s: %w", name, err)
		}
		c.RootCAs = x509.NewCertPool()
		if !c.RootCAs.AppendCertsFromPEM(pem) {
			return fmt.Errorf("%s: %s has no certificate in PEM format", name, file)
		}
	}

	certificate, name := lookup("CLIENT_CERTIFICATE")
	if key, _ := lookup("CLIENT_KEY"); certificate != "" && key != "" {
		pair, err := tls.LoadX509KeyPair(certificate, key)
		if err != nil {
			return fmt.Errorf("%s: %w", name, err)
		}
		c.Certificates = []tls.Certificate{pair}
	}

	if c.RootCAs == nil && c.Certificates == nil {
		return nil
	}
	if s.address.Scheme == "http" {
		return errors.New("OTEL_EXPORTER_OTLP_CERTIFICATE or …_CLIENT_CERTIFICATE is set, " +
			"but the collector's address begins with http://; write https://")
	}
	s.tls = &c

	return nil
}
