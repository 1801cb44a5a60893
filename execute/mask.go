package execute

import (
	"encoding/base64"
	"encoding/hex"
	"math/bits"
	"slices"
	"strings"

	"go-crontab/job"
)

// stars replace a secret, however long it is.
const stars = "***"

// Bounds of what is searched for, in bytes.
const (
	minForm  = 8       // of a value whose base64 and hex are searched for, and of a line of a value
	maxForm  = 4 << 10 // of a value whose base64 and hex are searched for
	minStart = 8       // of the beginning of a secret that is hidden at the end of a text
)

// masker finds secrets in a text. A program rarely writes a value as it is: a shell quotes it, JSON escapes it. The
// masker does not list the forms of a value, since every program has its own rule of what to escape. It undoes the
// escapes of the text instead, in several notations side by side, and searches each result for the value.
type masker struct {
	notations []*notation
	wakes     [256]uint // the notations, as bits, in which a byte may begin a secret or an escape
}

// newMasker finds values, or returns nil if there is nothing to find.
func newMasker(values map[job.Secret]string) *masker {
	plain, form, spaced := newAutomaton(), newAutomaton(), newAutomaton()
	for _, value := range values {
		for _, text := range parts(value) {
			plain.add(text)
			form.add(strings.ReplaceAll(text, "+", " "))
		}
		for _, text := range encodings(value) {
			spaced.add(text)
		}
	}
	if plain.empty() {
		return nil
	}

	for _, a := range []*automaton{plain, form, spaced} {
		a.link()
	}
	m := &masker{notations: notations(plain, form, spaced)}
	for i, n := range m.notations {
		for b := range m.wakes {
			if n.begins(byte(b)) {
				m.wakes[b] |= 1 << i
			}
		}
	}
	return m
}

// parts are the texts of a value that are searched for: all of it, and its longer lines.
func parts(value string) []string {
	out := []string{value, strings.TrimSpace(value)}
	if strings.Contains(value, "\n") {
		for line := range strings.Lines(value) {
			if line = strings.TrimSpace(line); len(line) >= minForm {
				out = append(out, line)
			}
		}
	}
	return out
}

// encodings are the base64 and the hex of a value.
func encodings(value string) []string {
	if len(value) < minForm || len(value) > maxForm {
		return nil
	}

	digits := hex.EncodeToString([]byte(value))
	out := []string{digits, strings.ToUpper(digits)}
	for before := range 3 {
		out = append(out, within(base64.RawStdEncoding, before, value), within(base64.RawURLEncoding, before, value))
	}
	return out
}

// within is the part of the base64 of a longer text that depends on nothing but the value, which begins there at a byte
// whose number has this remainder by three.
func within(e *base64.Encoding, before int, value string) string {
	text := e.EncodeToString(append(make([]byte, before, before+len(value)), value...))
	return text[(before*8+5)/6 : (before+len(value))*8/6]
}

// text returns a text with stars in the place of secrets, also of the beginning of one with which the text ends.
func (m *masker) text(s string) string {
	if m == nil {
		return s
	}
	t := &masking{m: m}
	return string(t.end(t.next(nil, []byte(s))))
}

// masking hides secrets in a stream. It holds back what may be the beginning of one until that is known. What it holds
// is bounded: a byte of a secret has at most a dozen bytes in any notation.
type masking struct {
	m       *masker
	readers []reader // one for each notation
	busy    uint     // those, as bits, that are within something that may become a secret
	at      int64    // bytes that came
	held    []byte   // the last of them, which are not passed on
	from    int      // where in held they begin
	found   []span   // what of them is to be hidden, in order, without overlaps
	said    bool     // the stars of the first one were written
}

// span is from a byte of the stream up to another, which does not belong to it.
type span struct{ from, to int64 }

// next takes what comes and appends to out what can be passed on.
func (t *masking) next(out, p []byte) []byte {
	if t.readers == nil {
		t.readers = make([]reader, len(t.m.notations))
		for i, n := range t.m.notations {
			t.readers[i].notation = n
		}
	}

	for _, b := range p {
		t.at++
		awake := t.busy | t.m.wakes[b]
		if awake == 0 {
			out = append(out, b)
			continue
		}

		t.held = append(t.held, b)
		safe := t.at
		for rest := awake; rest != 0; rest &= rest - 1 {
			i := bits.TrailingZeros(rest)
			r := &t.readers[i]
			r.read(b, t)
			safe = min(safe, r.begin())
			if r.idle() {
				awake &^= 1 << i
			}
		}
		t.busy = awake
		out = t.pass(out, safe)
	}
	return out
}

// hide notes a span. Spans that overlap become one.
func (t *masking) hide(s span) {
	i := len(t.found)
	for i > 0 && t.found[i-1].to > s.from {
		i--
	}

	end := i
	for ; end < len(t.found) && t.found[end].from < s.to; end++ {
		s.from, s.to = min(s.from, t.found[end].from), max(s.to, t.found[end].to)
	}
	t.found = slices.Replace(t.found, i, end, s)
}

// pass passes on what was held up to a byte.
func (t *masking) pass(out []byte, to int64) []byte {
	at := t.at - int64(len(t.held)-t.from)
	if to == at {
		return out
	}

	plain := func(to int64) {
		if to > at {
			n := int(to - at)
			out = append(out, t.held[t.from:t.from+n]...)
			t.from, at = t.from+n, to
		}
	}
	for len(t.found) > 0 && t.found[0].from < to {
		s := &t.found[0]
		plain(s.from)
		if !t.said {
			out, t.said = append(out, stars...), true
		}
		end := min(s.to, to)
		t.from, at = t.from+int(end-at), end
		if s.to > to {
			s.from = to
			break
		}
		t.found, t.said = t.found[1:], false
	}
	plain(to)
	if t.from > len(t.held)/2 {
		t.held = t.held[:copy(t.held, t.held[t.from:])]
		t.from = 0
	}
	return out
}

// end passes on the rest. The beginning of a secret at the very end may be one that was cut off.
func (t *masking) end(out []byte) []byte {
	for i := range t.readers {
		t.readers[i].end(t)
	}
	return t.pass(out, t.at)
}
