package execute

import (
	"cmp"
	"context"
	"fmt"
	"net"
	"net/netip"
	"net/url"
	"regexp"
	"strconv"
	"strings"
	"syscall"
	"time"
)

// guard keeps requests away from internal addresses. The author of a job must not reach the node's own machine, its
// network, or the credentials that a cloud provides to the machine. The guard checks the address of each connection
// after all names are resolved, so neither a name nor a redirect can bypass it.
type guard struct {
	allow    []allowance
	machine  *machine
	resolver *net.Resolver // nil: the system's
}

// allowance is an entry of HTTPConfig.Allow. It opens addresses, or the addresses of a host name.
type allowance struct {
	prefix netip.Prefix // if invalid, host counts
	host   string       // lower case; a leading "*." matches any subdomain
	port   string       // "": any
}

var allowedName = regexp.MustCompile(`^(\*\.)?[a-z0-9_]([a-z0-9_.-]*[a-z0-9_])?$`)

// parseAllowance reads 10.0.0.0/8, 10.1.2.3, fd00::/8, intranet.example or *.intranet.example; a port may follow each,
// as in 10.0.0.0/8:8080, [fd00::1]:8080 and intranet.example:8080.
func parseAllowance(text string) (allowance, error) {
	wrong := fmt.Errorf("%q: want an address such as 10.0.0.0/8 or [fd00::1]:8080, "+
		"or a host such as intranet.example:8080 or *.intranet.example", text)
	if prefix, port, ok := cutPrefixPort(text); ok {
		return allowance{prefix: prefix, port: port}, nil
	}

	host, port, err := net.SplitHostPort(text)
	if err != nil {
		host, port = text, ""
	}
	host = canonicalHost(host)
	if _, addrErr := netip.ParseAddr(host); addrErr == nil ||
		!allowedName.MatchString(host) || err == nil && !isPort(port) {
		return allowance{}, wrong
	}
	if _, numeric := strconv.Atoi(strings.ReplaceAll(host, ".", "")); numeric == nil {
		return allowance{}, wrong // an incomplete address, such as 10.0.0
	}
	return allowance{host: host, port: port}, nil
}

// cutPrefixPort reads addresses, with or without a port.
func cutPrefixPort(text string) (prefix netip.Prefix, port string, ok bool) {
	if addr, err := netip.ParseAddr(text); err == nil && addr.Zone() == "" {
		return netip.PrefixFrom(addr.Unmap(), addr.Unmap().BitLen()), "", true
	}
	if ap, err := netip.ParseAddrPort(text); err == nil && ap.Port() != 0 && ap.Addr().Zone() == "" {
		addr := ap.Addr().Unmap()
		return netip.PrefixFrom(addr, addr.BitLen()), strconv.Itoa(int(ap.Port())), true
	}

	if slash := strings.IndexByte(text, '/'); slash >= 0 {
		if colon := strings.LastIndexByte(text, ':'); colon > slash {
			text, port = text[:colon], text[colon+1:]
			if !isPort(port) {
				return netip.Prefix{}, "", false
			}
		}
	}

	prefix, err := netip.ParsePrefix(text)
	return prefix.Masked(), port, err == nil
}

func isPort(s string) bool {
	n, err := strconv.ParseUint(s, 10, 16)
	return err == nil && n > 0
}

// canonicalHost returns the form of a host that can be compared.
func canonicalHost(host string) string { return strings.TrimSuffix(strings.ToLower(host), ".") }

// holds reports whether the allowance covers a host that resolved to addr.
func (a allowance) holds(host, port string, addr netip.Addr) bool {
	if a.port != "" && a.port != port {
		return false
	}
	if a.prefix.IsValid() {
		return a.prefix.Contains(addr)
	}
	if suffix, any := strings.CutPrefix(a.host, "*"); any {
		return strings.HasSuffix(host, suffix) && len(host) > len(suffix)
	}
	return host == a.host
}

// connectTimeout bounds the dial of a connection. It also bounds the TLS handshake, separately.
const connectTimeout = 10 * time.Second

// dial connects to addr, host:port, if the guard allows it.
func (g *guard) dial(ctx context.Context, network, addr string) (net.Conn, error) {
	host, _, err := net.SplitHostPort(addr)
	if err != nil {
		return nil, err
	}
	d := net.Dialer{
		Timeout: connectTimeout, Resolver: g.resolver,
		ControlContext: func(_ context.Context, _, resolved string, _ syscall.RawConn) error {
			return g.check(canonicalHost(host), resolved)
		},
	}
	return d.DialContext(ctx, network, addr)
}

// refusal is the error of an address that the guard does not allow.
type refusal struct {
	host string
	addr netip.Addr
	kind kind
}

func (r *refusal) Error() string {
	what := r.addr.String()
	if r.host != what {
		what = fmt.Sprintf("%.100s is %s, which", r.host, what)
	}
	return fmt.Sprintf("%s is %s; this node connects only to public addresses and those in its --http-allow",
		what, r.kind)
}

// check returns an error unless this node may connect to resolved, the address and port of a host.
func (g *guard) check(host, resolved string) error {
	ap, err := netip.ParseAddrPort(resolved)
	if err != nil {
		return fmt.Errorf("connect to %q: %w", resolved, err)
	}

	addr, port := ap.Addr().Unmap().WithZone(""), strconv.Itoa(int(ap.Port()))
	k, err := g.kindOf(addr)
	if err != nil {
		return err
	}
	if k == public {
		return nil
	}

	for _, a := range g.allow {
		// The owner of an allowed name chooses the name's address. The node trusts that choice
		// within the operator's networks. It does not trust an address that no server has, such as
		// that of a metadata service.
		if a.holds(host, port, addr) && (a.prefix.IsValid() || k.hasServers()) {
			return nil
		}
	}
	return &refusal{host, addr, k}
}

