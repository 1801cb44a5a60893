package job

import (
	"bytes"
	"crypto/sha256"
	"maps"
	"slices"
)

// Term stands for something that jobs can be found by, such as a label with its value: the beginning of a digest, since
// what it stands for may be long.
type Term [16]byte

// What terms stand for, in all apps; with an app only there.
func OwnerTerm(app, owner string) Term        { return newTerm("owner", app, owner) }
func LabelTerm(app, label, value string) Term { return newTerm("label", app, label, value) }
func GroupTerm(app, group string) Term        { return newTerm("group", app, group) }
func CalendarTerm(app, calendar string) Term  { return newTerm("calendar", app, calendar) }

func newTerm(kind, app string, parts ...string) Term {
	h := sha256.New()
	for _, p := range append([]string{kind, app}, parts...) {
		h.Write([]byte(p))
		h.Write([]byte{0xFF}) // no text has that byte, so no two lists of parts look the same
	}
	return Term(h.Sum(nil)[:len(Term{})])
}

// Terms lists, in order, what a job of this definition can be found by, but for its name and its app.
func (s *Spec) Terms() []Term {
	var out []Term
	for _, app := range []string{"", s.App} {
		if s.Owner != "" {
			out = append(out, OwnerTerm(app, s.Owner))
		}
		for _, label := range slices.Sorted(maps.Keys(s.Labels)) {
			out = append(out, LabelTerm(app, label, s.Labels[label]))
		}
		if s.Group != "" {
			out = append(out, GroupTerm(app, s.Group))
		}
		for _, c := range s.Calendars {
			out = append(out, CalendarTerm(app, c))
		}
	}
	slices.SortFunc(out, func(a, b Term) int { return bytes.Compare(a[:], b[:]) })
	return slices.Compact(out)
}

// NamePart is a name from one of its characters on.
type NamePart struct {
	Text string // at most MaxPart characters of it
	Pos  int    // which character is its first, from 0
}

// MaxPart is how many characters of a name's part are kept.
const MaxPart = 32

// NameParts lists the parts of a name, from each of its characters on: the name contains a text of up to MaxPart
// characters if and only if one of them begins with it.
func NameParts(name string) []NamePart {
	runes := []rune(name)
	out := make([]NamePart, len(runes))
	for i := range runes {
		out[i] = NamePart{string(runes[i:min(len(runes), i+MaxPart)]), i}
	}
	return out
}
