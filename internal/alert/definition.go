package alert

import (
	"fmt"

	"go-crontab/job"
	"go-crontab/sql"
)

// Table is a table of definitions: of channels or of rules.
type Table string

// The tables.
const (
	ChannelTable Table = "alert_channel"
	RuleTable    Table = "alert_rule"
)

// Definition is the row of a channel or a rule.
type Definition struct {
	ID, Version      int64
	Name             string
	Spec             string // JSON
	Created, Updated job.Micros
	By               string

	// Set only for a heartbeat channel.
	Beat job.Micros // when the cluster was last checked for a heartbeat
	Held string     // why that check sent no heartbeat; "": it sent one
}

const definitionColumns = "id, version, name, spec, created, updated, who"

func (t Table) columns() string {
	if t == ChannelTable {
		return definitionColumns + ", beat_at, held"
	}
	return definitionColumns + ", 0, ''"
}

func scanDefinition(rows *sql.Rows) (r Definition, err error) {
	err = rows.Scan(&r.ID, &r.Version, &r.Name, &r.Spec, &r.Created, &r.Updated, &r.By, &r.Beat, &r.Held)
	return r, err
}

// Definitions lists up to limit definitions with an id above after, by id.
func Definitions(r sql.Reader, t Table, after int64, limit int) ([]Definition, error) {
	return sql.Select(r, "list "+string(t), scanDefinition, `SELECT `+t.columns()+`
		FROM `+string(t)+`
		WHERE id > ?
		ORDER BY id
		LIMIT ?`,
		after, limit)
}

// definitionByID returns a definition, or sql.ErrNotFound.
func definitionByID(r sql.Reader, t Table, id int64) (Definition, error) {
	return sql.First(sql.Select(r, "read "+string(t), scanDefinition, `SELECT `+t.columns()+`
		FROM `+string(t)+`
		WHERE id = ?`,
		id))
}

// DefinitionNamed returns the definition with a name. If there is none, the error is
// sql.ErrNotFound.
func DefinitionNamed(r sql.Reader, t Table, name string) (Definition, error) {
	found, err := DefinitionsNamed(r, t, []string{name})
	if r, there := found[name]; there || err != nil {
		return r, err
	}
	return Definition{}, sql.ErrNotFound
}

// DefinitionsNamed returns the existing definitions among the given names.
func DefinitionsNamed(r sql.Reader, t Table, names []string) (map[string]Definition, error) {
	if len(names) == 0 {
		return map[string]Definition{}, nil
	}
	list, args := sql.In(nil, names)
	out, err := sql.Select(r, "read "+string(t), scanDefinition, `SELECT `+t.columns()+`
		FROM `+string(t)+`
		WHERE name IN `+list,
		args...)
	return byName(out), err
}

func byName(rows []Definition) map[string]Definition {
	out := make(map[string]Definition, len(rows))
	for _, r := range rows {
		out[r.Name] = r
	}
	return out
}

// LockDefinitions locks and returns the existing definitions among the given names. Lock channels
// before rules. Lock both after every other row except the audit's.
func LockDefinitions(tx *sql.Tx, t Table, names []string) (map[string]Definition, error) {
	return definitionsLocked(tx, t, names, "FOR UPDATE")
}

// shareDefinitions returns definitions. Until this transaction ends, nobody can delete or change
// them.
func shareDefinitions(tx *sql.Tx, t Table, names []string) (map[string]Definition, error) {
	return definitionsLocked(tx, t, names, "LOCK IN SHARE MODE")
}

func definitionsLocked(tx *sql.Tx, t Table, names []string, lock string) (map[string]Definition, error) {
	if len(names) == 0 {
		return map[string]Definition{}, nil
	}
	list, args := sql.In(nil, names)
	out, err := sql.Select(tx, "lock "+string(t), scanDefinition, `SELECT `+t.columns()+`
		FROM `+string(t)+` FORCE INDEX (name)
		WHERE name IN `+list+`
		ORDER BY name `+lock,
		args...)
	return byName(out), err
}

// AllDefinitions reads all definitions in their latest committed state, and locks them against
// changes.
func AllDefinitions(tx *sql.Tx, t Table) ([]Definition, error) {
	return sql.Select(tx, "read "+string(t), scanDefinition, `SELECT `+t.columns()+`
		FROM `+string(t)+`
		ORDER BY id
		LOCK IN SHARE MODE`)
}

// InsertDefinition writes a new definition and sets its id. If the name is taken, the error is
// sql.ErrExists.
func InsertDefinition(tx *sql.Tx, t Table, r *Definition) (err error) {
	r.ID, err = tx.Insert("insert definition of alerts", `INSERT INTO `+string(t)+`
		(name, version, spec, created, updated, who)
		VALUES (?, 1, ?, ?, ?, ?)`,
		r.Name, r.Spec, int64(r.Created), int64(r.Updated), sql.Cut(r.By, 128))
	if sql.IsDuplicate(err) {
		return fmt.Errorf("%s %q: %w", t, r.Name, sql.ErrExists)
	}
	if err != nil {
		return err
	}

	r.Version = 1
	return definitionsChanged(tx)
}

// UpdateDefinition writes the next version of a definition that this transaction has locked.
func UpdateDefinition(tx *sql.Tx, t Table, r *Definition) error {
	r.Version++
	_, err := tx.Exec("update "+string(t), `UPDATE `+string(t)+`
		SET version = version + 1, spec = ?, updated = ?, who = ?
		WHERE id = ?`,
		r.Spec, int64(r.Updated), sql.Cut(r.By, 128), r.ID)
	if err != nil {
		return err
	}
	return definitionsChanged(tx)
}

// deleteDefinition deletes a definition that this transaction has locked.
func deleteDefinition(tx *sql.Tx, t Table, id int64) error {
	if _, err := tx.Exec("delete "+string(t), "DELETE FROM "+string(t)+" WHERE id = ?", id); err != nil {
		return err
	}
	return definitionsChanged(tx)
}

// definitionsChanged makes the evaluator read the definitions again.
func definitionsChanged(tx *sql.Tx) error {
	_, err := tx.Exec("count changes of alerts", "UPDATE alert_work SET "+sql.Next("n")+" WHERE id = 2")
	return err
}
