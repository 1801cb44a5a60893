package job

import (
	"fmt"
	"strings"

	"go-crontab/job/problem"
)

// MaxSlots bounds the slots of a group.
const MaxSlots = 1_000_000

// CheckGroup returns the problems of a group's name and slots, as Problems, or nil.
func CheckGroup(name string, slots int) error {
	var p Problems
	checkName(&p, "name", name)
	if slots < 1 || slots > MaxSlots {
		p.Add("slots", problem.NotBetween.Advise("to start none at all, pause the jobs"), slots, 1, MaxSlots)
	}
	if p == nil {
		return nil
	}
	return p
}

// Name is what people call a job.
type Name struct{ App, Name string }

func (n Name) String() string { return n.App + "/" + n.Name }

// ParseName parses the output of String.
func ParseName(s string) (n Name, ok bool) {
	n.App, n.Name, ok = strings.Cut(s, "/")
	return n, ok
}

// InUse is the error of deleting an object that jobs refer to.
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
