package execute

import (
	"context"
	"io"
	"net"
	"net/http"
	"net/netip"
	"strings"
	"sync/atomic"
	"testing"

	"go-crontab/job"
)

func TestKindsOfAddresses(t *testing.T) {
	t.Parallel()
	for k, addrs := range map[kind]string{
		public: `8.8.8.8 1.1.1.1 9.255.255.255 11.0.0.0 100.63.255.255 100.128.0.0 126.255.255.255 128.0.0.0 169.253.255.255 169.255.0.0
			172.15.255.255 172.32.0.0 192.167.255.255 192.169.0.0 198.17.255.255 198.20.0.0 223.255.255.255 168.63.129.15
			2001:4860:4860::8888 2600:: 2a00:1450:4001:80e::200e 64:ff9b::8.8.8.8 ::ffff:8.8.8.8`,
		loopback:    "127.0.0.1 127.255.255.255 ::1 ::ffff:127.0.0.1 ::ffff:7f00:1 64:ff9b::127.0.0.1",
		private:     "10.0.0.1 10.255.255.255 172.16.0.1 172.31.255.255 192.168.0.1 fc00::1 fd00:ec2::253 fd20:ce::255 fec0::1 ::ffff:10.0.0.1 64:ff9b::a00:1",
		shared:      "100.64.0.1 100.100.100.199 100.100.100.201 100.127.255.255",
		linkLocal:   "169.254.169.254 169.254.0.1 fe80::1 febf::1 ::ffff:169.254.169.254 ::ffff:a9fe:a9fe 64:ff9b::169.254.169.254 168.63.129.16 100.100.100.200 fd00:ec2::254 fd20:ce::254",
		multicast:   "224.0.0.1 239.255.255.255 ff02::1 ff0e::1",
		unspecified: "0.0.0.0 0.1.2.3 :: ::ffff:0.0.0.0",
		tunnel:      "2002:7f00:1::1 2002:a9fe:a9fe:: 2001::1 2001:0:4136:e378:8000:63bf:3fff:fdd2 64:ff9b:1::7f00:1 192.88.99.1",
		noServers: `192.0.0.192 192.0.2.1 198.18.0.1 198.19.255.255 198.51.100.1 203.0.113.1 240.0.0.1 255.255.255.255
			::7f00:1 ::2 100::1 2001:2::1 2001:db8::1 3fff::1 4000::1 5f00::1`,
	} {
		for _, text := range strings.Fields(addrs) {
			if got := kindOf(netip.MustParseAddr(text).Unmap()); got != k {
				t.Errorf("%s: got %q, want %q", text, got, k)
			}
		}
	}
}

