package doctor

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	"go-crontab/sql"
)

var migrateCommand = []string{"go-crontab migrate"}

func schema(x *exam) error {
	have, want, err := x.db.SchemaVersions(x.ctx)
	if err != nil {
		return err
	}

	switch {
	case have == 0:
		x.found(Error, Finding{
			Code:     NoTables,
			Seen:     "the schema has no tables of go-crontab",
			Why:      "No node can join.",
			Fix:      "Create them, with a user who may create tables.",
			Commands: migrateCommand,
		})
	case have < want:
		x.found(Error, Finding{
			Code:     SchemaOlder,
			Seen:     fmt.Sprintf("the schema has version %d, and this program needs version %d", have, want),
			Why:      "Nodes of this version refuse to join.",
			Fix:      "Upgrade the schema; nodes of the previous version keep working.",
			Commands: migrateCommand,
		})
	case have > want:
		// During an upgrade, a newer schema may still accept programs of the older version. By the
		// same rule, nodes of the older version may join.
		if lets, err := x.db.LetsIn(x.ctx, want); err != nil {
			return err
		} else if lets {
			x.found(Notice, Finding{
				Code: SchemaNewerUsable,
				Seen: fmt.Sprintf("the schema has version %d; this program is made for version %d and can still use it",
					have, want),
				Why: "The cluster is being upgraded.",
				Fix: "Upgrade this node too; see docs/upgrades.md.",
			})
			return nil
		}
		x.found(Error, Finding{
			Code: SchemaNewer,
			Seen: fmt.Sprintf("the schema has version %d, and this program knows versions up to %d", have, want),
			Why:  "Nodes of this version refuse to join.",
			Fix:  "Use a newer go-crontab.",
		})
	default:
		faults, err := x.db.SchemaFaults(x.ctx, x.tables)
		if err != nil {
			return err
		}
		if len(faults) > 0 {
			x.found(Error, Finding{
				Code: TablesDiffer,
				Seen: list(faults, 10),
				Why: "The tables were changed by hand. " +
					"Statements fail or are slow without these columns and indexes.",
				Fix:      "Compare with a new schema made by go-crontab migrate, and restore what is missing.",
				Commands: []string{"mysqldump --no-data SCHEMA > have.sql"},
			})
		}
	}

	return nil
}

func lockRows(x *exam) error {
	missing, err := x.db.MissingLocks(x.ctx)
	if err != nil {
		return err
	}

	if len(missing) > 0 {
		x.found(Error, Finding{
			Seen: "missing in table locks: " + list(missing, 10),
			Why: "Nodes lock by writing these rows. " +
				"Without a row its lock does not work, so nodes refuse to join.",
			Fix:      "Restore the rows with the command. It changes nothing else, and nodes may keep running.",
			Commands: migrateCommand,
		})
	}

	return nil
}

func rights(x *exam) error {
	denied, err := x.db.DeniedRights(x.ctx)
	if err != nil || len(denied) == 0 {
		return err
	}
	user, schema, err := x.db.User(x.ctx)
	if err != nil {
		return err
	}
	name, host, _ := strings.Cut(user, "@")
	byRight, byTable := map[string][]string{}, map[string][]string{}
	for _, d := range denied {
		byRight[d.Right] = append(byRight[d.Right], d.Table)
		byTable[d.Table] = append(byTable[d.Table], d.Right)
	}

	var lacks, grants []string
	for _, right := range []string{"SELECT", "INSERT", "UPDATE", "DELETE"} {
		if tables := byRight[right]; tables != nil {
			lacks = append(lacks, right+" on "+list(tables, 5))
		}
	}
	for _, table := range slices.Sorted(maps.Keys(byTable)) {
		grants = append(grants, sql.GrantOf(byTable[table], schema, table, name, host))
	}
	x.found(Error, Finding{
		Seen: user + " lacks " + strings.Join(lacks, "; "),
		Why: "Nodes read and write all their tables. Without these rights, " +
			"due times are not started or records are not written.",
		Fix: "Grant the missing rights. The command, run as the user who may change tables, " +
			"prints all rights that nodes need.",
		SQL:      grants,
		Commands: []string{"go-crontab migrate --print-grants " + quote(user)},
	})
	return nil
}

// list joins the first few of the distinct words.
func list(words []string, most int) string {
	words = slices.Compact(slices.Clone(words))
	if len(words) > most {
		return fmt.Sprintf("%s and %d more", strings.Join(words[:most], ", "), len(words)-most)
	}
	return strings.Join(words, ", ")
}
