package trip

import (
	_ "embed"
	"strings"
)

//go:embed schema.sql
var schema string

// Schema returns the statements that make the tables of the trip.
func Schema() []string {
	var out []string
	for statement := range strings.SplitSeq(schema, ";\n") {
		if strings.Contains(statement, "CREATE TABLE") {
			out = append(out, statement)
		}
	}
	return out
}
