package job

import (
	"bytes"
	"encoding/csv"
	"errors"
	"fmt"
	"io"
	"regexp"
	"slices"
	"strings"
	"unicode/utf8"

	"go-crontab/job/problem"
)

// ImportedDays is the content of an imported file.
type ImportedDays struct {
	Exclude, Include []CalendarDay
	Ignored          int    // events without a kind of day, see ParseICS
	Title            string // the title in the file
}

// maxImportProblems is the most problems that an import reports.
const maxImportProblems = 20

// importer collects days, and problems by line.
type importer struct {
	ImportedDays
	problems Problems
	enough   bool // too many problems: stop reading
}

func (im *importer) wrong(line int, s problem.Sentence, values ...any) { im.put(line, s.Of(values...)) }

func (im *importer) tell(line int, err error) { im.put(line, problem.Of(err)) }

func (im *importer) put(line int, t problem.Text) {
	im.problems.Put(fmt.Sprintf("line %d", line), t)
	im.enough = im.enough || len(im.problems) >= maxImportProblems
}

func (im *importer) add(line int, include bool, d CalendarDay) {
	if len(im.Exclude)+len(im.Include) >= MaxCalendarDays {
		if !im.enough {
			im.wrong(line, problem.FileTooManyDays, MaxCalendarDays)
		}
		im.enough = true
		return
	}

	d.Note = cutNote(d.Note)
	if include {
		im.Include = append(im.Include, d)
	} else {
		im.Exclude = append(im.Exclude, d)
	}
}

// done returns the imported days. If the file has problems, it returns no days.
func (im *importer) done() (ImportedDays, error) {
	if im.problems != nil {
		return ImportedDays{}, im.problems
	}
	return im.ImportedDays, nil
}

// cutNote makes a note a single line and cuts it to the allowed length.
func cutNote(s string) string {
	s = strings.Join(strings.Fields(s), " ")
	if len(s) <= MaxCalendarNote {
		return s
	}
	most := MaxCalendarNote - len("…")
	for most > 0 && !utf8.RuneStart(s[most]) {
		most--
	}
	return s[:most] + "…"
}

// importText does the checks common to all formats.
func importText(text []byte) ([]byte, error) {
	text = bytes.TrimPrefix(text, []byte("\ufeff"))
	if len(text) > MaxCalendarSize {
		return nil, Wrong("file", problem.TooManyBytes, len(text), MaxCalendarSize)
	}

	if !utf8.Valid(text) {
		line := 1
		for rest := text; len(rest) > 0; {
			r, size := utf8.DecodeRune(rest)
			if r == utf8.RuneError && size == 1 {
				break
			}
			if r == '\n' {
				line++
			}
			rest = rest[size:]
		}
		return nil, Wrong(fmt.Sprintf("line %d", line), problem.NotUTF8.Advise("save the file in that encoding"))
	}

	return text, nil
}

// csvColumns are the columns in their order without a header. Each has the other names that a
// header may use.
var csvColumns = []struct {
	name    string
	aliases []string
}{
	{"date", []string{"start", "from", "day"}},
	{"end", []string{"to", "until"}},
	{"kind", []string{"type"}},
	{"note", []string{"name", "summary", "title", "holiday", "description"}},
	{"as", nil},
}

