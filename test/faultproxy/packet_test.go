package faultproxy

import (
	"bufio"
	"bytes"
	"context"
	"encoding/binary"
	"io"
	"net"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/go-sql-driver/mysql"
)

// serveEcho starts a scripted server. It answers every query with an OK packet that carries the
// query's text, so that replies can be told apart. Its handshake has an authentication switch.
func serveEcho(t *testing.T) (address string) {
	t.Helper()
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	done := make(chan struct{})
	t.Cleanup(func() {
		listener.Close()
		<-done
	})

	go func() {
		defer close(done)

		conn, err := listener.Accept()
		if err != nil {
			return
		}
		defer conn.Close()

		r := bufio.NewReader(conn)
		conn.Write(makePacket(0, greeting(0xffffffff)))
		readPacket(r)
		conn.Write(makePacket(2, []byte("\xfeswitch")))
		readPacket(r)
		conn.Write(makePacket(4, []byte{0}))

		for {
			m, err := readMessage(r)
			if err != nil {
				return
			}
			conn.Write(makePacket(m.last+1, append([]byte{0}, m.payload()[1:]...)))
		}
	}()

	return listener.Addr().String()
}

// greeting returns a greeting of MySQL 8 with these capabilities.
func greeting(capabilities uint32) []byte {
	b := []byte("\x0a8.4.0\x00idnosaltsalt\x00")
	b = binary.LittleEndian.AppendUint16(b, uint16(capabilities))
	b = append(b, "\xff\x02\x00"...)
	b = binary.LittleEndian.AppendUint16(b, uint16(capabilities>>16))
	return append(b, "\x15..........more salt\x00plugin\x00"...)
}

// A rawClient speaks packets.
type rawClient struct {
	*testing.T
	net.Conn
	r *bufio.Reader
}

func dialRaw(t *testing.T, address string) rawClient {
	t.Helper()
	conn, err := net.Dial("tcp", address)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { conn.Close() })
	conn.SetDeadline(time.Now().Add(30 * time.Second))
	c := rawClient{t, conn, bufio.NewReader(conn)}
	c.want(0, string(greeting(0xffffffff&^hidingCapabilities)))
	c.Write(makePacket(1, []byte("\x03looks like a query")))
	c.want(2, "\xfeswitch")
	c.Write(makePacket(3, []byte("\x03so does this")))
	c.want(4, "\x00")
	return c
}

func (c rawClient) want(sequence byte, payload string) {
	c.Helper()
	got, err := readPacket(c.r)
	if want := makePacket(sequence, []byte(payload)); err != nil || !bytes.Equal(got, want) {
		c.Fatalf("got %q, %v, want %q", got, err, want)
	}
}

func query(sql string) []byte { return makePacket(0, append([]byte{byte(Query)}, sql...)) }

func TestPacketsInAnyPieces(t *testing.T) {
	t.Parallel()
	p := New(t, "tcp", serveEcho(t))
	var seen []string
	p.OnCommand(func(c Command) { seen = append(seen, c.SQL) })
	c := dialRaw(t, p.Addr())

	for _, b := range query("byte by byte") {
		c.Write([]byte{b})
		time.Sleep(time.Millisecond)
	}
	c.want(1, "\x00byte by byte")
	c.Write(slices.Concat(query("one"), query("and half of"), query("another")[:7]))
	c.want(1, "\x00one")
	c.want(1, "\x00and half of")
	c.Write(query("another")[7:])
	c.want(1, "\x00another")

	want := []string{"byte by byte", "one", "and half of", "another"}
	if p.OnCommand(nil); !slices.Equal(seen, want) {
		t.Errorf("commands: got %q, want %q", seen, want)
	}
}

func TestPipelinedCommandsKeepTheirOrder(t *testing.T) {
	t.Parallel()

	p := New(t, "tcp", serveEcho(t))
	refused := p.Add(Rule{Match: SQL("two"), Action: Error(1213, "40001", "x")})
	held := p.Add(Rule{Match: SQL("three"), Action: Hold(20 * time.Millisecond)})
	cut := p.Add(Rule{Match: SQL("five"), Action: CutBefore()})
	never := p.Add(Rule{Match: SQL("six"), Action: CutBefore()})
	c := dialRaw(t, p.Addr())

	c.Write(slices.Concat(query("one"), query("two"), query("three"), query("four")))
	c.want(1, "\x00one")
	c.want(1, "\xff\xbd\x04#40001x")
	c.want(1, "\x00three")
	c.want(1, "\x00four")
	c.Write(slices.Concat(query("five"), query("six")))
	if _, err := c.r.ReadByte(); err == nil || err == io.EOF {
		t.Errorf("got %v, want a reset", err)
	}

	p.Close() // so that "six" has had its chance
	if refused.Fired() != 1 || held.Fired() != 1 || cut.Fired() != 1 || never.Fired() != 0 {
		t.Errorf("fired %d, %d, %d, %d times, want 1, 1, 1, 0",
			refused.Fired(), held.Fired(), cut.Fired(), never.Fired())
	}
}

