package sql

import (
	"context"
	"crypto/sha256"
	stdsql "database/sql"
	"errors"
	"fmt"
	"sync"

	"go-crontab/job"
)

// CalendarRow is a calendar as its row says. One that cannot be read (a newer version wrote it, or a hand did) has an
// error in place of its days; it harms only the jobs that name it.
type CalendarRow struct {
	ID, Version      int64
	Name             string
	SpecText         string
	Calendar         *job.Calendar // nil with SpecErr
	SpecErr          error
	Jobs             int64 // living jobs that name it, where a reading says so
	Created, Updated job.Micros
}

// CalendarSummary is a calendar in a list.
type CalendarSummary struct {
	ID, Version        int64
	Name, Timezone     string
	Excludes, Includes int   // entries
	Jobs               int64 // living jobs that name it
	Created, Updated   job.Micros
}

// CalendarError is why a calendar cannot be used.
type CalendarError struct {
	Name string
	Err  error
}

func (e *CalendarError) Error() string { return fmt.Sprintf("calendar %q: %v", e.Name, e.Err) }
func (e *CalendarError) Unwrap() error { return e.Err }

// The calendars that were read last. A calendar is found by the digest of its definition, so what is found can be
// neither old nor that of another schema.
var knownCalendars = struct {
	sync.Mutex
	byDigest map[string]knownCalendar
	size     int // bytes of their definitions
}{byDigest: map[string]knownCalendar{}}

type knownCalendar struct {
	*job.Calendar
	err error
}

// maxKnownCalendars bounds the definitions of known calendars, in bytes; compiled they take a few times as much.
const maxKnownCalendars = 32 << 20

func knowCalendar(digest []byte) (knownCalendar, bool) {
	knownCalendars.Lock()
	defer knownCalendars.Unlock()
	k, ok := knownCalendars.byDigest[string(digest)]
	return k, ok
}

// readCalendar decodes and compiles a stored definition, and remembers it.
func readCalendar(name, text string, digest []byte) (k knownCalendar) {
	if is := sha256.Sum256([]byte(text)); string(is[:]) != string(digest) {
		return knownCalendar{err: &CalendarError{name, errors.New("a hand has changed its definition and not its digest")}}
	}
	spec, err := job.DecodeCalendar(text)
	if err == nil {
		k.Calendar, err = spec.Compile()
	}
	if err != nil {
		k.err = &CalendarError{name, err}
	}
	knownCalendars.Lock()
	defer knownCalendars.Unlock()
	if knownCalendars.size += len(text); knownCalendars.size > maxKnownCalendars {
		clear(knownCalendars.byDigest)
		knownCalendars.size = len(text)
	}
	knownCalendars.byDigest[string(digest)] = k
	return k
}

// rowReader is a transaction's or a pool's query.
type rowReader func(what string, scan func(*stdsql.Rows) error, query string, args ...any) error

func (db *DB) reader(ctx context.Context) rowReader {
	return func(what string, scan func(*stdsql.Rows) error, query string, args ...any) error {
		return db.query(ctx, what, scan, query, args...)
	}
}

// calendarsNamed reads those of some calendars that there are: their digests, and of those that are not known the rest.
func calendarsNamed(read rowReader, names []string) (map[string]knownCalendar, error) {
	out := map[string]knownCalendar{}
	if len(names) == 0 {
		return out, nil
	}
	list, args := In(nil, names)
	var unknown []string
	err := read("read digests of calendars", func(rows *stdsql.Rows) error {
		var name string
		var digest []byte
		err := rows.Scan(&name, &digest)
		if k, ok := knowCalendar(digest); ok {
			out[name] = k
		} else {
			unknown = append(unknown, name)
		}
		return err
	}, "SELECT name, digest FROM calendar WHERE name IN "+list, args...)
	if err != nil || len(unknown) == 0 {
		return out, err
	}
	list, args = In(nil, unknown)
	return out, read("read calendars", func(rows *stdsql.Rows) error {
		var name, text string
		var digest []byte
		err := rows.Scan(&name, &text, &digest)
		if err == nil {
			out[name] = readCalendar(name, text, digest)
		}
		return err
	}, "SELECT name, spec, digest FROM calendar WHERE name IN "+list, args...)
}

// pick returns those of the named calendars that there are, and an error if one of them cannot be read.
func pick(found map[string]knownCalendar, names []string) (list []*job.Calendar, err error) {
	for _, name := range names {
		k, ok := found[name]
		if k.err != nil {
			err = k.err
		}
		if ok && k.err == nil {
			list = append(list, k.Calendar)
		}
	}
	return list, err
}

// CalendarsNamed reads those of some calendars that there are.
func (db *DB) CalendarsNamed(ctx context.Context, names []string) ([]*job.Calendar, error) {
	found, err := calendarsNamed(db.reader(ctx), names)
	if err != nil {
		return nil, err
	}
	return pick(found, names)
}

