package cli

import (
	"crypto/x509"
	"fmt"
	"net/url"
	"os"
	"strings"
)

// normalServers completes the URLs of nodes, which have commas between them. For example, :8610 and
// host:8610 become URLs.
func normalServers(text string) string {
	servers := strings.Split(text, ",")
	for i, s := range servers {
		s = strings.TrimSpace(s)
		if strings.HasPrefix(s, ":") {
			s = "127.0.0.1" + s
		}
		if s != "" && !strings.Contains(s, "://") {
			s = "http://" + s
		}
		servers[i] = strings.TrimRight(s, "/")
	}
	return strings.Join(servers, ",")
}

// checkServers refuses texts that are not URLs of nodes. It also refuses a URL with a password,
// because URLs are printed.
func checkServers(text string) error {
	for _, s := range strings.Split(text, ",") {
		u, err := url.Parse(strings.TrimSpace(s))
		if err != nil || u.Host == "" || u.Scheme != "http" && u.Scheme != "https" || u.User != nil {
			shown := s[strings.LastIndex(s, "@")+1:]
			return usageError("--server %q: want a URL such as %s, without a password", shown, defaultServer)
		}
	}
	return nil
}

// tokenOfDev returns the token of dev, if all servers are nodes of the same dev.
func tokenOfDev(servers string) string {
	known := ""
	for i, s := range strings.Split(servers, ",") {
		token := knownToken(s)
		if i > 0 && token != known {
			return ""
		}
		known = token
	}
	return known
}

// readAuthorities reads the certificates of authorities from a PEM file.
func readAuthorities(file string) (*x509.CertPool, error) {
	text, err := os.ReadFile(file)
	if err != nil {
		return nil, usageError("--ca-cert: %w", err)
	}
	roots := x509.NewCertPool()
	if !roots.AppendCertsFromPEM(text) {
		return nil, usageError("--ca-cert %q: the file has no certificate in PEM format", file)
	}
	return roots, nil
}

// failedAt returns the server of a failed request. request is the request's URL.
func (r *remote) failedAt(request string) string {
	if u, err := url.Parse(request); err == nil && strings.Contains(r.server, ",") {
		return fmt.Sprintf("%s://%s", u.Scheme, u.Host)
	}
	return r.server
}