// ParseCSV reads a day or a range of days from each line: date, end, kind, note, as. Only the date
// is required. A header may name the columns in another order. A date is 2027-02-06, 2027/2/6,
// 20270206, or 12-25 for each year. The kind is exclude (or holiday, closed, off) or include (or
// workday, open, makeup); the default is exclude. as is for included days, see [CalendarDay].
// Commas separate columns. If the first row has no comma, semicolons or tabs do. Empty lines and
// lines that begin with # are ignored. Errors are Problems of lines.
func ParseCSV(text []byte) (ImportedDays, error) {
	text, err := importText(text)
	if err != nil {
		return ImportedDays{}, err
	}

	r := csv.NewReader(bytes.NewReader(text))
	r.FieldsPerRecord, r.Comment = -1, '#'
	first := firstRow(text)
	for _, other := range []rune{';', '\t'} {
		if !bytes.ContainsRune(first, ',') && bytes.ContainsRune(first, other) {
			r.Comma = other
		}
	}

	r.TrimLeadingSpace = r.Comma != '\t' // a tab would count as space, and empty columns vanish
	var im importer
	columns := []string{"date", "end", "kind", "note", "as"}
	for n := 0; !im.enough; n++ {
		record, err := r.Read()
		if errors.Is(err, io.EOF) {
			break
		}
		var bad *csv.ParseError
		if errors.As(err, &bad) {
			im.wrong(bad.Line, problem.CSVUnreadable, bad.Err)
			break // after an unclosed quote the rest is meaningless
		}
		if err != nil {
			return ImportedDays{}, err
		}
		line, _ := r.FieldPos(0)
		if n == 0 && isHeader(record) {
			columns = im.header(line, record)
			continue
		}
		im.csvLine(line, record, columns)
	}

	return im.done()
}

// firstRow returns the first line that is not ignored.
func firstRow(text []byte) []byte {
	for line := range bytes.Lines(text) {
		if len(bytes.TrimSpace(line)) > 0 && line[0] != '#' {
			return line
		}
	}
	return nil
}

// isHeader reports whether a record contains a name of the date column.
func isHeader(record []string) bool {
	return slices.ContainsFunc(record, func(cell string) bool { return columnOf(cell) == "date" })
}

func columnOf(cell string) string {
	cell = strings.ToLower(strings.TrimSpace(cell))
	for _, c := range csvColumns {
		if cell == c.name || slices.Contains(c.aliases, cell) {
			return c.name
		}
	}
	return ""
}

func (im *importer) header(line int, record []string) (columns []string) {
	for _, cell := range record {
		name := columnOf(cell)
		switch {
		case name == "":
			im.wrong(line, problem.CSVColumnUnknown, shorten(cell))
		case slices.Contains(columns, name):
			im.wrong(line, problem.CSVColumnTwice, shorten(cell))
		}
		columns = append(columns, name)
	}

	return columns
}

func (im *importer) csvLine(line int, record, columns []string) {
	if len(record) > len(columns) {
		im.wrong(line, problem.CSVColumns, len(record), strings.Join(columns, ", "))
		return
	}

	cells := map[string]string{}
	for i, cell := range record {
		cells[columns[i]] = strings.TrimSpace(cell)
	}

	if strings.Join(record, "") == "" {
		return // an empty row of a spreadsheet
	}

	include := false
	switch kind := strings.ToLower(cells["kind"]); kind {
	case "", "exclude", "holiday", "closed", "off":
	case "include", "workday", "open", "makeup", "make-up":
		include = true
	default:
		im.wrong(line, problem.CSVKind, shorten(kind))
		return
	}

	d := CalendarDay{
		Date: spreadsheetDate(cells["date"]), End: spreadsheetDate(cells["end"]), As: cells["as"], Note: cells["note"],
	}
	_, isDay := parseWeekday(d.As)
	switch _, part, err := d.span(); {
	case err != nil && part == "end":
		im.tell(line, fmt.Errorf("%w; the columns are %s", err, strings.Join(columns, ", ")))
	case err != nil:
		im.tell(line, err)
	case d.As != "" && !include:
		im.wrong(line, problem.CSVAsOfClosedDay, shorten(d.As))
	case d.As != "" && !isDay && !strings.EqualFold(d.As, asWorkday):
		im.wrong(line, problem.CSVAs, shorten(d.As))
	default:
		im.add(line, include, d)
	}
}

var spreadsheetForms = regexp.MustCompile(`^(\d{4})[/.](\d{1,2})[/.](\d{1,2})$|^(\d{4})(\d{2})(\d{2})$`)

// spreadsheetDate converts the date formats of spreadsheets that begin with the year. Other texts
// stay unchanged.
func spreadsheetDate(s string) string {
	m := spreadsheetForms.FindStringSubmatch(s)
	if m == nil {
		return s
	}
	year, month, day := m[1]+m[4], m[2]+m[5], m[3]+m[6]
	return year + "-" + ("0" + month)[len(month)-1:] + "-" + ("0" + day)[len(day)-1:]
}
