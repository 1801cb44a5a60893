package job

import (
	"bytes"
	"crypto/sha256"
	"maps"
	"slices"
)

// Term is a search key for jobs, such as a label with its value. It is the beginning of a digest,
// because the text itself may be long.
type Term [16]byte

// Constructors of terms. With an app, the term finds jobs of this app only; with "", jobs of all
// apps.
func OwnerTerm(app, owner string) Term        { return newTerm("owner", app, owner) }
func LabelTerm(app, label, value string) Term { return newTerm("label", app, label, value) }
func GroupTerm(app, group string) Term        { return newTerm("group", app, group) }
func CalendarTerm(app, calendar string) Term  { return newTerm("calendar", app, calendar) }

// KeepJobTerm finds the jobs whose definitions delete them once they are finished.
func KeepJobTerm() Term { return newTerm("keep_job", "") }

func newTerm(kind, app string, parts ...string) Term {
	h := sha256.New()
	for _, p := range append([]string{kind, app}, parts...) {
		h.Write([]byte(p))
		h.Write([]byte{0xFF}) // no text has this byte, so different lists hash differently
	}
	return Term(h.Sum(nil)[:len(Term{})])
}

// Terms lists the sorted terms of a job with this definition. The name and the app have no terms.
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

	if s.KeepJob != 0 {
		out = append(out, KeepJobTerm())
	}

	slices.SortFunc(out, func(a, b Term) int { return bytes.Compare(a[:], b[:]) })
	return slices.Compact(out)
}

// NamePart is the end of a name from one of its characters on, cut to MaxPart.
type NamePart struct {
	Text string // at most MaxPart characters
	Pos  int    // position of its first character, from 0
}

// MaxPart is the most characters of a part of a name.
const MaxPart = 32

// NameParts lists the parts of a name. One part begins at each character. A name contains a text of
// up to MaxPart characters if and only if one of its parts begins with that text.
func NameParts(name string) []NamePart {
	runes := []rune(name)
	out := make([]NamePart, len(runes))
	for i := range runes {
		out[i] = NamePart{string(runes[i:min(len(runes), i+MaxPart)]), i}
	}
	return out
}