// NameCalendars locks, by writing them, and returns those of some calendars that there are, for a job whose definition
// is about to name them. Calendars are locked before jobs.
func (tx *Tx) NameCalendars(names []string) ([]*job.Calendar, error) {
	if len(names) == 0 {
		return nil, nil
	}
	list, args := In(nil, names)
	if _, err := tx.Exec("name calendars", "UPDATE calendar SET named = named + 1 WHERE name IN "+list+" ORDER BY id", args...); err != nil {
		return nil, err
	}
	found, err := calendarsNamed(tx.query, names)
	if err != nil {
		return nil, err
	}
	return pick(found, names)
}

const calendarColumns = "id, name, version, spec, digest, created, updated"

func scanCalendar(rows *stdsql.Rows) (c CalendarRow, err error) {
	var digest []byte
	if err := rows.Scan(&c.ID, &c.Name, &c.Version, &c.SpecText, &digest, &c.Created, &c.Updated); err != nil {
		return c, err
	}
	k, ok := knowCalendar(digest)
	if !ok {
		k = readCalendar(c.Name, c.SpecText, digest)
	}
	c.Calendar, c.SpecErr = k.Calendar, k.err
	return c, nil
}

// LockCalendar locks and returns a calendar, or ErrNotFound.
func (tx *Tx) LockCalendar(name string) (CalendarRow, error) {
	return First(Select(tx, "lock calendar", scanCalendar, "SELECT "+calendarColumns+" FROM calendar WHERE name = ? FOR UPDATE", name))
}

// Calendar returns a calendar and how many jobs name it, or ErrNotFound.
func (db *DB) Calendar(ctx context.Context, name string) (CalendarRow, error) {
	c, err := First(Select(db.Reader(ctx), "read calendar", scanCalendar, "SELECT "+calendarColumns+" FROM calendar WHERE name = ?", name))
	if err != nil {
		return c, err
	}
	err = db.query(ctx, "count references", func(rows *stdsql.Rows) error { return rows.Scan(&c.Jobs) },
		"SELECT COUNT(*) FROM job_ref WHERE kind = ? AND name = ?", RefCalendar, name)
	return c, err
}

// Calendars lists calendars by id, those after the given one.
func (db *DB) Calendars(ctx context.Context, after int64, limit int) ([]CalendarSummary, error) {
	scan := func(rows *stdsql.Rows) (c CalendarSummary, err error) {
		err = rows.Scan(&c.ID, &c.Name, &c.Version, &c.Timezone, &c.Excludes, &c.Includes, &c.Created, &c.Updated, &c.Jobs)
		return c, err
	}
	return Select(db.Reader(ctx), "list calendars", scan, "SELECT id, name, version, timezone, excludes, includes, created, updated, (SELECT COUNT(*) FROM job_ref r WHERE r.kind = 2 AND r.name = c.name)"+
		" FROM calendar c WHERE id > ? ORDER BY id LIMIT ?", after, limit)
}

// InsertCalendar writes a new calendar and returns its id. One of that name is ErrExists.
func (tx *Tx) InsertCalendar(c *job.Calendar, now job.Micros) (int64, error) {
	spec, text, err := encoded(c)
	if err != nil {
		return 0, err
	}
	digest := c.Digest()
	id, err := tx.Insert("insert calendar", "INSERT INTO calendar (name, spec, digest, timezone, excludes, includes, created, updated) VALUES (?, ?, ?, ?, ?, ?, ?, ?)",
		c.Name(), text, digest[:], spec.Timezone, len(spec.Exclude), len(spec.Include), int64(now), int64(now))
	if IsDuplicate(err) {
		return 0, fmt.Errorf("calendar %q: %w", c.Name(), ErrExists)
	}
	return id, err
}

// UpdateCalendar writes the next version of a calendar whose row this transaction has locked.
func (tx *Tx) UpdateCalendar(row *CalendarRow, c *job.Calendar, now job.Micros) error {
	spec, text, err := encoded(c)
	if err != nil {
		return err
	}
	digest := c.Digest()
	n, err := tx.Exec("update calendar", "UPDATE calendar SET version = version + 1, spec = ?, digest = ?, timezone = ?, excludes = ?, includes = ?, updated = ?"+
		" WHERE id = ? AND version = ?", text, digest[:], spec.Timezone, len(spec.Exclude), len(spec.Include), int64(now), row.ID, row.Version)
	if err == nil && n != 1 {
		err = fmt.Errorf("update calendar %q: %w", row.Name, ErrMoved)
	}
	return err
}

func encoded(c *job.Calendar) (*job.CalendarSpec, string, error) {
	text, err := c.Spec().Encode()
	return c.Spec(), text, err
}

// DeleteCalendar deletes a calendar, whose row this transaction has locked.
func (tx *Tx) DeleteCalendar(id int64) error {
	n, err := tx.Exec("delete calendar", "DELETE FROM calendar WHERE id = ?", id)
	if err == nil && n != 1 {
		err = fmt.Errorf("delete calendar %d: %w", id, ErrMoved)
	}
	return err
}
