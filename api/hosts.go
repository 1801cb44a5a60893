package api

import (
	"net"
	"net/http"
	"net/netip"
	"strings"
)

// hosts is which Host headers are served. A web page whose name was pointed at this address (DNS
// rebinding) is of our origin as far as its browser knows, but it cannot help sending its own name.
type hosts struct {
	names   map[string]bool
	address netip.Addr // where we listen; not valid when that is a name
}

func newHosts(listen string, more []string) hosts {
	h := hosts{names: map[string]bool{"localhost": true}}
	for _, name := range append([]string{hostOf(listen)}, more...) {
		h.names[strings.ToLower(hostOf(name))] = true
	}

	delete(h.names, "")
	h.address, _ = netip.ParseAddr(hostOf(listen))
	if hostOf(listen) == "" && listen != "" {
		h.address = netip.IPv6Unspecified() // ":8610"
	}
	return h
}

// allow tells whether a Host header is served. An address in it is none that a name server made up:
// where we listen on all addresses any will do.
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

// checkHost refuses requests to names that are not ours. See anyHost for what anybody may ask.
func (s *Server) checkHost(next http.Handler) http.Handler {
	refuse := s.serve(func(w http.ResponseWriter, r *http.Request) error {
		return forbiddenHost.problem(
			"The Host header is %q; use localhost, the address that the node listens on, or a name that it was "+
				"started with.",
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