// refuses returns why a URL whose host is an address is not allowed, or nil.
func (h *HTTP) refuses(target string) error {
	u, err := url.Parse(target)
	if err != nil {
		return nil // it is an error elsewhere
	}
	addr, err := netip.ParseAddr(u.Hostname())
	if err != nil {
		return nil
	}
	port, err := strconv.ParseUint(cmp.Or(u.Port(), "80"), 10, 16)
	if err != nil || u.Port() == "" && u.Scheme == "https" {
		port = 443
	}
	return h.pool.guard.check(addr.String(), netip.AddrPortFrom(addr, uint16(port)).String())
}

// kindOf returns the kind of an address for this machine. The machine's own addresses count as
// loopback, even public ones.
func (g *guard) kindOf(addr netip.Addr) (kind, error) {
	k := kindOf(addr)
	if k != public && !k.hasServers() {
		return k, nil
	}

	own, err := g.machine.owns(behindNAT64(addr), time.Now())
	if own {
		k = loopback
	}
	return k, err
}

// kind is the use of an address, as text for refusals.
type kind string

const (
	public      kind = ""
	loopback    kind = "the node's own machine"
	private     kind = "in a private network"
	shared      kind = "in a provider's shared network"
	linkLocal   kind = "link-local, where clouds serve credentials"
	multicast   kind = "a multicast or broadcast address"
	unspecified kind = "an unspecified address"
	noServers   kind = "reserved"
	tunnel      kind = "an address that tunnels to another one"
)

func (k kind) hasServers() bool { return k == loopback || k == private || k == shared }

// kinds are the kinds of addresses that are not public, the more specific prefixes first. IPv6
// addresses outside of 2000::/3 are not in the list, but are not public either.
var kinds = []struct {
	prefix netip.Prefix
	kind   kind
}{
	{netip.MustParsePrefix("0.0.0.0/8"), unspecified},
	{netip.MustParsePrefix("127.0.0.0/8"), loopback},
	{netip.MustParsePrefix("169.254.0.0/16"), linkLocal},
	{netip.MustParsePrefix("100.100.100.200/32"), linkLocal}, // Alibaba's metadata
	{netip.MustParsePrefix("10.0.0.0/8"), private},
	{netip.MustParsePrefix("172.16.0.0/12"), private},
	{netip.MustParsePrefix("192.168.0.0/16"), private},
	{netip.MustParsePrefix("100.64.0.0/10"), shared},
	{netip.MustParsePrefix("168.63.129.16/32"), linkLocal}, // Azure's agent
	{netip.MustParsePrefix("192.0.0.0/24"), noServers},     // Oracle's metadata, among others
	{netip.MustParsePrefix("192.0.2.0/24"), noServers},
	{netip.MustParsePrefix("192.88.99.0/24"), tunnel},
	{netip.MustParsePrefix("198.18.0.0/15"), noServers},
	{netip.MustParsePrefix("198.51.100.0/24"), noServers},
	{netip.MustParsePrefix("203.0.113.0/24"), noServers},
	{netip.MustParsePrefix("224.0.0.0/4"), multicast},
	{netip.MustParsePrefix("240.0.0.0/4"), noServers},

	{netip.MustParsePrefix("::/128"), unspecified},
	{netip.MustParsePrefix("::1/128"), loopback},
	{netip.MustParsePrefix("fe80::/10"), linkLocal},
	{netip.MustParsePrefix("fd00:ec2::254/128"), linkLocal}, // Amazon's metadata
	{netip.MustParsePrefix("fd20:ce::254/128"), linkLocal},  // Google's metadata
	{netip.MustParsePrefix("fc00::/7"), private},
	{netip.MustParsePrefix("fec0::/10"), private},
	{netip.MustParsePrefix("ff00::/8"), multicast},
	{netip.MustParsePrefix("64:ff9b:1::/48"), tunnel}, // NAT64 of a local network
	{netip.MustParsePrefix("2001::/32"), tunnel},      // Teredo
	{netip.MustParsePrefix("2001::/23"), noServers},
	{netip.MustParsePrefix("2001:db8::/32"), noServers},
	{netip.MustParsePrefix("2002::/16"), tunnel}, // 6to4
	{netip.MustParsePrefix("3fff::/20"), noServers},
}

var (
	nat64  = netip.MustParsePrefix("64:ff9b::/96")
	global = netip.MustParsePrefix("2000::/3")
)

// kindOf returns the kind of an address, which must not be an IPv4-mapped IPv6 address.
func kindOf(addr netip.Addr) kind {
	addr = behindNAT64(addr)
	for _, k := range kinds {
		if k.prefix.Contains(addr) {
			return k.kind
		}
	}
	if addr.Is6() && !global.Contains(addr) {
		return noServers
	}
	return public
}

// behindNAT64 returns the IPv4 address to which a NAT64 gateway connects, or the address itself.
func behindNAT64(addr netip.Addr) netip.Addr {
	if !nat64.Contains(addr) {
		return addr
	}
	b := addr.As16()
	return netip.AddrFrom4([4]byte(b[12:]))
}
