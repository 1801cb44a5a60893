package api

import (
	"encoding/base64"
	"fmt"

	"go-crontab/job"
	"go-crontab/sql"
)

// cursor is the place after which the next page of a list begins. Clients get it as text of which they need to know
// nothing; it holds no secret, and whatever is made up for one selects no more than a filter could.
type cursor struct {
	list      string // which list gave it
	executing bool   // the place is among the runs that execute, which stand before the ended ones
	part      string // of a list of jobs whose names contain something, see sql.JobPlace
	sql.RunPlace
}

const cursorFormat = "%s %t %d %d %d %d %q"

func (c *cursor) String() string {
	return base64.RawURLEncoding.EncodeToString(fmt.Appendf(nil, cursorFormat, c.list, c.executing, c.ID, int64(c.Due), c.Origin, c.Attempt, c.part))
}

func parseCursor(s string) (*cursor, bool) {
	text, err := base64.RawURLEncoding.DecodeString(s)
	if err != nil {
		return nil, false
	}
	var (
		c   cursor
		due int64
	)
	if _, err := fmt.Sscanf(string(text), cursorFormat, &c.list, &c.executing, &c.ID, &due, &c.Origin, &c.Attempt, &c.part); err != nil {
		return nil, false
	}
	c.Due = job.Micros(due)
	return &c, c.String() == s // whatever else Sscanf lets pass
}

// page is the answer of a list.
type page[T any] struct {
	Items []T    `json:"items" doc:"What the page has."`
	Next  string `json:"next,omitempty" doc:"What to give as 'cursor' for the next page. Absent: this is the last."`
}

// oneMore takes off the one row more that was read to see whether there is a next page, and returns that page's cursor.
func oneMore[R any](list string, rows []R, limit int, id func(*R) int64) (of []R, next string) {
	if len(rows) <= limit {
		return rows, ""
	}
	return rows[:limit], (&cursor{list: list, RunPlace: sql.RunPlace{ID: id(&rows[limit-1])}}).String()
}
