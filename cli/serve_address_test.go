//go:build unix

package cli

import (
	"encoding/json"
	"net"
	"net/http"
	"net/url"
	"os"
	"strings"
	"testing"
)

func TestAdvertisedAddress(t *testing.T) {
	t.Parallel()

	machine, err := os.Hostname()
	if err != nil {
		t.Fatal(err)
	}

	for _, c := range []struct{ advertise, listens, want string }{
		{"", "127.0.0.1:8610", "http://127.0.0.1:8610"},
		{"", "10.1.2.3:8610", "http://10.1.2.3:8610"},
		{"", "[fd00::1]:8610", "http://[fd00::1]:8610"},
		{"", "0.0.0.0:8610", "http://" + machine + ":8610"},
		{"", "[::]:8611", "http://" + machine + ":8611"},
		{"web-1", "[::]:8610", "http://web-1:8610"},
		{"web-1", "127.0.0.1:8610", "http://web-1:8610"},
		{"web_1.example.com:80", "[::]:8610", "http://web_1.example.com:80"},
		{"10.1.2.3", "[::]:8610", "http://10.1.2.3:8610"},
		{"fd00::1", "[::]:8610", "http://[fd00::1]:8610"},
		{"[fd00::1]", "[::]:8610", "http://[fd00::1]:8610"},
		{"[fd00::1]:80", "[::]:8610", "http://[fd00::1]:80"},
		{"https://web-1.example.com", "[::]:8610", "https://web-1.example.com"},
		{"https://web-1.example.com:8443/", "[::]:8610", "https://web-1.example.com:8443"},
	} {
		l, err := net.ResolveTCPAddr("tcp", c.listens)
		if err != nil {
			t.Fatal(err)
		}
		if got, err := address(c.advertise, "http", l); err != nil || got != c.want {
			t.Errorf("%q, listening at %s: got %q, %v; want %q", c.advertise, c.listens, got, err, c.want)
		}
	}

	for advertise, want := range map[string]string{
		"0.0.0.0":                "others cannot reach this address",
		"[::]:8610":              "others cannot reach this address",
		"::":                     "others cannot reach this address",
		":8610":                  "no valid host",
		"http://":                "no valid host",
		"web 1":                  "not a host and port",
		"web-1.":                 "no valid host",
		"wéb":                    "no valid host",
		"web-1:":                 "the port is not between 1 and 65535",
		"web-1:0":                "the port is not between 1 and 65535",
		"web-1:65536":            "the port is not between 1 and 65535",
		"web-1:http":             "not a host and port",
		"ftp://web-1":            "is neither http nor https",
		"web-1/console":          "only a scheme, a host and a port",
		"https://u:p@web-1":      "only a scheme, a host and a port",
		"https://web-1?a=b":      "only a scheme, a host and a port",
		strings.Repeat("a", 255): "too long",
	} {
		got := command("serve", "--dsn", "u@tcp(127.0.0.1:1)/d", "--advertise", advertise)
		if got.code != exitUsage || !strings.Contains(got.err, "--advertise") || !strings.Contains(got.err, want) ||
			!strings.Contains(got.err, "web-1:8610") {
			t.Errorf("%q: got %+v, want it refused: %s", advertise, got, want)
		}
	}
}

// TestAddressOfNodes: a node that listens on all addresses has an address with its host name, and
// answers there.
func TestAddressOfNodes(t *testing.T) {
	t.Parallel()

	dsn := migrated(t)
	machine, err := os.Hostname()
	if err != nil {
		t.Fatal(err)
	}

	one := serve(t, dsn, "one", "--listen", "0.0.0.0:0", "--insecure-http").ready()
	two := serve(t, dsn, "two", "--advertise", "cron-2.example:80").ready()
	at, err := url.Parse(one.url)
	if err != nil {
		t.Fatal(err)
	}

	var cluster struct {
		Sessions []struct{ Node, Address string }
	}
	if got := two.ask("cluster", "-o", "json"); json.Unmarshal([]byte(got.out), &cluster) != nil {
		t.Fatalf("%+v", got)
	}

	want := map[string]string{"one": "http://" + machine + ":" + at.Port(), "two": "http://cron-2.example:80"}
	for _, s := range cluster.Sessions {
		if s.Address != want[s.Node] {
			t.Errorf("%s: got %q, want %q", s.Node, s.Address, want[s.Node])
		}
	}

	if len(cluster.Sessions) != 2 {
		t.Errorf("got %+v, want two sessions", cluster)
	}

	for node, host := range map[*server]string{one: machine, two: "cron-2.example"} {
		req, err := http.NewRequest(http.MethodGet,
			"http://127.0.0.1:"+node.url[strings.LastIndexByte(node.url, ':')+1:]+"/", nil)
		if err != nil {
			t.Fatal(err)
		}

		req.Host = host
		resp, err := http.DefaultClient.Do(req)
		if err != nil {
			t.Fatal(err)
		}

		resp.Body.Close()
		if resp.StatusCode != http.StatusOK {
			t.Errorf("asked as %s: got %s", host, resp.Status)
		}
	}
}
