package execute

import (
	"encoding/base64"
	"encoding/hex"
	"math/bits"
	"slices"
	"strings"

	"go-crontab/job"
)

// stars replace a secret of any length.
const stars = "***"

// Bounds of the search, in bytes.
const (
	minForm  = 8       // shortest value whose base64 and hex are searched, and shortest line of a value
	maxForm  = 4 << 10 // longest value whose base64 and hex are searched
	minStart = 8       // shortest beginning of a secret that is hidden when a text ends with it
)

// masker finds secrets in a text. A program rarely writes a value literally: a shell quotes it, JSON escapes it. The
// masker cannot list the forms of a value, because each program has its own rules for escapes. Instead it undoes the
// escapes of the text in several notations in parallel, and searches each result for the value.
type masker struct {
	notations []*notation
	wakes     [256]uint // per byte: bits of the notations in which that byte may begin a secret or an escape
}

// newMasker returns a masker for values, or nil if no value is long enough to search for.
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

// parts returns the texts to search for a value: the whole value and its longer lines.
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

// encodings returns the base64 and hex forms of a value.
func encodings(value string) []string {
	if len(value) < minForm || len(value) > maxForm {
		return nil
	}

	digits := hex.EncodeToString([]byte(value))
	out := []string{digits, strings.ToUpper(digits)}
	for before := range 3 {
		out = append(out,
			within(base64.RawStdEncoding, before, value), within(base64.RawURLEncoding, before, value))
	}
	return out
}

// within returns a part of the base64 of a longer text that contains the value: the part that
// depends only on the value. before is the value's offset in the text, modulo 3.
func within(e *base64.Encoding, before int, value string) string {
	text := e.EncodeToString(append(make([]byte, before, before+len(value)), value...))
	return text[(before*8+5)/6 : (before+len(value))*8/6]
}

// text replaces secrets in s by stars. If s ends within a secret, it replaces that beginning, too.
func (m *masker) text(s string) string {
	if m == nil {
		return s
	}
	t := &masking{m: m}
	return string(t.end(t.next(nil, []byte(s))))
}

// masking hides secrets in a stream. It holds back bytes that may begin a secret, until it knows.
// The number of held bytes is bounded, because one byte of a secret takes at most a dozen bytes in
// any notation.
type masking struct {
	m       *masker
	readers []reader // one for each notation
	busy    uint     // bits of the readers that are within a possible secret or escape
	at      int64    // number of received bytes
	held    []byte   // ends with the received bytes that are not passed on yet
	from    int      // index in held of the first byte that is not passed on
	found   []span   // secrets in the held bytes, in order, without overlaps
	said    bool     // the stars for found[0] were written
}

// span is the range [from, to) of stream positions.
type span struct{ from, to int64 }

// next takes the stream's next bytes and appends to out the bytes that can be passed on.
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

// hide marks a span as a secret. Overlapping spans become one.
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

// pass passes on the held bytes before stream position to.
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

// end passes on the rest, and hides a secret that is cut off at the end.
func (t *masking) end(out []byte) []byte {
	for i := range t.readers {
		t.readers[i].end(t)
	}
	return t.pass(out, t.at)
}
