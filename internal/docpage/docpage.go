// Package docpage reads the pages of docs/, so that tests can try what they show.
package docpage

import (
	"os"
	"regexp"
	"strings"
	"testing"
)

// Item is what a test can try of a page: a fenced block, or a row of a table of fields.
type Item struct {
	Line  int    // where it begins
	Block string // the language of a block: json, http, sh, go …; "" for a row
	Text  string // what stands in the block

	Field    string   // of a row: what its first column names
	Default  string   // what its column "default" says
	Examples []string // what stands as code in its column "example"
}

// Read returns the items of a page in their order. A table is one of fields if its first column is called "field".
func Read(t testing.TB, path string) []Item {
	t.Helper()
	text, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	var items []Item
	var block *Item
	var columns []string // of the table of fields that the line belongs to
	for i, line := range strings.Split(string(text), "\n") {
		fence, isFence := strings.CutPrefix(line, "```")
		switch {
		case isFence && block == nil:
			block, columns = &Item{Line: i + 1, Block: fence}, nil
		case isFence:
			items, block = append(items, *block), nil
		case block != nil:
			block.Text += line + "\n"
		case !strings.HasPrefix(line, "|"):
			columns = nil
		case columns != nil && !strings.HasPrefix(line, "|--"):
			items = append(items, row(columns, cells(line), i+1))
		case strings.HasPrefix(line, "| field "):
			columns = cells(line)
		}
	}
	if block != nil {
		t.Fatalf("%s:%d: the block has no end", path, block.Line)
	}
	return items
}

// bar stands between cells, unless it is written as \|.
var bar = regexp.MustCompile(`(^|[^\\])\|`)

func cells(line string) []string {
	line = strings.TrimSuffix(strings.TrimPrefix(line, "|"), "|")
	parts := strings.Split(bar.ReplaceAllString(line, "$1\x00"), "\x00")
	for i := range parts {
		parts[i] = strings.ReplaceAll(strings.TrimSpace(parts[i]), `\|`, "|")
	}
	return parts
}

var code = regexp.MustCompile("`([^`]+)`")

func row(columns, cells []string, line int) Item {
	it := Item{Line: line, Field: strings.Trim(cells[0], "`")}
	for i, name := range columns[:min(len(columns), len(cells))] {
		switch name {
		case "default":
			it.Default = cells[i]
		case "example":
			for _, match := range code.FindAllStringSubmatch(cells[i], -1) {
				it.Examples = append(it.Examples, match[1])
			}
		}
	}
	return it
}
