package api

import (
	"net"
	"net/http"
	"net/netip"
	"strings"
)

// hosts says which Host headers are served. This stops DNS rebinding: an attacker's page makes its
// own name point to this address. The browser then treats us as that page's origin, but sends the
// page's name as Host.
type hosts struct {
	names   map[string]bool
	address netip.Addr // the listen address; invalid if the node listens on a name
}

func newHosts(listen string, more []string) hosts {
	h := hosts{names: map[string]bool{"localhost": true}}
	for _, name := range append([]string{hostOf(listen)}, more...) {
		h.names[strings.ToLower(hostOf(name))] = true
	}

	delete(h.names, "")
	h.address, _ = netip.ParseAddr(hostOf(listen))
	if hostOf(listen) == "" && listen != "" {
		h.address = netip.IPv6Unspecified() // such as ":8610"
	}
	return h
}

// allow reports whether a Host header is served. An attacker can only rebind a name, not an
// address. So a node that listens on all addresses accepts any address.
func (h hosts) allow(host string) bool {
	host = strings.ToLower(hostOf(host))
	if h.names[host] {
		return true
	}
	a, err := netip.ParseAddr(host)
	return err == nil && (a.Unmap().IsLoopback() || h.address.IsValid() && h.address.IsUnspecified())
}

// hostOf cuts off a port and the brackets of an IPv6 address.
func hostOf(s string) string {
	if host, port, err := net.SplitHostPort(s); err == nil && strings.Trim(port, "0123456789") == "" {
		return host
	}
	return strings.TrimSuffix(strings.TrimPrefix(s, "["), "]")
}

// checkHost refuses requests whose Host header names another host. Paths in anyHost are exempt.
func (s *Server) checkHost(next http.Handler) http.Handler {
	refuse := s.serve(func(w http.ResponseWriter, r *http.Request) error {
		return forbiddenHost.problem(
			"The Host header is %q. Use localhost, the address on which the node listens, or a name that it was "+
				"started with (--host).",
			cutShort(r.Host))
	})

	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if !anyHost[r.URL.Path] && !s.hosts.allow(r.Host) {
			refuse(w, r)
			return
		}
		next.ServeHTTP(w, r)
	})
}
