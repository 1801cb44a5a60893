package trip

import (
	"crypto/sha256"
	"errors"
	"fmt"
	"slices"
	"sync"

	"go-crontab/job"
	"go-crontab/sql"
)

// CalendarRow is the row of a calendar. A calendar that cannot be read has SpecErr instead of
// Calendar: a newer version wrote it, or it was changed outside the program. Only the jobs that
// name the calendar are affected.
type CalendarRow struct {
	ID, Version      int64
	Name             string
	SpecText         string
	Calendar         *job.Calendar // nil with SpecErr
	SpecErr          error
	Jobs             int64 // living jobs that name it; zero if the query did not count them
	Created, Updated job.Micros
}

// CalendarError says why a calendar cannot be used.
type CalendarError struct {
	Name string
	Err  error
}

func (e *CalendarError) Error() string { return fmt.Sprintf("calendar %q: %v", e.Name, e.Err) }

func (e *CalendarError) Unwrap() error { return e.Err }

// knownCalendars caches compiled calendars by the digest of their definitions. So an entry can be
// neither outdated nor of another schema.
var knownCalendars = struct {
	sync.Mutex
	byDigest map[string]knownCalendar
	size     int // bytes of their definitions
}{byDigest: map[string]knownCalendar{}}

type knownCalendar struct {
	*job.Calendar
	err error
}

// maxKnownCalendars bounds the cached definitions, in bytes. Compiled calendars take a few times
// as many bytes.
const maxKnownCalendars = 32 << 20

func knowCalendar(digest []byte) (knownCalendar, bool) {
	knownCalendars.Lock()
	defer knownCalendars.Unlock()
	k, ok := knownCalendars.byDigest[string(digest)]
	return k, ok
}

// readCalendar decodes, compiles and caches a stored definition.
func readCalendar(name, text string, digest []byte) (k knownCalendar) {
	if is := sha256.Sum256([]byte(text)); string(is[:]) != string(digest) {
		return knownCalendar{err: &CalendarError{name,
			errors.New("its definition was changed by hand, but not its digest")}}
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

// calendarsNamed reads the named calendars that exist. It reads the digests first, and the
// definitions only of calendars that are not cached.
func calendarsNamed(r sql.Reader, names []string) (map[string]knownCalendar, error) {
	out := map[string]knownCalendar{}
	if len(names) == 0 {
		return out, nil
	}

	list, args := sql.In(nil, names)
	var unknown []string
	err := sql.Each(r, "read digests of calendars", func(rows *sql.Rows) error {
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

	list, args = sql.In(nil, unknown)
	return out, sql.Each(r, "read calendars", func(rows *sql.Rows) error {
		var name, text string
		var digest []byte
		err := rows.Scan(&name, &text, &digest)
		if err == nil {
			out[name] = readCalendar(name, text, digest)
		}
		return err
	}, "SELECT name, spec, digest FROM calendar WHERE name IN "+list, args...)
}

// pick returns the named calendars that were found, and an error if a calendar cannot be read.
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

// CalendarsNamed reads the named calendars that exist.
func CalendarsNamed(r sql.Reader, names []string) ([]*job.Calendar, error) {
	found, err := ReadCalendars(r, names)
	if err != nil {
		return nil, err
	}
	return found.Of(names)
}

// CalendarSet holds calendars that were read at once for several definitions.
type CalendarSet map[string]knownCalendar

// ReadCalendars reads the named calendars that exist.
func ReadCalendars(r sql.Reader, names []string) (CalendarSet, error) {
	return calendarsNamed(r, names)
}

// Of returns the calendars that one definition names, and an error if a calendar cannot be read.
func (s CalendarSet) Of(names []string) ([]*job.Calendar, error) { return pick(s, names) }

const calendarColumns = "id, name, version, spec, digest, created, updated"

func scanCalendar(rows *sql.Rows) (c CalendarRow, err error) {
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

// namesAtOnce bounds the names in one statement.
const namesAtOnce = 200

// CalendarRows reads the named calendars that exist, by name. It does not set Jobs.
func CalendarRows(r sql.Reader, names []string) (map[string]CalendarRow, error) {
	out := map[string]CalendarRow{}
	for part := range slices.Chunk(names, namesAtOnce) {
		list, args := sql.In(nil, part)
		query := `
			SELECT ` + calendarColumns + `
			FROM calendar
			WHERE name IN ` + list
		rows, err := sql.Select(r, "read calendars by name", scanCalendar, query, args...)
		if err != nil {
			return nil, err
		}
		for _, r := range rows {
			out[r.Name] = r
		}
	}

	return out, nil
}

// LockCalendar locks and returns a calendar. If there is none, the error is sql.ErrNotFound.
func LockCalendar(tx *sql.Tx, name string) (CalendarRow, error) {
	const query = `
		SELECT ` + calendarColumns + `
		FROM calendar
		WHERE name = ?
		FOR UPDATE`
	return sql.First(sql.Select(tx, "lock calendar", scanCalendar, query, name))
}

// CalendarNamed returns a calendar with its number of jobs. If there is none, the error is
// sql.ErrNotFound.
func CalendarNamed(r sql.Reader, name string) (CalendarRow, error) {
	const query = `
		SELECT ` + calendarColumns + `
		FROM calendar
		WHERE name = ?`
	c, err := sql.First(sql.Select(r, "read calendar", scanCalendar, query, name))
	if err != nil {
		return c, err
	}
	err = sql.Each(r, "count references", func(rows *sql.Rows) error { return rows.Scan(&c.Jobs) },
		"SELECT COUNT(*) FROM job_ref WHERE kind = ? AND name = ?", RefCalendar, name)
	return c, err
}

// readableCalendars reads the named calendars that exist, and leaves out unreadable ones.
func readableCalendars(r sql.Reader, names []string) ([]*job.Calendar, error) {
	found, err := calendarsNamed(r, names)
	if err != nil {
		return nil, err
	}
	out, _ := pick(found, names)
	return out, nil
}
