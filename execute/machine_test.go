package execute

import (
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"net/netip"
	"os"
	"os/exec"
	"strings"
	"testing"
	"time"

	"go-crontab/job"
)

// TestGuardKnowsItsMachine sends requests to the machine by a public address. The address is added to the
// loopback interface where the test may do that, and to the list of addresses otherwise.
func TestGuardKnowsItsMachine(t *testing.T) {
	t.Parallel()
	s := newSite(t, func(w http.ResponseWriter, _ *http.Request) { _, _ = io.WriteString(w, "INTERNAL") }, listenEverywhere)
	_, port, err := net.SplitHostPort(s.Listener.Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	public := fmt.Sprintf("11.22.33.%d", 1+os.Getpid()%250)
	own := &machine{list: addAddress(t, public)}

	h := requests(t, func(cfg *HTTPConfig) { cfg.Allow = nil })
	h.pool.guard.machine = own
	for _, host := range []string{public, "[::ffff:" + public + "]", "[64:ff9b::" + public + "]"} {
		is(t, host, h.call(t, request("http://"+host+":"+port)), job.Failed, "is the node's own machine; this node connects only to public addresses")
	}

	g, err := newGuard(HTTPConfig{}) // what alerts and pings use
	if err != nil {
		t.Fatal(err)
	}
	if g.machine != thisMachine {
		t.Error("a guard does not know the machine")
	}
	g.machine = own
	if conn, err := g.dial(t.Context(), "tcp", net.JoinHostPort(public, port)); err == nil {
		_ = conn.Close()
		t.Error("an alert reached the node's own machine")
	}
	if n := s.connections(); n != 0 {
		t.Errorf("%d connections were made", n)
	}

	g, err = newGuard(HTTPConfig{Allow: []string{public}})
	if err != nil {
		t.Fatal(err)
	}
	g.machine = own
	if err := g.check(public, net.JoinHostPort(public, port)); err != nil {
		t.Errorf("opened by --http-allow: got %v", err)
	}
}

func listenEverywhere(s *httptest.Server) {
	_ = s.Listener.Close()
	s.Listener, _ = net.Listen("tcp", ":0") // nil makes the server panic
}

// addAddress gives the machine an address until the test ends, and returns what lists its addresses.
func addAddress(t *testing.T, address string) func() ([]net.Addr, error) {
	t.Helper()
	err := exec.Command("ip", "addr", "add", address+"/32", "dev", "lo").Run()
	if err != nil {
		t.Logf("the address is only listed: ip addr add: %v", err)
		return func() ([]net.Addr, error) { return []net.Addr{prefix(address + "/32")}, nil }
	}
	t.Cleanup(func() {
		if err := exec.Command("ip", "addr", "del", address+"/32", "dev", "lo").Run(); err != nil {
			t.Errorf("ip addr del %s: %v", address, err)
		}
	})
	return net.InterfaceAddrs
}

// prefix is an address of an interface.
type prefix string

func (prefix) Network() string  { return "ip+net" }
func (p prefix) String() string { return string(p) }

func TestMachineIsReadEachMinute(t *testing.T) {
	t.Parallel()
	var list []net.Addr
	var broken error
	reads := 0
	m := &machine{list: func() ([]net.Addr, error) { reads++; return list, broken }}
	start := time.Now()
	owns := func(address string, after time.Duration) bool {
		t.Helper()
		own, err := m.owns(netip.MustParseAddr(address), start.Add(after))
		if err != nil {
			t.Fatal(err)
		}
		return own
	}

	list = []net.Addr{prefix("11.22.33.44/24"), prefix("2600::1/64"), prefix("::ffff:11.1.1.1/128")}
	for address, want := range map[string]bool{"11.22.33.44": true, "11.22.33.45": false, "2600::1": true, "2600::2": false, "11.1.1.1": true} {
		if got := owns(address, 0); got != want {
			t.Errorf("%s: got %v, want %v", address, got, want)
		}
	}
	list = append(list, prefix("11.22.33.45/24"))
	if owns("11.22.33.45", addressAge-1); reads != 1 {
		t.Errorf("the list was read %d times within a minute, want once", reads)
	}
	if !owns("11.22.33.45", addressAge) || reads != 2 {
		t.Errorf("a new address is not known a minute later; the list was read %d times", reads)
	}

	broken = errors.New("no netlink")
	if _, err := m.owns(netip.MustParseAddr("8.8.8.8"), start.Add(3*addressAge)); !errors.Is(err, broken) {
		t.Errorf("without a list: got %v", err)
	}
}

func TestOwnAddressesAreLoopback(t *testing.T) {
	t.Parallel()
	g := &guard{machine: &machine{list: func() ([]net.Addr, error) {
		return []net.Addr{prefix("11.22.33.44/24"), prefix("10.0.0.7/8"), prefix("fe80::1/64"), prefix("2600::1/64")}, nil
	}}}
	for address, want := range map[string]kind{
		"11.22.33.44": loopback, "11.22.33.45": public, "10.0.0.7": loopback, "10.0.0.8": private, "2600::1": loopback,
		"fe80::1": linkLocal, "127.0.0.1": loopback, "64:ff9b::11.22.33.44": loopback, "64:ff9b::11.22.33.45": public,
	} {
		if got, err := g.kindOf(netip.MustParseAddr(address)); got != want || err != nil {
			t.Errorf("%s: got %q, %v, want %q", address, got, err, want)
		}
	}
	if err := g.check("x", "11.22.33.44:80"); err == nil || !strings.Contains(err.Error(), "x is 11.22.33.44, which is the node's own machine") {
		t.Errorf("got %v", err)
	}
}
