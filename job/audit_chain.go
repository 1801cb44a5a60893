package job

import (
	"crypto/sha256"
	"encoding/binary"
	"encoding/hex"
	"fmt"
	"strconv"
	"strings"

	"go-crontab/job/problem"
)

// Link is the place of an audit line in the chain of hashes. The zero Link comes before the first
// line.
type Link struct {
	Seq  int64 // from 1, without a gap
	Line int64 // id of the audit line
	At   Micros
	Hash [32]byte
}

// timeBytes is how many bytes of a hash hold the time of its line.
const timeBytes = 8

// Next returns the link of the next line. Its hash begins with the time of the line, so the time
// remains known after old lines are removed. The other bytes come from a SHA-256 of the previous
// hash, the sequence number and all fields of the line. Each field is written as its length, a
// colon, its bytes and a comma, so different lines never have equal input.
func (l Link) Next(e *Entry) Link {
	next := Link{Seq: l.Seq + 1, Line: e.ID, At: e.At}
	h := sha256.New()
	h.Write(l.Hash[:])

	for _, field := range []string{
		strconv.FormatInt(next.Seq, 10), strconv.FormatInt(e.ID, 10), strconv.FormatInt(int64(e.At), 10), e.Who,
		e.Origin,
		string(e.Action), string(e.Kind), strconv.FormatInt(e.Ref, 10), e.App, e.Name, e.Reason, e.Was, e.Became,
	} {
		fmt.Fprintf(h, "%d:%s,", len(field), field)
	}

	binary.BigEndian.PutUint64(next.Hash[:timeBytes], uint64(e.At))
	copy(next.Hash[timeBytes:], h.Sum(nil))
	return next
}

// Written returns the time of the line, which is part of its hash. A changed time changes the hash.
func (l Link) Written() Micros { return Micros(binary.BigEndian.Uint64(l.Hash[:timeBytes])) }

// Head formats a link as SEQ:HASH, for people to keep.
func (l Link) Head() string { return fmt.Sprintf("%d:%x", l.Seq, l.Hash) }

// ParseHead reads the output of Head. The result has no Line and no At.
func ParseHead(text string) (Link, error) {
	number, hash, _ := strings.Cut(text, ":")
	seq, err := strconv.ParseInt(number, 10, 64)
	b, hexErr := hex.DecodeString(hash)

	if err != nil || hexErr != nil || seq < 1 || len(b) != len(Link{}.Hash) {
		return Link{}, problem.Errorf(problem.NotAChainHead, text)
	}
	return Link{Seq: seq, Hash: [32]byte(b)}, nil
}
