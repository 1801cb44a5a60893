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

// Link is the place of one audit line in the chain of hashes. The zero Link stands before the first line.
type Link struct {
	Seq  int64 // from 1, without a gap
	Line int64 // id of the audit line
	At   Micros
	Hash [32]byte
}

// timeBytes is how many bytes of a hash say when its line was written.
const timeBytes = 8

// Next returns the link of the line that follows. Its hash begins with the time of the line, which stays known when old
// lines are removed. The rest is from the SHA-256 of the hash before, the sequence number and all fields of the line. Each of
// these is written as its length, a colon, its bytes and a comma, so no two lines read the same.
func (l Link) Next(e *Entry) Link {
	next := Link{Seq: l.Seq + 1, Line: e.ID, At: e.At}
	h := sha256.New()
	h.Write(l.Hash[:])

	for _, field := range []string{
		strconv.FormatInt(next.Seq, 10), strconv.FormatInt(e.ID, 10), strconv.FormatInt(int64(e.At), 10), e.Who, e.Origin,
		string(e.Action), string(e.Kind), strconv.FormatInt(e.Ref, 10), e.App, e.Name, e.Reason, e.Was, e.Became,
	} {
		fmt.Fprintf(h, "%d:%s,", len(field), field)
	}

	binary.BigEndian.PutUint64(next.Hash[:timeBytes], uint64(e.At))
	copy(next.Hash[timeBytes:], h.Sum(nil))
	return next
}

// Written is when the line was written, by the hash: nobody can change that without changing the hash.
func (l Link) Written() Micros { return Micros(binary.BigEndian.Uint64(l.Hash[:timeBytes])) }

// Head is how people keep a link: SEQ:HASH.
func (l Link) Head() string { return fmt.Sprintf("%d:%x", l.Seq, l.Hash) }

// ParseHead reads what Head writes. Line and At are not in it.
func ParseHead(text string) (Link, error) {
	number, hash, _ := strings.Cut(text, ":")
	seq, err := strconv.ParseInt(number, 10, 64)
	b, hexErr := hex.DecodeString(hash)

	if err != nil || hexErr != nil || seq < 1 || len(b) != len(Link{}.Hash) {
		return Link{}, problem.Errorf(problem.NotAChainHead, text)
	}
	return Link{Seq: seq, Hash: [32]byte(b)}, nil
}
