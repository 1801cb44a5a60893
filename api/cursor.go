package api

import (
	"encoding/base64"
	"fmt"

	"go-crontab/job"
	"go-crontab/sql/read"
)

// cursor is the position after which the next page of a list begins. To clients it is an opaque
// text. It holds no secret, and a forged cursor selects no more than a filter could.
type cursor struct {
	list      string // the list that the cursor belongs to
	executing bool   // the position is among executing runs, which precede ended ones
	part      string // for job lists filtered by a part of the name, see read.JobPlace
	read.RunPlace
}

const cursorFormat = "%s %t %d %d %d %d %d %d %q"

func (c *cursor) String() string {
	text := fmt.Appendf(nil, cursorFormat,
		c.list, c.executing, c.ID, int64(c.Due), int64(c.DueNow), c.Request, c.Attempt, c.Hash, c.part)
	return base64.RawURLEncoding.EncodeToString(text)
}

func parseCursor(s string) (*cursor, bool) {
	text, err := base64.RawURLEncoding.DecodeString(s)
	if err != nil {
		return nil, false
	}

	var (
		c           cursor
		due, dueNow int64
	)
	_, err = fmt.Sscanf(string(text), cursorFormat,
		&c.list, &c.executing, &c.ID, &due, &dueNow, &c.Request, &c.Attempt, &c.Hash, &c.part)
	if err != nil {
		return nil, false
	}

	c.Due, c.DueNow = job.Micros(due), job.Micros(dueNow)
	return &c, c.String() == s // refuse other texts that Sscanf accepts
}

// place returns the position in a list of anything but runs.
func (c *cursor) place() *read.ListPlace { return &read.ListPlace{ID: c.ID, Due: c.Due} }

// runPlace converts a position to the form that a cursor holds.
func runPlace(p *read.ListPlace) read.RunPlace { return read.RunPlace{ID: p.ID, Due: p.Due} }

// oneMore cuts off the extra row, which was read only to see whether there is a next page. It also
// returns the cursor of the next page.
func oneMore[R any](list string, rows []R, limit int, id func(*R) int64) (of []R, next string) {
	if len(rows) <= limit {
		return rows, ""
	}
	return rows[:limit], (&cursor{list: list, RunPlace: read.RunPlace{ID: id(&rows[limit-1])}}).String()
}
