package cli

import (
	"io"
	"slices"
	"strings"
)

// column of a table. When the table is too wide for the terminal, columns that may be dropped go first, from the right:
// half an id is of no use. Then the widest of those that may shrink gives way, as often as needed. In a very narrow
// terminal, in which that is not enough, those go that can be spared, from the right, then any but the first two.
type column struct {
	head   string
	right  bool // numbers
	drop   bool
	shrink bool
	spare  bool
}

type cell struct {
	text   string
	colour colour
}

type table struct {
	columns []column
	rows    [][]cell
}

func (t *table) add(cells ...cell) { t.rows = append(t.rows, cells) }

func text(s string) cell { return cell{text: plain(s)} }

const (
	gap       = 2  // spaces between columns
	shrunk    = 12 // no column is made narrower than this,
	least     = 6  // unless all others are gone
	dropBelow = 20 // columns go before the shrinking ones have less than this together
)

// print writes the table, at most width columns wide; 0 is no limit.
func (t *table) print(w io.Writer, width int, coloured bool) error {
	widths := t.fit(width)
	paint := painter(coloured)
	var b strings.Builder
	head := make([]cell, len(t.columns))
	for i, c := range t.columns {
		head[i] = cell{c.head, bold}
	}

	for _, row := range append([][]cell{head}, t.rows...) {
		t.line(&b, row, widths, paint)
	}

	_, err := io.WriteString(w, b.String())
	return err
}

func (t *table) line(b *strings.Builder, row []cell, widths []int, paint func(colour, string) string) {
	pending := 0 // spaces that are only written before something, so that no line ends in one
	for i, c := range row {
		if widths[i] < 0 {
			continue
		}

		s := cut(c.text, widths[i])
		if s == "" {
			pending += widths[i] + gap
			continue
		}

		pad := widths[i] - displayWidth(s)
		if t.columns[i].right {
			pending, pad = pending+pad, 0
		}

		b.WriteString(strings.Repeat(" ", pending))
		b.WriteString(paint(c.colour, s))
		pending = pad + gap
	}

	b.WriteByte('\n')
}

// fit finds the widths of the columns for a terminal; -1 is a column that is left out.
func (t *table) fit(width int) []int {
	widths := t.widths()
	if width == 0 {
		return widths
	}

	t.dropColumns(widths, width)
	wished := slices.Clone(widths)
	t.shrinkColumns(widths, width, shrunk)
	leave := func(least int, may func(i int) bool) {
		for i := range slices.Backward(t.columns) {
			if total(widths) > width && wished[i] >= 0 && may(i) {
				wished[i] = -1
				copy(widths, wished) // the others have more room then
				t.shrinkColumns(widths, width, least)
			}
		}
	}

	leave(shrunk, func(i int) bool { return t.columns[i].spare })
	t.shrinkColumns(widths, width, least)
	leave(least, func(i int) bool { return i > 1 })

	return widths // should it be too wide even now, the terminal wraps the lines
}

// widths of the columns as their cells need them.
func (t *table) widths() []int {
	widths := make([]int, len(t.columns))
	for i, c := range t.columns {
		widths[i] = displayWidth(c.head)
		for _, row := range t.rows {
			widths[i] = max(widths[i], displayWidth(row[i].text))
		}
	}
	return widths
}

// total leaves out dropped columns, whose width is -1.
func total(widths []int) int {
	sum := -gap
	for _, w := range widths {
		if w >= 0 {
			sum += w + gap
		}
	}
	return sum
}

func (t *table) dropColumns(widths []int, width int) {
	for i, c := range slices.Backward(t.columns) {
		spare := 0 // what shrinking could give
		for j, c := range t.columns {
			if c.shrink && widths[j] > dropBelow {
				spare += widths[j] - dropBelow
			}
		}
		if c.drop && total(widths)-spare > width {
			widths[i] = -1
		}
	}
}

func (t *table) shrinkColumns(widths []int, width, least int) {
	for total(widths) > width {
		widest := -1
		for i, c := range t.columns {
			if c.shrink && widths[i] > least && (widest < 0 || widths[i] > widths[widest]) {
				widest = i
			}
		}
		if widest < 0 {
			return
		}
		widths[widest]--
	}
}
