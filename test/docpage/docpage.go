// Package docpage reads the pages of docs/, so that tests can try their examples.
package docpage

import (
	"os"
	"regexp"
	"strings"
	"testing"
)

// Item is a part of a page that a test can try: a fenced block, or a row of a table.
type Item struct {
	Line  int    // its first line
	Block string // the language of a block: json, http, sh, go …; "" for a row
	Text  string // the text of the block

	Field    string   // of a row of a table whose first column is called "field": its first cell
	Default  string   // its cell in the column "default"
	Examples []string // code in a row that gives a field a value, such as "every": "5m"
}

// Read returns the items of a page in their order.
func Read(t testing.TB, path string) []Item {
	t.Helper()
	text, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	var items []Item
	var block *Item

	var columns []string // of the table with this line
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
		case columns == nil:
			columns = cells(line)
		case !strings.HasPrefix(line, "|--"):
			items = append(items, row(columns, cells(line), i+1))
		}
	}

	if block != nil {
		t.Fatalf("%s:%d: the block has no end", path, block.Line)
	}

	return items
}

// bar separates cells, unless it is written as \|.
var bar = regexp.MustCompile(`(^|[^\\])\|`)

func cells(line string) []string {
	line = strings.TrimSuffix(strings.TrimPrefix(line, "|"), "|")
	parts := strings.Split(bar.ReplaceAllString(line, "$1\x00"), "\x00")
	for i := range parts {
		parts[i] = strings.ReplaceAll(strings.TrimSpace(parts[i]), `\|`, "|")
	}
	return parts
}

// example is code that gives a field a value.
var example = regexp.MustCompile("`(\"[a-z_]+\": [^`]+)`")

func row(columns, cells []string, line int) Item {
	it := Item{Line: line}
	for i, name := range columns[:min(len(columns), len(cells))] {
		switch {
		case name == "field" && i == 0:
			it.Field = strings.Trim(cells[i], "`")
		case name == "default":
			it.Default = cells[i]
		}

		for _, match := range example.FindAllStringSubmatch(cells[i], -1) {
			it.Examples = append(it.Examples, match[1])
		}
	}

	return it
}
