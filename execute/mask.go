package execute

import (
	"encoding/base64"
	"encoding/hex"
	"encoding/json"
	"html"
	"net/url"
	"strconv"
	"strings"

	"go-crontab/job"
)

// stars stand for a secret, however long it is.
const stars = "***"

// Bounds of what is looked for, in bytes.
const (
	minForm  = 8       // of values that are looked for in other forms, and of the lines of a value
	maxForm  = 4 << 10 // of values that are looked for in other forms
	minStart = 8       // of the beginning of a secret that is hidden at the end of a text
)

// forms are the ways in which a value may turn up: as it is, and as programs write it that are given it.
func forms(value string) []string {
	out := []string{value, strings.TrimSpace(value)}
	if strings.Contains(value, "\n") {
		for line := range strings.Lines(value) {
			if line = strings.TrimSpace(line); len(line) >= minForm {
				out = append(out, line)
			}
		}
	}
	if len(value) < minForm || len(value) > maxForm {
		return out
	}
	for before := range 3 {
		out = append(out, within(base64.RawStdEncoding, before, value), within(base64.RawURLEncoding, before, value))
	}
	quoted, plain, asJSON := strconv.Quote(value), strconv.QuoteToASCII(value), jsonOf(value)
	out = append(out, quoted[1:len(quoted)-1], plain[1:len(plain)-1], asJSON(true), asJSON(false), html.EscapeString(value))
	out = append(out, hex.EncodeToString([]byte(value)), strings.ToUpper(hex.EncodeToString([]byte(value))))
	for _, escaped := range []string{url.QueryEscape(value), url.PathEscape(value), job.HeaderText(value)} {
		out = append(out, escaped, lowerHex(escaped))
	}
	return out
}

// within is what of the base64 of a longer text depends on nothing but the value that begins there at a byte whose
// number has this remainder by three.
func within(e *base64.Encoding, before int, value string) string {
	text := e.EncodeToString(append(make([]byte, before, before+len(value)), value...))
	return text[(before*8+5)/6 : (before+len(value))*8/6]
}

func jsonOf(value string) func(asHTML bool) string {
	return func(asHTML bool) string {
		var b strings.Builder
		e := json.NewEncoder(&b)
		e.SetEscapeHTML(asHTML)
		_ = e.Encode(value) // text is no error
		return strings.TrimSuffix(b.String(), "\"\n")[1:]
	}
}

// lowerHex writes percent-encoding with small letters.
func lowerHex(s string) string {
	b := []byte(s)
	for i := 0; i+2 < len(b); i++ {
		if b[i] == '%' {
			copy(b[i+1:i+3], strings.ToLower(string(b[i+1:i+3])))
			i += 2
		}
	}
	return string(b)
}

// masker finds any of some texts in one pass over a stream (Aho and Corasick's automaton). It does not change.
type masker struct {
	first [256]int32 // the nodes of the texts' first bytes
	nodes []maskNode // the first is the root
}

// maskNode is where one is after bytes that begin one of the texts or more.
type maskNode struct {
	child, sibling int32 // 0: none
	fail           int32 // the node of the longest other beginning with which these bytes end
	depth          int32 // how many bytes they are
	longest        int32 // bytes of the longest text with which they end, 0: none
	b              byte
}

// newMasker finds values in all their forms. nil if there is nothing to be found.
func newMasker(values map[job.Secret]string) *masker {
	m := &masker{nodes: make([]maskNode, 1)}
	for _, value := range values {
		for _, form := range forms(value) {
			m.add(form)
		}
	}
	if len(m.nodes) == 1 {
		return nil
	}
	m.link()
	return m
}

func (m *masker) add(text string) {
	if len(text) < job.MinSecret {
		return
	}
	at := int32(0)
	for i := range len(text) {
		next := m.child(at, text[i])
		if next == 0 {
			next = int32(len(m.nodes))
			m.nodes = append(m.nodes, maskNode{b: text[i], depth: int32(i + 1), sibling: m.nodes[at].child})
			m.nodes[at].child = next
			if at == 0 {
				m.first[text[i]] = next
			}
		}
		at = next
	}
	m.nodes[at].longest = int32(len(text))
}

func (m *masker) child(at int32, b byte) int32 {
	if at == 0 {
		return m.first[b]
	}
	for c := m.nodes[at].child; c != 0; c = m.nodes[c].sibling {
		if m.nodes[c].b == b {
			return c
		}
	}
	return 0
}

// link sets where to go on when the next byte does not fit, the short beginnings first.
func (m *masker) link() {
	queue := []int32{0}
	for len(queue) > 0 {
		at := queue[0]
		queue = queue[1:]
		for c := m.nodes[at].child; c != 0; c = m.nodes[c].sibling {
			n := &m.nodes[c]
			if at != 0 {
				n.fail = m.step(m.nodes[at].fail, n.b)
			}
			n.longest = max(n.longest, m.nodes[n.fail].longest)
			queue = append(queue, c)
		}
	}
}

// step goes on by one byte.
func (m *masker) step(at int32, b byte) int32 {
	for {
		if next := m.child(at, b); next != 0 || at == 0 {
			return next
		}
		at = m.nodes[at].fail
	}
}

// text returns a text with stars for what is to be hidden, also for the beginning of it with which the text ends.
func (m *masker) text(s string) string {
	if m == nil {
		return s
	}
	t := &masking{m: m}
	return string(t.end(t.next(nil, []byte(s))))
}

// masking hides secrets in a stream. What may be the beginning of one is held back until it is known whether it is.
type masking struct {
	m     *masker
	state int32
	at    int64  // bytes that came
	held  []byte // the last of them, which are not passed on
	from  int    // where in held they begin
	found []span // what of them is to be hidden, in order
	said  bool   // the stars of the first one were written
}

// span is from a byte of the stream up to another, which does not belong to it.
type span struct{ from, to int64 }

// next takes what comes and appends to out what can be passed on.
func (t *masking) next(out, p []byte) []byte {
	for _, b := range p {
		t.at++
		if t.state == 0 && t.m.first[b] == 0 && t.from == len(t.held) {
			out = append(out, b)
			continue
		}
		t.held = append(t.held, b)
		t.state = t.m.step(t.state, b)
		n := &t.m.nodes[t.state]
		if n.longest > 0 {
			t.hide(span{t.at - int64(n.longest), t.at})
		}
		out = t.pass(out, t.at-int64(n.depth))
	}
	return out
}

// hide notes a span that ends here. It may have those in it that were found before.
func (t *masking) hide(s span) {
	for len(t.found) > 0 && t.found[len(t.found)-1].to > s.from {
		last := t.found[len(t.found)-1]
		s.from = min(s.from, last.from)
		t.found = t.found[:len(t.found)-1]
	}
	t.found = append(t.found, s)
}

// pass passes on what was held up to a byte.
func (t *masking) pass(out []byte, to int64) []byte {
	at := t.at - int64(len(t.held)-t.from)
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
	if depth := int64(t.m.nodes[t.state].depth); depth >= minStart {
		t.hide(span{t.at - depth, t.at})
	}
	t.state = 0
	return t.pass(out, t.at)
}
