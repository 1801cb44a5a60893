package sql

import (
	"fmt"
	"reflect"
	"strings"
	"testing"
	"time"

	"github.com/go-sql-driver/mysql"

	"go-crontab/internal/privatedb"
	"go-crontab/test/faultproxy"
	"go-crontab/test/testdb"
)

func TestSplitHosts(t *testing.T) {
	t.Parallel()
	for dsn, want := range map[string][]string{
		"u:p@tcp(a:3306)/s":        {"u:p@tcp(a:3306)/s"},
		"u:p@tcp(a:3306,b:3307)/s": {"u:p@tcp(a:3306)/s", "u:p@tcp(b:3307)/s"},
		"u:p@tcp(a, b ,[::1]:3306)/s?tls=true": {
			"u:p@tcp(a)/s?tls=true", "u:p@tcp(b)/s?tls=true", "u:p@tcp([::1]:3306)/s?tls=true",
		},
		"u:a,b@c(d/e)@tcp(a,b)/s":   {"u:a,b@c(d/e)@tcp(a)/s", "u:a,b@c(d/e)@tcp(b)/s"},
		"u:p@unix(/run/a,b.sock)/s": {"u:p@unix(/run/a,b.sock)/s"},
		"u:p,q@/s":                  {"u:p,q@/s"},
		"tcp(a,b)/s":                {"tcp(a)/s", "tcp(b)/s"},
		"no dsn":                    {"no dsn"},
	} {
		if got, err := splitHosts(dsn); err != nil || !reflect.DeepEqual(got, want) {
			t.Errorf("%s: got %q, %v; want %q", dsn, got, err, want)
		}
	}

	for _, dsn := range []string{"u:p@tcp(a,)/s", "u:p@tcp(,a)/s", "u:p@tcp(a,,b)/s"} {
		if _, err := Open(dsn, DefaultTimeouts, 1); err == nil ||
			!strings.Contains(err.Error(), "an address in the list is empty") {
			t.Errorf("%s: got %v, want an error about the empty address", dsn, err)
		}
	}
}

// FuzzSplitHosts: the parts are addresses of one list as the driver understands it, whatever the
// rest of the DSN contains.
func FuzzSplitHosts(f *testing.F) {
	f.Add("u", "p@(,)/", "a:1", "b:2", "s")
	f.Fuzz(func(t *testing.T, user, password, one, two, schema string) {
		for _, s := range []string{one, two, schema} {
			if s == "" || strings.ContainsAny(s, "@/(),?[] \t\n\v\f\r\u0085\u00a0") || strings.TrimSpace(s) != s {
				return
			}
		}

		if strings.ContainsAny(user, ":/@") {
			return
		}

		each, err := splitHosts(user + ":" + password + "@tcp(" + one + "," + two + ")/" + schema)
		if err != nil || len(each) != 2 {
			t.Fatalf("got %q, %v; want two", each, err)
		}

		for i, addr := range []string{one, two} {
			want, errWant := mysql.ParseDSN(user + ":" + password + "@tcp(" + addr + ")/" + schema)
			got, errGot := mysql.ParseDSN(each[i])
			if (errWant == nil) != (errGot == nil) ||
				errWant == nil && (got.Addr != want.Addr || got.Passwd != want.Passwd || got.DBName != want.DBName) {
				t.Errorf("got %+v, %v; want %+v, %v", got, errGot, want, errWant)
			}
		}
	})
}

func TestExposedByOneOfSeveral(t *testing.T) {
	t.Parallel()
	if Exposed("u:p@tcp(127.0.0.1:1,localhost:2)/s") || !Exposed("u:p@tcp(127.0.0.1:1,db:2)/s") {
		t.Error("a list is exposed when one of its servers is asked over a network")
	}
}

// several is a pool of one connection on a server that is reachable under several addresses.
type several struct {
	*testing.T
	proxies []*faultproxy.Proxy
	db      *DB
}

func severalHosts(t *testing.T, n int) *several {
	t.Helper()
	t.Parallel()
	dsn := testdb.DSN(t)
	cfg, err := mysql.ParseDSN(dsn)
	if err != nil {
		t.Fatal(err)
	}

	s := &several{T: t}
	var addrs []string
	for range n {
		p := faultproxy.New(t, cfg.Net, cfg.Addr)
		s.proxies, addrs = append(s.proxies, p), append(addrs, p.Addr())
	}

	cfg.Net, cfg.Addr = "tcp", addrs[0]
	s.db = open(t, strings.Replace(cfg.FormatDSN(), addrs[0], strings.Join(addrs, ","), 1), DefaultTimeouts, 1)
	return s
}

