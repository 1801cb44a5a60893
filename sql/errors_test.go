package sql

import (
	"context"
	"database/sql/driver"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"syscall"
	"testing"

	"github.com/go-sql-driver/mysql"
	"pgregory.net/rapid"
)

func server(number uint16) error {
	e := &mysql.MySQLError{Number: number, SQLState: [5]byte([]byte("HY000")), Message: "as the server says"}
	copy(e.SQLState[:], map[uint16]string{1062: "23000", 1264: "22003", 1406: "22001", 1045: "28000", 4025: "23000",
		1213: "40001"}[number])
	return e
}

// TestErrorsMean checks the meaning of each error of the driver and the server. commit is the
// meaning as an answer to COMMIT; the other columns apply to any statement.
func TestErrorsMean(t *testing.T) {
	t.Parallel()
	const unknown, refused = true, false
	blamesRows := map[string]bool{}
	for _, n := range []uint16{1062, 1406, 1264, 1366, 4025} {
		blamesRows[server(n).Error()] = true
	}

	for name, c := range map[string]struct {
		err                        error
		commit                     bool
		retryable, isRefused, away bool
	}{
		"1213: a deadlock":                             {server(1213), refused, true, false, true},
		"1205: a lock wait timeout":                    {server(1205), refused, true, false, true},
		"3572: NOWAIT would wait":                      {server(3572), unknown, true, false, true},
		"1020: the row changed since it was read":      {server(1020), refused, true, false, true},
		"3101: group replication rolled it back":       {server(3101), refused, true, false, true},
		"1047: cut off from its Galera cluster":        {server(1047), unknown, false, false, true},
		"3797: a new primary that waits in vain":       {server(3797), unknown, false, false, true},
		"1290: the server is read-only":                {server(1290), refused, false, false, true},
		"1792: the transaction is read-only":           {server(1792), refused, false, false, true},
		"1836: the server is in read-only mode":        {server(1836), refused, false, false, true},
		"1040: too many connections":                   {server(1040), unknown, false, false, true},
		"1053: the server shuts down":                  {server(1053), unknown, false, false, true},
		"1062: a duplicate key":                        {server(1062), unknown, false, true, false},
		"1406: a value is too long":                    {server(1406), unknown, false, true, false},
		"1366: a value of another character set":       {server(1366), unknown, false, true, false},
		"1264: a value out of range":                   {server(1264), unknown, false, true, false},
		"4025: MariaDB's check of a column":            {server(4025), unknown, false, true, false},
		"1105: the server does not know itself":        {server(1105), unknown, false, true, false},
		"1180: an error during COMMIT":                 {server(1180), unknown, false, true, false},
		"1317: the statement was interrupted":          {server(1317), unknown, false, false, true},
		"1021: the disk is full":                       {server(1021), unknown, false, false, true},
		"1226: the user has too many connections":      {server(1226), unknown, false, false, true},
		"1045: begun with a password that was changed": {&notBegun{server(1045)}, unknown, false, false, true},
		"1045: access denied to a statement":           {server(1045), unknown, false, true, false},
		"the connection was closed":                    {mysql.ErrInvalidConn, unknown, false, false, true},
		"the driver's connection is bad":               {driver.ErrBadConn, unknown, false, false, true},
		"the read timed out": {
			&net.OpError{Op: "read", Net: "tcp", Err: os.ErrDeadlineExceeded}, unknown, false, false, true,
		},
		"the connection was refused": {
			&net.OpError{Op: "dial", Net: "tcp", Err: syscall.ECONNREFUSED}, unknown, false, false, true,
		},
		"the stream ended":             {io.EOF, unknown, false, false, true},
		"the stream ended in a packet": {io.ErrUnexpectedEOF, unknown, false, false, true},
		"the caller's time is up":      {context.DeadlineExceeded, unknown, false, false, true},
		"the caller went away":         {context.Canceled, unknown, false, false, false},
		"an error of our own":          {errors.New("a due time without a job"), unknown, false, false, false},
		"rows had moved":               {ErrMoved, unknown, false, false, false},
	} {
		t.Run(name, func(t *testing.T) {
			if got, want := BlamesRows(c.err), blamesRows[c.err.Error()]; got != want {
				t.Errorf("got blames its rows %v, want %v", got, want)
			}
			for how, err := range map[string]error{"bare": c.err, "wrapped": fmt.Errorf("start: %w", c.err)} {
				if got := retryable(err); got != c.retryable {
					t.Errorf("%s: got retryable %v, want %v", how, got, c.retryable)
				}
				if got := IsRefused(err); got != c.isRefused {
					t.Errorf("%s: got refused %v, want %v", how, got, c.isRefused)
				}
				if got := IsAway(err); got != c.away {
					t.Errorf("%s: got away %v, want %v", how, got, c.away)
				}

				if IsUnknown(err) {
					t.Errorf("%s: got unknown for what was no answer to COMMIT", how)
				}

				got := commitError(err)
				if IsUnknown(got) != c.commit || !errors.Is(got, c.err) {
					t.Errorf("%s, to COMMIT: got %v (unknown: %v), want unknown: %v", how, got, IsUnknown(got),
						c.commit)
				}

				if IsUnknown(got) && IsRefused(got) {
					t.Errorf("%s, to COMMIT: got both unknown and refused", how)
				}
			}
		})
	}

	if err := commitError(nil); err != nil {
		t.Errorf("a good COMMIT: got %v, want nil", err)
	}
}

// TestUnlistedCommitErrorsAreUnknown: an unlisted number never counts as a refusal.
func TestUnlistedCommitErrorsAreUnknown(t *testing.T) {
	t.Parallel()
	refusals := map[uint16]bool{1213: true, 3101: true, 1290: true, 1792: true, 1836: true, 1020: true, 1205: true}
	rapid.Check(t, func(t *rapid.T) {
		n := rapid.Uint16().Draw(t, "number")
		if got := IsUnknown(commitError(server(n))); got != !refusals[n] {
			t.Fatalf("COMMIT answered with %d: got unknown %v, want %v", n, got, !refusals[n])
		}
	})
}
