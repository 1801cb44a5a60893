package job

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
	"unicode"
	"unicode/utf8"

	"go-crontab/job/problem"
)

// Selector says which labels a node must have to run a job. The zero Selector takes any node.
//
//	zone=a            the label has that value (== is the same)
//	zone!=a           it has another value, or the node has no such label
//	zone in (a,b)     it has one of the values
//	zone notin (a,b)  it has none of them, or the node has no such label
//	gpu               the node has the label, whatever its value
//	!gpu              it has not
//
// Commas separate the terms, and a node must satisfy every term. A value is letters, digits and _ .
// - / : @ +, or any text in double quotes, in which \" and \\ are a quote and a backslash.
type Selector struct {
	terms []term // sorted, without duplicates
}

type term struct {
	key    string
	op     selectOp
	values []string // sorted, unique; none for has and hasNot
}

type selectOp int8

const (
	opHas selectOp = iota
	opHasNot
	opIn
	opNotIn
)

// Bounds of selectors and of the labels of nodes.
const (
	MaxSelector   = 512 // bytes
	MaxTerms      = 32  // of a selector
	MaxLabelKey   = 128 // bytes
	MaxLabelValue = 128 // bytes of the value of a node's label
)

// ParseSelector reads a selector. Its errors give the place and the expected text.
func ParseSelector(text string) (Selector, error) {
	if len(text) > MaxSelector {
		return Selector{}, problem.Errorf(problem.TooManyBytes, len(text), MaxSelector)
	}

	s, err := ParsePlace(text)
	if len(s.terms) > MaxTerms {
		return Selector{}, problem.Errorf(problem.TooMany, len(s.terms), MaxTerms)
	}

	if long := len(s.String()); long > MaxSelector {
		return Selector{}, problem.Errorf(problem.SelectorTooLong, long, MaxSelector)
	}

	return s, err
}

// ParsePlace reads a stored selector, which may include the label of the job's handler.
func ParsePlace(text string) (Selector, error) {
	var s Selector
	if !utf8.ValidString(text) {
		return s, problem.Errorf(problem.NotUTF8)
	}

	p := &selectorText{text: text}
	if p.space(); p.rest() == "" {
		return s, nil
	}

	for {
		t, err := p.term()
		if err != nil {
			return Selector{}, err
		}
		s.terms = append(s.terms, t)
		p.space()
		if p.rest() == "" {
			break
		}
		if !p.take(",") {
			return Selector{}, p.wrong("a comma before the next term")
		}
	}

	slices.SortFunc(s.terms, compareTerms)
	s.terms = slices.CompactFunc(s.terms, func(a, b term) bool { return compareTerms(a, b) == 0 })
	return s, nil
}

// String returns the canonical text, which is equal for equivalent selectors in any order or
// notation.
func (s Selector) String() string {
	parts := make([]string, len(s.terms))
	for i, t := range s.terms {
		parts[i] = t.String()
	}
	return strings.Join(parts, ",")
}

// Empty reports whether the selector matches any node.
func (s Selector) Empty() bool { return len(s.terms) == 0 }

// Matches reports whether the selector matches a node with these labels.
func (s Selector) Matches(labels map[string]string) bool {
	for _, t := range s.terms {
		if !t.matches(labels) {
			return false
		}
	}
	return true
}

// Requires returns the selector with one more term: the node must have a label, with any value.
func (s Selector) Requires(key string) Selector {
	out := Selector{terms: append(slices.Clone(s.terms), term{key: key, op: opHas})}
	slices.SortFunc(out.terms, compareTerms)
	out.terms = slices.CompactFunc(out.terms, func(a, b term) bool { return compareTerms(a, b) == 0 })
	return out
}

func (t term) matches(labels map[string]string) bool {
	v, has := labels[t.key]
	switch t.op {
	case opHas:
		return has
	case opHasNot:
		return !has
	case opIn:
		return has && slices.Contains(t.values, v)
	}

	return !has || !slices.Contains(t.values, v)
}

func (t term) String() string {
	switch t.op {
	case opHas:
		return t.key
	case opHasNot:
		return "!" + t.key
	}

	values := make([]string, len(t.values))
	for i, v := range t.values {
		values[i] = quoteValue(v)
	}

	list := strings.Join(values, ",")
	switch {
	case t.op == opIn && len(values) == 1:
		return t.key + "=" + list
	case t.op == opIn:
		return t.key + " in (" + list + ")"
	case len(values) == 1:
		return t.key + "!=" + list
	}

	return t.key + " notin (" + list + ")"
}

func compareTerms(a, b term) int {
	return cmp.Or(cmp.Compare(a.key, b.key), cmp.Compare(a.op, b.op), slices.Compare(a.values, b.values))
}