// leads connects until it succeeds, and checks which address answered.
func (s *several) leads(want int) {
	s.Helper()
	for end := time.Now().Add(30 * time.Second); ; {
		before := make([]int, len(s.proxies))
		for i, p := range s.proxies {
			before[i] = p.Statements()
		}

		var n int
		err := s.db.Raw().QueryRowContext(s.Context(), "SELECT 42").Scan(&n)
		if err != nil && time.Now().Before(end) {
			continue
		}
		if err != nil {
			s.Fatal(err)
		}
		if s.proxies[want].Statements() == before[want] {
			s.Errorf("server %d was not asked", want)
		}

		return
	}
}

func TestHostsInTurn(t *testing.T) {
	s := severalHosts(t, 3)
	s.leads(0)
	s.leads(0)
	s.proxies[0].Refuse()
	s.proxies[0].CutAll()
	s.leads(1)
	s.proxies[0].Heal()
	s.proxies[1].CutAll()
	s.leads(1) // where it was before
	s.proxies[1].Refuse()
	s.proxies[2].Refuse()
	s.proxies[1].CutAll()
	s.leads(0)
	for _, p := range s.proxies {
		p.Refuse()
		p.CutAll()
	}

	if err := s.db.Ping(t.Context()); !IsAway(err) {
		t.Errorf("got %v, want an error that says that all are away", err)
	}

	s.proxies[2].Heal()
	s.leads(2)
}

// TestSilentHost: a server that is cut off does not keep the client from trying the others.
func TestSilentHost(t *testing.T) {
	s := severalHosts(t, 2)
	s.leads(0)
	s.proxies[0].CutAll()
	s.proxies[0].Blackhole(faultproxy.BothWays)
	s.leads(1)
}

// TestCutOffMember: a connection is dropped once its server says that it is cut off from its
// cluster, and new connections avoid that server while it says so.
func TestCutOffMember(t *testing.T) {
	s := severalHosts(t, 2)
	s.leads(0)
	for _, statement := range []string{"SELECT 42", "SHOW GLOBAL VARIABLES"} {
		s.proxies[0].Add(faultproxy.Rule{
			Match: faultproxy.SQL(statement), Times: 1000,
			Action: faultproxy.Error(notReady, "08S01", "WSREP has not yet prepared node for application use"),
		})
	}

	var n int
	if err := s.db.Raw().QueryRowContext(t.Context(), "SELECT 42").Scan(&n); !IsAway(err) {
		t.Errorf("got %v, want error %d", err, notReady)
	}

	s.leads(1)
}

func TestReadOnlyHosts(t *testing.T) {
	t.Parallel()
	one, two := testdb.Server(t), testdb.Server(t)
	dsn := "root@tcp(" + one.Addr() + "," + two.Addr() + ")/crontab"
	readOnly := map[string]*DB{}
	for _, s := range []*privatedb.DB{one, two} {
		if err := s.CreateSchema(t.Context(), "crontab"); err != nil {
			t.Fatal(err)
		}
		readOnly[s.Addr()] = open(t, s.DSN("crontab"), DefaultTimeouts, 1)
	}

	set := func(s *privatedb.DB, value string) {
		t.Helper()
		if _, err := readOnly[s.Addr()].Raw().ExecContext(t.Context(), "SET GLOBAL read_only="+value); err != nil {
			t.Fatal(err)
		}
	}

	set(one, "ON")
	db := open(t, dsn, DefaultTimeouts, 2)
	asked := func() (port int) {
		t.Helper()
		if err := db.Raw().QueryRowContext(t.Context(), "SELECT @@port").Scan(&port); err != nil {
			t.Fatal(err)
		}
		return port
	}

	if got := asked(); !strings.HasSuffix(two.Addr(), fmt.Sprint(":", got)) {
		t.Errorf("port %d is asked, want the server that takes writes, %s", got, two.Addr())
	}

	set(two, "ON")
	if err := db.Ping(t.Context()); err != nil {
		t.Errorf("a connection that stands: %v", err)
	}

	fresh := open(t, dsn, DefaultTimeouts, 1)
	if err := fresh.Ping(t.Context()); err == nil || !strings.Contains(err.Error(), errNoWriter.Error()) {
		t.Errorf("got %v, want it said that no server takes writes", err)
	}

	set(one, "OFF")
	if err := fresh.Ping(t.Context()); err != nil {
		t.Error(err)
	}
}