func TestCommandLongerThanAPacket(t *testing.T) {
	f := setUp(t)
	f.exec(f.direct, "SET GLOBAL max_allowed_packet = 64 << 20")
	db := f.open(func(c *mysql.Config) { c.MaxAllowedPacket, c.ReadTimeout = 64<<20, 0 })
	long := strings.Repeat("x", maxPayload)
	fault := f.proxy.Add(Rule{Match: SQL(`^SELECT LENGTH`), Times: 2, Action: Hold(1)})

	for _, want := range []int{
		maxPayload,
		maxPayload - len("\x03SELECT LENGTH('')"), // fills its packet completely, so an empty one follows
	} {
		var got int
		if err := db.QueryRow("SELECT LENGTH('" + long[:want] + "')").Scan(&got); err != nil || got != want {
			t.Errorf("got %d, %v, want %d", got, err, want)
		}
	}

	f.wait(fault.Wait)
	f.proxy.Add(Rule{Match: SQL(`^SELECT LENGTH`), Action: Error(1105, "HY000", "no")})
	if _, err := db.Exec("SELECT LENGTH('" + long + "')"); number(err) != 1105 {
		t.Errorf("got %v, want error 1105", err)
	}
	if err := db.PingContext(context.Background()); err != nil {
		t.Error(err)
	}
}

func TestGreetingThatIsNone(t *testing.T) {
	full := greeting(hidingCapabilities)
	for name, payload := range map[string][]byte{
		"nothing":          {},
		"an ERR packet":    []byte("\xff\x10\x04Too many connections"),
		"cut short":        full[:20],
		"without its end":  full[:5],
		"an older version": append([]byte{9}, full[1:]...),
	} {
		packet := makePacket(0, payload)
		before := slices.Clone(packet)
		if plainGreeting(packet); !bytes.Equal(packet, before) {
			t.Errorf("%s: changed to %q", name, packet)
		}
	}
}

func TestWhatBeginsAndEndsATransaction(t *testing.T) {
	for sql, want := range map[string]string{
		"START TRANSACTION":              "begins",
		"start transaction READ ONLY":    "begins",
		" /* job */ BEGIN ;":             "begins",
		"BEGIN WORK":                     "begins",
		"BEGIN NOT ATOMIC SELECT 1; END": "",
		"COMMIT":                         "commits",
		"commit work":                    "commits",
		"SELECT 'COMMIT'":                "",
		"ROLLBACK":                       "rolls back",
		"ROLLBACK TO SAVEPOINT a":        "",
		"UPDATE task SET name = 'START TRANSACTION'": "",
		"/* COMMIT */ UPDATE task SET state = 1":     "",
		"/* a */ /* b\n */ ROLLBACK":                 "rolls back",
		"COMMITTED":                                  "",
	} {
		c, got := Command{Op: Query, SQL: sql}, ""
		switch {
		case c.begins():
			got = "begins"
		case c.IsCommit():
			got = "commits"
		case c.rollsBack():
			got = "rolls back"
		}

		if got != want {
			t.Errorf("%q: got %q, want %q", sql, got, want)
		}
	}
}

func TestWhereRepliesBegin(t *testing.T) {
	run := func(first, n int) (numbers []byte) {
		for i := range n {
			numbers = append(numbers, byte(first+i))
		}
		return numbers
	}

	for name, c := range map[string]struct {
		pipelined int // commands sent at once, after which one is sent per reply read
		packets   [][]byte
		sequence  byte // of each reply's first packet
	}{
		"replies of one packet":        {1, [][]byte{{1}, {1}, {1}}, 1},
		"a result before":              {1, [][]byte{run(1, 7), {1}}, 1},
		"a long result before":         {1, [][]byte{run(1, 900), {1}}, 1},
		"a result that ends on 0":      {1, [][]byte{run(1, 256), {1}}, 1},
		"pipelined":                    {2, [][]byte{{1}, {1}}, 1},
		"pipelined behind a result":    {2, [][]byte{run(1, 7), {1}}, 1},
		"pipelined, long results":      {3, [][]byte{run(1, 900), run(1, 300), {1}}, 1},
		"the command took two packets": {1, [][]byte{run(2, 900), {2}}, 2},
	} {
		var s replies
		s.begins(2) // the handshake's last
		sent := 0
		send := func() {
			sent++
			s.expect(&reply{sequence: c.sequence})
		}

		for range c.pipelined {
			send()
		}

		for i, packets := range c.packets {
			for j, sequence := range packets {
				if got := s.begins(sequence) != nil; got != (j == 0) {
					t.Errorf("%s: reply %d, packet %d: begins = %v", name, i+1, j+1, got)
				}
			}
			if sent == i+1 {
				send()
			}
		}
	}
}

func TestFileIsNoCommand(t *testing.T) {
	var d dialogue
	d.parse(message{raw: query("LOAD DATA LOCAL INFILE 'x' INTO TABLE y")})
	for i := 2; i < 900; i++ {
		m := message{raw: query("COMMIT"), first: byte(i), last: byte(i)}
		if c, ok := d.parse(m); ok {
			t.Fatalf("packet %d taken for %+v", i, c)
		}
	}
}
