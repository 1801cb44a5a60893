package audit

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"time"

	"go-crontab/internal/loop"
	"go-crontab/job"
	"go-crontab/sql"
)

// Sink receives the copies of audit lines. Write returns when the lines are handed over. That
// takes a few seconds at most, unless a file system hangs.
type Sink interface {
	// Whole reports whether the sink has room for job definitions.
	Whole() bool
	Write(lines [][]byte) error
	Close() error
}

// CopierConfig configures a copier.
type CopierConfig struct {
	DB      *sql.DB
	Sink    Sink
	Dir     string                        // folder for the position; "": only in memory, so a restart skips lines
	Metrics interface{ AuditLogFailed() } // counts failed tries
	Log     *slog.Logger
}

// Copier copies each audit line to a sink after the line is chained. It copies all lines of the
// cluster, no matter which node wrote them.
//
// The position is stored after the lines are written. If we die in between, these lines are copied
// twice, and none is lost. Without a stored position, copying starts with the next new line.
type Copier struct {
	CopierConfig

	at     position
	begun  bool
	failed bool // the last try failed, and the failure was logged
}

// NewCopier returns a copier. The caller runs it.
func NewCopier(cfg CopierConfig) *Copier { return &Copier{CopierConfig: cfg} }

// position is the place after the last copied link.
type position struct {
	Seq  int64      `json:"seq"`
	Hash string     `json:"hash"`
	At   job.Micros `json:"at"`
}

const (
	copyPeriod = time.Second
	copyBatch  = 200
	copyBytes  = 4 << 20 // of a batch, because definitions may be long
)

// Run copies until ctx ends.
func (c *Copier) Run(ctx context.Context) error {
	return loop.Loop{Period: copyPeriod, AtRate: true}.Run(ctx, loop.Each(c.turn))
}

// turn copies all new lines. It logs its own errors.
func (c *Copier) turn(ctx context.Context) error {
	more, err := c.step(ctx)
	if ctx.Err() == nil {
		c.tell(err)
	}

	for more && err == nil && ctx.Err() == nil {
		more, err = c.step(ctx)
	}
	return nil
}

// tell counts errors. It logs the first of consecutive errors, and the recovery.
func (c *Copier) tell(err error) {
	if err != nil {
		c.Metrics.AuditLogFailed()
		if !c.failed {
			c.Log.Error("cannot copy audit lines to the audit log, trying again", "error", err)
		}
	} else if c.failed {
		c.Log.Info("copying audit lines to the audit log again")
	}
	c.failed = err != nil
}

// step copies one batch, and reports whether there may be more.
func (c *Copier) step(ctx context.Context) (more bool, err error) {
	if !c.begun {
		if err := c.begin(ctx); err != nil {
			return false, err
		}
		c.begun = true
	}

	var lines [][]byte
	next, size := c.at, 0
	err = readChain(c.DB.Reader(ctx), c.at.Seq, copyBatch, func(r *chainRow) error {
		if more = size > copyBytes; more {
			return errEnough
		}
		line := c.line(r)
		lines, size = append(lines, line), size+len(line)
		next = positionOf(r.Link)
		return nil
	})
	if err != nil && !errors.Is(err, errEnough) || len(lines) == 0 {
		return false, err
	}
	if err := c.Sink.Write(lines); err != nil {
		return false, err
	}

	c.at = next
	return more || len(lines) == copyBatch, c.save()
}

// positionOf returns the position after a link.
func positionOf(l job.Link) position {
	_, hash, _ := strings.Cut(l.Head(), ":")
	return position{l.Seq, hash, l.At}
}

// begin finds the position at which to continue. After a restore, the last copied link may be
// missing from the chain. Then copying continues with the first line that was written later.
func (c *Copier) begin(ctx context.Context) error {
	head, err := Head(c.DB.Reader(ctx))
	if err != nil {
		return err
	}
	kept, err := c.load()
	if err != nil {
		return err
	}

	if kept.Seq == 0 {
		c.at = positionOf(head)
		return c.save()
	}

	l, err := linkOf(c.DB.Reader(ctx), kept.Seq)
	if err != nil {
		return err
	}
	if l.Seq == 0 && kept.Seq < head.Seq || positionOf(l) == kept { // removed by retention, or unchanged
		c.at = kept
		return nil
	}

	c.Log.Error("the last copied link is missing from the audit chain: the database was restored, "+
		"or the chain was changed; continuing with newer lines", "link", kept.Seq)
	young, err := linkAfter(c.DB.Reader(ctx), kept.At, head.Seq)
	if err != nil {
		return err
	}
	if c.at = positionOf(head); young.Seq != 0 {
		c.at = position{Seq: young.Seq - 1, At: kept.At}
	}
	return nil
}

// file returns the path of the stored position.
func (c *Copier) file() string { return filepath.Join(c.Dir, "audit-log.json") }

// load returns the stored position, or the zero position.
func (c *Copier) load() (p position, err error) {
	if c.Dir == "" {
		return p, nil
	}
	text, err := os.ReadFile(c.file())
	if os.IsNotExist(err) {
		return p, nil
	}
	if err == nil {
		err = json.Unmarshal(text, &p)
	}
	if err != nil {
		err = fmt.Errorf("read the position of the audit log; to continue with the next new line, "+
			"remove the file: %w", err)
	}
	return p, err
}

// save stores the position. If we die here, the previous file stays.
func (c *Copier) save() error {
	if c.Dir == "" {
		return nil
	}

	text, err := json.Marshal(c.at)
	if err == nil {
		err = os.WriteFile(c.file()+".new", text, 0o600)
	}
	if err == nil {
		err = os.Rename(c.file()+".new", c.file())
	}
	if err != nil {
		err = fmt.Errorf("save the position of the audit log: %w", err)
	}
	return err
}

// copied is the JSON of a copied audit line.
type copied struct {
	Seq    int64           `json:"seq"`
	Hash   string          `json:"hash"`
	ID     int64           `json:"id"`
	At     time.Time       `json:"at"`
	Who    string          `json:"who,omitempty"`
	Origin string          `json:"origin,omitempty"`
	Action job.Action      `json:"action"`
	Kind   job.Kind        `json:"kind"`
	Ref    int64           `json:"ref,omitempty"`
	App    string          `json:"app,omitempty"`
	Name   string          `json:"name,omitempty"`
	Reason string          `json:"reason,omitempty"`
	Was    json.RawMessage `json:"was,omitempty"`
	Became json.RawMessage `json:"became,omitempty"`
	Gone   bool            `json:"gone,omitempty"` // the link exists, but its audit line does not
}

// line returns the copy of an audit line.
func (c *Copier) line(r *chainRow) []byte {
	e := &r.Entry
	out := copied{
		Seq: r.Seq, Hash: positionOf(r.Link).Hash, ID: r.Line, At: r.At.Time().UTC(), Who: e.Who,
		Origin: e.Origin, Action: e.Action, Kind: e.Kind, Ref: e.Ref, App: e.App, Name: e.Name,
		Reason: e.Reason, Gone: r.Gone,
	}
	if c.Sink.Whole() {
		out.Was, out.Became = rawJSON(e.Was), rawJSON(e.Became)
	}
	b, _ := json.Marshal(out) // plain values and valid JSON cannot fail
	return b
}

// rawJSON returns a stored text unchanged if it is JSON, or else as a JSON string.
func rawJSON(s string) json.RawMessage {
	if s == "" || json.Valid([]byte(s)) {
		return json.RawMessage(s)
	}
	b, _ := json.Marshal(s) // a text cannot fail
	return b
}