func TestAllowances(t *testing.T) {
	t.Parallel()

	for _, tc := range []struct {
		allow, host, resolved string
		want                  bool
	}{
		{"", "example.com", "93.184.215.14:80", true},
		{"", "example.com", "127.0.0.1:80", false},
		{"", "::1", "[::1]:80", false},
		{"", "fe80::1", "[fe80::1%lo]:80", false},
		{"127.0.0.1", "x", "127.0.0.1:80", true},
		{"127.0.0.1", "x", "127.0.0.2:80", false},
		{"127.0.0.1", "x", "[::ffff:127.0.0.1]:80", true},
		{"::ffff:127.0.0.1", "x", "127.0.0.1:80", true},
		{"127.0.0.1:8080", "x", "127.0.0.1:8080", true},
		{"127.0.0.1:8080", "x", "127.0.0.1:80", false},
		{"10.0.0.0/8", "x", "10.9.9.9:1", true},
		{"10.7.7.7/8", "x", "10.9.9.9:1", true},
		{"10.0.0.0/8:443", "x", "10.9.9.9:443", true},
		{"10.0.0.0/8:443", "x", "10.9.9.9:80", false},
		{"fd00::/8", "x", "[fd12::1]:80", true},
		{"fd00::/8:443", "x", "[fd12::1]:443", true},
		{"fd00::/8:443", "x", "[fd12::1]:80", false},
		{"[fd00::1]:80", "x", "[fd00::1]:80", true},
		{"169.254.169.254", "x", "169.254.169.254:80", true},
		{"0.0.0.0/0 ::/0", "x", "[fe80::1]:80", true},
		{"intranet.example", "intranet.example", "10.0.0.1:80", true},
		{"Intranet.Example.", "intranet.example", "127.0.0.1:80", true},
		{"intranet.example", "x.intranet.example", "10.0.0.1:80", false},
		{"intranet.example:443", "intranet.example", "10.0.0.1:80", false},
		{"*.intranet.example", "a.b.intranet.example", "10.0.0.1:80", true},
		{"*.intranet.example", "intranet.example", "10.0.0.1:80", false},
		{"*.intranet.example", "xintranet.example", "10.0.0.1:80", false},
		{"*.intranet.example:443", "a.intranet.example", "10.0.0.1:443", true},
		// A name opens only some kinds of addresses.
		{"intranet.example", "intranet.example", "169.254.169.254:80", false},
		{"intranet.example", "intranet.example", "100.100.100.200:80", false},
		{"intranet.example", "intranet.example", "[fd00:ec2::254]:80", false},
		{"intranet.example", "intranet.example", "[fd20:ce::254]:80", false},
		{"100.64.0.0/10", "x", "100.100.100.200:80", true},
		{"intranet.example", "intranet.example", "0.0.0.0:80", false},
		{"intranet.example", "intranet.example", "[2002:7f00:1::]:80", false},
	} {
		g := &guard{machine: thisMachine}
		for _, text := range strings.Fields(tc.allow) {
			a, err := parseAllowance(text)
			if err != nil {
				t.Fatal(err)
			}
			g.allow = append(g.allow, a)
		}
		if err := g.check(tc.host, tc.resolved); (err == nil) != tc.want {
			t.Errorf("with %q, %s at %s: %v, want it let through: %v", tc.allow, tc.host, tc.resolved, err, tc.want)
		}
	}

	for _, text := range []string{
		"", "*", "10.0.0.0/33", "10.0.0", "10.0.0.256", "127.1", "a b", "http://a", "a:0", "a:x", "a:65536", "10.0.0.0/8:x", "10.0.0.0/8:0", "a*.b", "*a", "[fe80::1%lo]:80", "-a",
	} {
		if a, err := parseAllowance(text); err == nil {
			t.Errorf("%q was taken as %+v", text, a)
		}
		if _, err := NewHTTP(HTTPConfig{Allow: []string{text}}); err == nil || !strings.Contains(err.Error(), "want an address such as") {
			t.Errorf("%q: got %v", text, err)
		}
	}
}

