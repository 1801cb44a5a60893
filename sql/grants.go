package sql

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"
)

// appendOnly are the tables that nodes only read and insert into. A node's DSN alone does not allow
// anybody to change audit lines.
var appendOnly = []string{"audit", "audit_chain"}

// rightsOn returns the rights that nodes need on a table.
func rightsOn(table string) []string {
	switch {
	case slices.Contains(appendOnly, table):
		return []string{"SELECT", "INSERT"}
	case table == versionTable:
		return []string{"SELECT"}
	}
	return []string{"SELECT", "INSERT", "UPDATE", "DELETE"}
}

// Grants returns the statements that grant a MySQL user the rights that nodes need. Each statement
// is for one table. MySQL adds grants up, so a grant on the whole schema would also cover the audit
// tables.
func (db *DB) Grants(ctx context.Context, user, host string) ([]string, error) {
	tables, err := expectedTables()
	if err != nil {
		return nil, err
	}

	_, schema, err := db.User(ctx)
	if err != nil {
		return nil, err
	}

	var out []string
	for _, table := range append(slices.Sorted(maps.Keys(tables)), versionTable) {
		out = append(out, GrantOf(rightsOn(table), schema, table, user, host))
	}

	return out, nil
}

// GrantOf returns the statement that grants a user rights on a table.
func GrantOf(rights []string, schema, table, user, host string) string {
	return fmt.Sprintf("GRANT %s ON %s.%s TO %s@%s", strings.Join(rights, ", "), quoteName(schema), quoteName(table),
		quoteText(user), quoteText(host))
}

func quoteName(name string) string { return "`" + strings.ReplaceAll(name, "`", "``") + "`" }

func quoteText(text string) string {
	return "'" + strings.NewReplacer(`\`, `\\`, `'`, `''`).Replace(text) + "'"
}
