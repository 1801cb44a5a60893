package cli

import (
	"io"
	"slices"
	"strings"
)

// column is a column of a table. A table that is too wide for the terminal shrinks in this order.
// Columns with drop go first, from the right, because half an id is useless. Then the widest shrink
// column gets narrower, repeatedly. If that is not enough, spare columns go, from the right. At
// last all columns but the first two go.
type column struct {
	head   string
	right  bool // for numbers
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

func text[S ~string](s S) cell { return cell{text: plain(s)} }

const (
	gap       = 2  // spaces between columns
	shrunk    = 12 // minimum width of a column
	least     = 6  // minimum width when all others are gone
	dropBelow = 20 // when the shrinking columns together have less than this, drop columns go
)

// print writes the table with at most width columns of text. If width is 0, the table may be of any
// width.
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
	pending := 0 // spaces to write before the next text: no line ends in a space
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

// fit computes the column widths for a terminal; -1 hides a column.
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
				copy(widths, wished) // the others now have more room
				t.shrinkColumns(widths, width, least)
			}
		}
	}

	leave(shrunk, func(i int) bool { return t.columns[i].spare })
	t.shrinkColumns(widths, width, least)
	leave(least, func(i int) bool { return i > 1 })

	return widths // a table that is still too wide is wrapped by the terminal
}

// widths returns the natural widths of the columns.
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

// total returns the width of the table. It leaves out hidden columns, whose width is -1.
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
		spare := 0 // width that shrinking could free
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