// TestGuard sends requests to forbidden addresses, written in all ways.
func TestGuard(t *testing.T) {
	t.Parallel()
	s := newSite(t, func(w http.ResponseWriter, r *http.Request) {
		if to := r.URL.Query().Get("to"); to != "" {
			w.Header().Set("Location", to)
			w.WriteHeader(http.StatusFound)
		}
	})
	_, port, err := net.SplitHostPort(strings.TrimPrefix(s.URL, "http://"))
	if err != nil {
		t.Fatal(err)
	}
	known := map[string][]string{
		"inside.test": {"127.0.0.1"}, "inside6.test": {"::1"}, "mapped.test": {"::ffff:127.0.0.1"}, "cloud.test": {"169.254.169.254"},
		"home.test": {"192.168.1.1"}, "nat.test": {"64:ff9b::7f00:1"}, "both.test": {"10.0.0.1", "fd00::1"}, "any.test": {"0.0.0.0"},
		"api.cluster.test": {"127.0.0.1"},
	}
	resolver := names(t, func(name string) []string { return known[name] })
	closed := requests(t, func(cfg *HTTPConfig) { cfg.Allow, cfg.Resolver = nil, resolver })
	for _, host := range []string{
		"127.0.0.1", "127.0.0.2", "[::1]", "[::ffff:127.0.0.1]", "[::ffff:7f00:1]", "0.0.0.0", "[::]", "localhost", "LOCALHOST", "169.254.169.254",
		"[fe80::1]", "10.0.0.1", "192.168.0.1", "172.16.0.1", "100.64.0.1", "[fd00::1]", "224.0.0.1", "255.255.255.255", "[64:ff9b::7f00:1]", "[2002:7f00:1::]",
		"inside.test", "inside6.test", "mapped.test", "cloud.test", "home.test", "nat.test", "both.test", "any.test", "INSIDE.test",
	} {
		got := closed.call(t, request("http://"+host+":"+port))
		is(t, host, got, job.Failed, "this node connects only to public addresses and those in its --http-allow")
		if !strings.HasPrefix(got.Reason.Text, "cannot connect to ") {
			t.Errorf("%s: got %q", host, got.Reason)
		}
	}
	// A name that is a number in disguise is a name to us; whatever a resolver makes of it is looked at.
	for _, host := range []string{"2130706433", "0x7f.1", "0177.0.0.1", "127.1"} {
		is(t, host, closed.call(t, request("http://"+host+":"+port)), job.Failed, "cannot connect to ")
	}
	is(t, "no name", closed.call(t, request("http://nowhere.test")), job.Failed, "no such host")
	if n := s.connections(); n != 0 {
		t.Fatalf("%d connections were made", n)
	}

	for _, tc := range []struct {
		allow, url string
		ok         bool
	}{
		{"127.0.0.1", "http://inside.test:" + port, true},
		{"127.0.0.0/8:" + port, "http://127.0.0.1:" + port, true},
		{"127.0.0.1:1", "http://127.0.0.1:" + port, false},
		{"*.cluster.test:" + port, "http://api.cluster.test:" + port, true},
		{"*.cluster.test", "http://inside.test:" + port, false},
		{"127.0.0.1", "http://127.0.0.1:" + port + "/?to=http://cloud.test/latest", false},
		{"127.0.0.1", "http://127.0.0.1:" + port + "/?to=http://[::1]:" + port, false},
		{"inside.test", "http://inside.test:" + port + "/?to=http://127.0.0.1:" + port, false},
		{"inside.test", "http://inside.test:" + port + "/?to=/again", true},
	} {
		h := requests(t, func(cfg *HTTPConfig) { cfg.Allow, cfg.Resolver = []string{tc.allow}, resolver })
		got := h.call(t, request(tc.url, func(r *job.HTTP) { r.Redirects = 3 }))
		if tc.ok {
			is(t, tc.allow+" and "+tc.url, got, job.Succeeded)
		} else {
			is(t, tc.allow+" and "+tc.url, got, job.Failed, "this node connects only")
		}
	}
}

// TestGuardLooksAtEachConnection: a name changes its address between two calls.
func TestGuardLooksAtEachConnection(t *testing.T) {
	t.Parallel()
	s := newSite(t, func(w http.ResponseWriter, _ *http.Request) { _, _ = io.WriteString(w, "x") })
	var moved atomic.Bool
	resolver := names(t, func(string) []string {
		if moved.Load() {
			return []string{"169.254.169.254"}
		}
		return []string{"127.0.0.1"}
	})
	h := requests(t, func(cfg *HTTPConfig) { cfg.Allow, cfg.Resolver = []string{"127.0.0.1"}, resolver })
	url := strings.Replace(s.URL, "127.0.0.1", "moves.test", 1)
	is(t, "the first call", h.call(t, request(url)), job.Succeeded)
	h.Close() // its connection
	moved.Store(true)
	is(t, "the second call", h.call(t, request(url)), job.Failed, "this node connects only")
}

// TestNoProxy: a proxy would connect to forbidden addresses.
func TestNoProxy(t *testing.T) {
	t.Parallel()
	if newTransport(&guard{machine: thisMachine}, nil).Proxy != nil {
		t.Error("requests may go over a proxy")
	}
}

func TestGuardedDialEndsWithItsContext(t *testing.T) {
	t.Parallel()
	ctx, cancel := context.WithCancel(context.Background())
	cancel()
	if c, err := (&guard{machine: thisMachine}).dial(ctx, "tcp", "192.0.2.1:80"); err == nil {
		c.Close()
		t.Error("connected")
	}
}
