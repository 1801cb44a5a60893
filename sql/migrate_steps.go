package sql

import (
	"context"
	stdsql "database/sql"
	"embed"
	"fmt"
	"strings"

	"github.com/pressly/goose/v3"
)

//go:embed migrations/*.sql
var migrationFiles embed.FS

// stepTable records the progress of each migration, in statements. MySQL commits each change of a
// table separately, so a killed migrate may leave half a migration. The version of a migration is
// recorded only at its end.
const stepTable = "schema_step"

// migrations returns the migrations of the files, in order.
func migrations() (all []*migration, err error) {
	files, err := migrationFiles.ReadDir("migrations")
	if err != nil {
		return nil, err
	}

	for _, file := range files {
		text, err := migrationFiles.ReadFile("migrations/" + file.Name())
		if err != nil {
			return nil, err
		}

		version, err := goose.NumericComponent(file.Name())
		if err != nil {
			return nil, err
		}

		// Tables are never dropped again: the way down is only documentation.
		up, _, _ := strings.Cut(string(text), "-- +goose Down")
		all = append(all, &migration{version, file.Name(), statements(up)})
	}

	return all, nil
}

// statements splits a file at each semicolon that is not in a text or a comment. It drops the
// comments.
func statements(text string) (all []string) {
	var s strings.Builder
	for i := 0; i < len(text); {
		n := 1
		switch rest := text[i:]; {
		case strings.HasPrefix(rest, "--"):
			i += strings.IndexByte(rest+"\n", '\n')
			continue
		case rest[0] == '\'': // '' within a text ends one text and begins another
			n = min(len(rest), 2+strings.IndexByte(rest[1:]+"'", '\''))
		case rest[0] == ';':
			all = append(all, strings.TrimSpace(s.String()))
			s.Reset()
			i++
			continue
		}

		s.WriteString(text[i : i+n])
		i += n
	}

	if last := strings.TrimSpace(s.String()); last != "" {
		all = append(all, last)
	}
	return all
}

// migration is one migration file.
type migration struct {
	version    int64
	file       string
	statements []string
}

// run applies the statements that are not applied yet. MySQL applies each statement as a whole or
// not at all. Before each statement, run notes that it may have been applied. If we die or lose
// MySQL after that, the next migrate tries the statement again, and accepts the answer that the
// statement's object exists. Without that note, an existing object belongs to another program, and
// run fails.
func (m *migration) run(ctx context.Context, db *stdsql.DB) error {
	c, err := db.Conn(ctx)
	if err != nil {
		return err
	}
	defer c.Close()

	_, err = c.ExecContext(ctx, `
		CREATE TABLE IF NOT EXISTS `+stepTable+` (
			version_id BIGINT NOT NULL PRIMARY KEY,
			done INT NOT NULL COMMENT 'statements that stand',
			unsure TINYINT NOT NULL COMMENT '1: the next one may stand, too'
		) ENGINE=InnoDB DEFAULT CHARSET=utf8mb4 COLLATE=utf8mb4_bin`)
	if err != nil {
		return err
	}

	note := func(done int, unsure bool) error {
		_, err := c.ExecContext(ctx, `
			REPLACE INTO `+stepTable+` (version_id, done, unsure)
			VALUES (?, ?, ?)`, m.version, done, unsure)
		return err
	}

	from, unsure := 0, false
	err = c.QueryRowContext(ctx, "SELECT done, unsure FROM "+stepTable+" WHERE version_id = ?", m.version).
		Scan(&from, (*Flag)(&unsure))
	if err != nil && !noRows(err) {
		return err
	}

	for i := from; i < len(m.statements); i++ {
		if err := note(i, true); err != nil {
			return err
		}

		again := unsure && i == from
		_, err := c.ExecContext(ctx, m.statements[i])
		if err != nil && !(again && standsAlready(err)) {
			if IsRefused(err) && !again {
				// If this note fails, nothing else is lost: the next migrate cannot see that an
				// existing object belongs to another program.
				_ = note(i, false)
			}
			return m.failed(i, err)
		}
	}

	return nil
}

func (m *migration) failed(i int, err error) error {
	err = fmt.Errorf("%s, statement %d of %d: %w", m.file, i+1, len(m.statements), err)
	if standsAlready(err) {
		err = fmt.Errorf(
			"%w; no known migration created it. The schema must not have tables of other programs. If a migrate of "+
				"an older go-crontab was killed, restore the backup from before it, or drop a schema that was new, "+
				"and run migrate again", err)
	}
	return err
}

// standsAlready reports whether a statement of a migration was refused because its effect exists
// already.
//
//	1050 the table exists      1060 the column exists
//	1061 the index exists      1062 the row exists
//	1051 no such table         1091 no such column or index
//	4092 no such view (MariaDB)
func standsAlready(err error) bool {
	switch number(err) {
	case 1050, 1060, 1061, 1062, 1051, 1091, 4092:
		return true
	}
	return false
}
