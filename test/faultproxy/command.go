package faultproxy

import (
	"encoding/binary"
	"regexp"
	"slices"
	"strings"
	"sync"
)

// Op is the first byte of a command.
type Op byte

// The commands that mean something to the proxy. All others pass with an empty text.
const (
	Quit            Op = 0x01
	Query           Op = 0x03
	Ping            Op = 0x0e
	ChangeUser      Op = 0x11
	Prepare         Op = 0x16
	Execute         Op = 0x17
	SendLongData    Op = 0x18
	CloseStatement  Op = 0x19
	ResetConnection Op = 0x1f
)

// A Command is a request of a client.
type Command struct {
	Conn int // number of the connection at this proxy, from 1
	Op   Op
	SQL  string // of Query, Prepare and Execute, on one line; a prepared statement keeps its question marks
	// Tx holds the earlier statements of the open transaction, its BEGIN included, or is nil.
	Tx []string

	first bool // it begins a transaction because autocommit is off
}

// IsStatement reports whether the command runs SQL. Preparing does not count.
func (c Command) IsStatement() bool { return c.Op == Query || c.Op == Execute }

// IsCommit reports whether the command commits a transaction.
func (c Command) IsCommit() bool { return c.IsStatement() && commits.MatchString(c.SQL) }

func (c Command) begins() bool { return c.IsStatement() && (c.first || begins.MatchString(c.SQL)) }

func (c Command) rollsBack() bool { return c.IsStatement() && rollsBack.MatchString(c.SQL) }

// isAnswered reports whether the server will reply.
func (c Command) isAnswered() bool {
	return c.Op != Quit && c.Op != SendLongData && c.Op != CloseStatement
}

const (
	comments = `(?is)^\s*(?:/\*.*?\*/\s*)*`
	theEnd   = `(?:\s+WORK)?\s*;?\s*$` // a ROLLBACK TO SAVEPOINT ends nothing
)

var (
	begins    = regexp.MustCompile(comments + `(?:START\s+TRANSACTION|BEGIN` + theEnd + `)`)
	commits   = regexp.MustCompile(comments + `COMMIT` + theEnd)
	rollsBack = regexp.MustCompile(comments + `ROLLBACK` + theEnd)
	sets      = regexp.MustCompile(comments + `SET\s+(?:SESSION\s+)?autocommit\s*=\s*([01])`)
)

// A dialogue is the state of a connection that is needed to understand its next command. Only the
// client's reader uses it, except for prepared, which the server's reader adds to.
type dialogue struct {
	conn int
	last byte // sequence number of the client's last packet
	tx   []string

	manual bool // autocommit is off

	mu       sync.Mutex
	prepared map[uint32]string
}

// parse returns the command in m, if m begins one. Packet numbers wrap: a 0 after a 255 continues
// something long, a file for LOAD DATA LOCAL.
func (d *dialogue) parse(m message) (Command, bool) {
	isCommand := m.first == 0 && d.last != 0xff
	d.last = m.last
	payload := m.payload()
	if !isCommand || len(payload) == 0 {
		return Command{}, false
	}

	c := Command{Conn: d.conn, Op: Op(payload[0]), Tx: slices.Clip(d.tx)}
	switch c.Op {
	case Query, Prepare:
		c.SQL = oneLine(string(payload[1:]))
	case Execute, CloseStatement:
		c.SQL = oneLine(d.statement(payload[1:], c.Op == CloseStatement))
	}

	c.first = d.manual && d.tx == nil && c.IsStatement() && !c.IsCommit() && !c.rollsBack() && !sets.MatchString(c.SQL)
	return c, true
}

// forwarded follows the transaction: c is on its way to the server.
func (d *dialogue) forwarded(c Command) {
	set := sets.FindStringSubmatch(c.SQL)
	switch {
	case c.IsStatement() && set != nil:
		d.manual, d.tx = set[1] == "0", nil
	case c.begins():
		d.tx = []string{c.SQL}
	case c.IsCommit(), c.rollsBack():
		d.tx = nil
	case c.Op == ResetConnection, c.Op == ChangeUser:
		d.tx, d.manual = nil, false
	case c.IsStatement() && d.tx != nil:
		d.tx = append(d.tx, c.SQL)
	}
}

// learn remembers the statement whose preparation the server has just confirmed with this packet.
func (d *dialogue) learn(sql string, packet []byte) {
	const ok = 0
	payload := packet[headerSize:]
	if len(payload) < 5 || payload[0] != ok {
		return
	}
	d.mu.Lock()
	defer d.mu.Unlock()

	if d.prepared == nil {
		d.prepared = map[uint32]string{}
	}

	d.prepared[binary.LittleEndian.Uint32(payload[1:])] = sql
}

// statement returns the text of a prepared statement by its id, and forgets it if asked to.
func (d *dialogue) statement(id []byte, forget bool) string {
	if len(id) < 4 {
		return ""
	}
	d.mu.Lock()
	defer d.mu.Unlock()

	n := binary.LittleEndian.Uint32(id)
	sql := d.prepared[n]
	if forget {
		delete(d.prepared, n)
	}

	return sql
}

// oneLine writes a statement with one space for each break and indent, so that rules do not depend on
// its layout.
func oneLine(sql string) string { return strings.Join(strings.Fields(sql), " ") }
