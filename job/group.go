package job

import (
	"fmt"
	"strings"

	"go-crontab/job/problem"
)

// MaxSlots bounds the slots of a group. A group with MaxSlots slots does not limit how many runs
// execute at once.
const MaxSlots = 1_000_000

// CheckGroup returns the problems of a group as Problems, or nil.
func CheckGroup(g GroupSpec) error {
	var p Problems
	checkName(&p, "name", g.Name)
	if _, wrong := parseRate(g.Rate); g.Rate != "" && wrong != nil {
		p.Put("rate", *wrong)
	}

	switch {
	case g.Slots == 0 && g.Rate != "": // no limit
	case g.Slots < 1 || g.Slots > MaxSlots:
		p.Add("slots", problem.NotBetween.Advise("to start none at all, pause the jobs"), g.Slots, 1, MaxSlots)
	}
	if p == nil {
		return nil
	}
	return p
}

// Limits returns what a valid group allows.
func (g GroupSpec) Limits() (slots int, rate Rate) {
	rate, _ = parseRate(g.Rate)
	if g.Slots == 0 {
		return MaxSlots, rate
	}
	return g.Slots, rate
}

// GroupOf returns the definition of a group with these slots and this rate.
func GroupOf(name string, slots int, rate Rate) GroupSpec {
	if slots == MaxSlots && rate.Any() {
		slots = 0
	}
	return GroupSpec{Name: name, Slots: slots, Rate: rate.String()}
}

// Diff lists what other changes.
func (g GroupSpec) Diff(other GroupSpec) []Change { return diff(flatOf(&g), flatOf(&other)) }

// Name is what people call a job.
type Name struct{ App, Name string }

func (n Name) String() string { return n.App + "/" + n.Name }

// ParseName parses the output of String.
func ParseName(s string) (n Name, ok bool) {
	n.App, n.Name, ok = strings.Cut(s, "/")
	return n, ok
}

// InUse is the error of deleting an object that jobs still refer to.
type InUse struct {
	Kind, Name string
	By         []Name // some of these jobs
}

func (e *InUse) Error() string {
	names := make([]string, len(e.By))
	for i, n := range e.By {
		names[i] = n.String()
	}
	return fmt.Sprintf("the %s %q is in use by %s", e.Kind, e.Name, strings.Join(names, ", "))
}
