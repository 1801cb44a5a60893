//go:build unix

package cli

import (
	"fmt"
	"net"
	"net/netip"
	"net/url"
	"os"
	"strconv"
	"strings"
)

// maxAddress is the size of the address column of a session.
const maxAddress = 255

// address returns the URL at which others reach the API of a node that listens at l. People use
// this URL. The console uses it when its own node does not answer. If advertise is given, it wins:
// a host, host:port or URL. Otherwise a node that listens on all addresses uses its host name.
func address(advertise, scheme string, l net.Addr) (string, error) {
	host, port, err := net.SplitHostPort(l.String())
	if err != nil {
		return "", fmt.Errorf("--listen: %w", err)
	}

	if advertise == "" {
		if a, err := netip.ParseAddr(host); err == nil && a.Unmap().IsUnspecified() {
			if host, err = os.Hostname(); err != nil {
				return "", fmt.Errorf("no address for the API: %w; set it with --advertise", err)
			}
		}
		return scheme + "://" + net.JoinHostPort(host, port), nil
	}

	u, err := advertised(advertise)
	if err != nil {
		return "", err
	}

	if !strings.Contains(advertise, "://") {
		u.Scheme = scheme
		if u.Port() == "" {
			u.Host = net.JoinHostPort(u.Hostname(), port)
		}
	}

	return u.String(), nil
}

// advertised parses --advertise. Without a scheme it assumes http.
func advertised(text string) (*url.URL, error) {
	wrong := func(why string) (*url.URL, error) {
		return nil, usageError("--advertise %q: %s; want a host, host:port or URL that others can reach, "+
			"such as web-1:8610 or https://web-1.example.com", text, why)
	}
	whole := text
	if a, err := netip.ParseAddr(text); err == nil && a.Is6() {
		whole = "[" + text + "]"
	}
	if !strings.Contains(whole, "://") {
		whole = "http://" + whole
	}

	u, err := url.Parse(whole)
	if err != nil {
		return wrong("not a host and port")
	}

	port, _ := strconv.Atoi(u.Port())
	switch a, err := netip.ParseAddr(u.Hostname()); {
	case u.Scheme != "http" && u.Scheme != "https":
		return wrong("the scheme is neither http nor https")
	case u.User != nil || strings.Trim(u.Path, "/") != "" || u.RawQuery != "" || u.ForceQuery || u.Fragment != "":
		return wrong("only a scheme, a host and a port are allowed")
	case err == nil && a.Unmap().IsUnspecified():
		return wrong("others cannot reach this address")
	case !isHost(u.Hostname()):
		return wrong("no valid host")
	case strings.HasSuffix(u.Host, ":") || u.Port() != "" && (port < 1 || port > 65535):
		return wrong("the port is not between 1 and 65535")
	case len(whole) > maxAddress-len("s:65535"):
		return wrong("too long")
	}

	u.Path = ""
	return u, nil
}

// isHost reports whether a text is an IP address or looks like a host name.
func isHost(s string) bool {
	if _, err := netip.ParseAddr(s); err == nil {
		return true
	}
	return s != "" && strings.Trim(s, ".-") == s && !strings.Contains(s, "..") &&
		strings.Trim(strings.ToLower(s), "abcdefghijklmnopqrstuvwxyz0123456789.-_") == ""
}