// quoteValue puts a value in quotes if it needs them.
func quoteValue(v string) string {
	if v != "" && !strings.ContainsFunc(v, func(r rune) bool { return !isValueRune(r) }) {
		return v
	}
	return `"` + strings.NewReplacer(`\`, `\\`, `"`, `\"`).Replace(v) + `"`
}

func isValueRune(r rune) bool {
	return unicode.IsLetter(r) || unicode.IsDigit(r) || strings.ContainsRune("_.-/:@+", r)
}

func isKeyRune(r rune) bool {
	return r >= 'a' && r <= 'z' || r >= 'A' && r <= 'Z' || r >= '0' && r <= '9' || strings.ContainsRune("_.-/", r)
}

// checkLabelKey returns the problem of a label's name, or nil.
func checkLabelKey(key string) error {
	alnum := func(c byte) bool { return isKeyRune(rune(c)) && !strings.ContainsRune("_.-/", rune(c)) }
	switch {
	case key == "":
		return problem.Errorf(problem.Empty)
	case len(key) > MaxLabelKey:
		return problem.Errorf(problem.TooManyBytes, len(key), MaxLabelKey)
	case strings.ContainsFunc(key, func(r rune) bool { return !isKeyRune(r) }):
		return problem.Errorf(problem.LabelCharacters, key)
	case !alnum(key[0]) || !alnum(key[len(key)-1]):
		return problem.Errorf(problem.LabelEnds, key)
	}

	return nil
}

// checkLabelValue returns the problem of a label's value, or nil.
func checkLabelValue(v string) error {
	switch {
	case len(v) > MaxLabelValue:
		return problem.Errorf(problem.TooManyBytes, len(v), MaxLabelValue)
	case !utf8.ValidString(v):
		return problem.Errorf(problem.NotUTF8)
	case strings.ContainsFunc(v, unicode.IsControl):
		return problem.Errorf(problem.ControlCharacter, v)
	}
	return nil
}

// selectorText is a selector during parsing.
type selectorText struct {
	text string
	at   int // byte
}

func (p *selectorText) rest() string { return p.text[p.at:] }

func (p *selectorText) space() { p.at = len(p.text) - len(strings.TrimLeft(p.rest(), " \t\r\n")) }

func (p *selectorText) take(s string) bool {
	if !strings.HasPrefix(p.rest(), s) {
		return false
	}
	p.at += len(s)
	return true
}

// wrong reports which text was expected at the current place.
func (p *selectorText) wrong(want string) error {
	found := "the end"
	if r := p.rest(); r != "" {
		if r = firstRunes(r, 12); len(r) < len(p.rest()) {
			r += "…"
		}
		found = fmt.Sprintf("%q", r)
	}
	return problem.Errorf(problem.SelectorUnclear, utf8.RuneCountInString(p.text[:p.at])+1, found, want)
}

func firstRunes(s string, n int) string {
	for i := range s {
		if n--; n < 0 {
			return s[:i]
		}
	}
	return s
}

// word reads the longest run of characters that satisfy is.
func (p *selectorText) word(is func(rune) bool) string {
	end := strings.IndexFunc(p.rest(), func(r rune) bool { return !is(r) })
	if end < 0 {
		end = len(p.rest())
	}
	w := p.rest()[:end]
	p.at += end
	return w
}

func (p *selectorText) term() (term, error) {
	p.space()
	absent := p.take("!")
	p.space()
	begin := p.at
	key := p.word(isKeyRune)
	if key == "" {
		return term{}, p.wrong("the name of a label, as in zone=a, zone in (a,b), gpu or !gpu")
	}
	if err := checkLabelKey(key); err != nil {
		return term{}, fmt.Errorf("at character %d: the name of a label %w",
			utf8.RuneCountInString(p.text[:begin])+1, err)
	}

	if absent {
		return term{key: key, op: opHasNot}, nil
	}

	p.space()
	switch {
	case p.take("=="), p.take("="):
		return p.one(key, opIn)
	case p.take("!="):
		return p.one(key, opNotIn)
	case p.keyword("in"):
		return p.several(key, opIn)
	case p.keyword("notin"):
		return p.several(key, opNotIn)
	case p.rest() == "" || p.rest()[0] == ',':
		return term{key: key, op: opHas}, nil
	}

	return term{}, p.wrong("a comma, =, !=, in or notin")
}

// keyword reads a whole word.
func (p *selectorText) keyword(w string) bool {
	rest, ok := strings.CutPrefix(p.rest(), w)
	if next, _ := utf8.DecodeRuneInString(rest); !ok || rest != "" && isKeyRune(next) {
		return false
	}
	p.at += len(w)
	return true
}

func (p *selectorText) one(key string, op selectOp) (term, error) {
	v, err := p.value()
	return term{key: key, op: op, values: []string{v}}, err
}

func (p *selectorText) several(key string, op selectOp) (term, error) {
	t := term{key: key, op: op}
	if p.space(); !p.take("(") {
		return t, p.wrong("( and values, as in zone in (a,b)")
	}

	for {
		v, err := p.value()
		if err != nil {
			return t, err
		}
		t.values = append(t.values, v)
		p.space()
		if p.take(")") {
			break
		}
		if !p.take(",") {
			return t, p.wrong("a comma or )")
		}
	}

	slices.Sort(t.values)
	t.values = slices.Compact(t.values)
	return t, nil
}

func (p *selectorText) value() (string, error) {
	p.space()
	begin := p.at
	v := ""
	if p.take(`"`) {
		var ok bool
		if v, ok = p.quoted(); !ok {
			p.at = begin
			return "", p.wrong("a value that ends with a quote")
		}
	} else if v = p.word(isValueRune); v == "" {
		return "", p.wrong(`a value ("" for an empty one)`)
	}
	if err := checkLabelValue(v); err != nil {
		return "", fmt.Errorf("at character %d: the value %w", utf8.RuneCountInString(p.text[:begin])+1, err)
	}

	return v, nil
}

// quoted reads up to the closing quote.
func (p *selectorText) quoted() (string, bool) {
	var b strings.Builder
	for rest := p.rest(); rest != ""; rest = p.rest() {
		switch {
		case p.take(`\"`):
			b.WriteByte('"')
		case p.take(`\\`):
			b.WriteByte('\\')
		case p.take(`"`):
			return b.String(), true
		case rest[0] == '\\':
			return "", false
		default:
			_, n := utf8.DecodeRuneInString(rest)
			b.WriteString(rest[:n])
			p.at += n
		}
	}

	return "", false
}
