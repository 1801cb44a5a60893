package api

import (
	"context"
	"encoding/json"
	"strings"
	"testing"
	"time"

	"go-crontab/job"
)

// FuzzShapes makes bodies of up to 256 KiB with long names, long lists and deep nesting, and reads
// them in every way. The allowed cost is relative to reading the same body with the standard
// library.
func FuzzShapes(f *testing.F) {
	f.Add("name", uint32(200), uint32(60_000), uint8(1), "1", uint8(0))
	f.Add("labels", uint32(1), uint32(20_000), uint8(2), `"a"`, uint8(1))
	f.Add("http", uint32(3), uint32(1000), uint8(12), "[]", uint8(2))
	f.Add("schedules", uint32(1), uint32(60_000), uint8(1), `"* * * * *"`, uint8(0))
	f.Add("jobs", uint32(1), uint32(60_000), uint8(1), `{"nmae":1}`, uint8(0))
	f.Add("exclude", uint32(1), uint32(60_000), uint8(1), `"2027-01-01..2099-01-01"`, uint8(0))
	f.Fuzz(func(t *testing.T, name string, repeat, count uint32, depth uint8, value string, kind uint8) {
		body := shapeOf(name, repeat, count, depth, value, kind)
		if len(body) > maxBody {
			return
		}

		stdlib, ours := time.Hour, time.Hour
		for range 3 {
			stdlib = min(stdlib, CPU(func() { _ = json.Unmarshal(body, new(any)) }))
			ours = min(ours, CPU(func() { readEveryWay(t, body) }))
			if ours <= 100*time.Millisecond+40*stdlib {
				return
			}
		}

		t.Errorf("%d bytes of %.100q: took %s of a processor, and the standard library reads them in %s", len(body),
			body, ours, stdlib)
	})
}

// shapeOf makes a body: a repeated name, of a list or an object with many values, nested some
// levels deep.
func shapeOf(name string, repeat, count uint32, depth uint8, value string, kind uint8) []byte {
	long := strings.Repeat(name, min(int(repeat), maxBody/max(1, len(name))))
	quoted, _ := json.Marshal(long) // marshalling a text cannot fail
	open, end := strings.Repeat("[", int(depth)%20), strings.Repeat("]", int(depth)%20)
	inner := open + value + end

	n := min(int(count), maxBody/(len(inner)+1))
	var text string
	switch kind % 3 {
	case 0:
		text = "[" + strings.TrimSuffix(strings.Repeat(inner+",", n), ",") + "]"
	case 1:
		text = "{" + numbered(`"`+"f%d"+`":1`, n) + "}"
	default:
		text = inner
	}

	return []byte("{" + string(quoted) + ":" + text + "}")
}

// readEveryWay reads a body as every kind of body, and checks the errors.
func readEveryWay(t *testing.T, body []byte) {
	o, err := parseObject(context.Background(), body)
	if err != nil {
		checkProblem(t, err)
		return
	}

	whole, err := wholeJob(o)
	if err != nil {
		checkProblem(t, err)
	}

	now := time.Unix(1_800_000_000, 0)
	whole.spec.Defaults(now)
	if err := whole.spec.Validate(); err != nil {
		checkProblem(t, problemOf(err))
	}

	if want, err := applyFields(o); err != nil {
		checkProblem(t, err)
	} else if err := want.Check(now); err != nil {
		checkProblem(t, problemOf(err))
	}

	f := newFields(o)
	calendar := calendarFields(f)
	calendar.Defaults()
	if _, err := calendar.Compile(); err != nil {
		checkProblem(t, problemOf(err))
	}

	rule := ruleFields(newFields(o))
	rule.Defaults()
	if err := rule.Validate(); err != nil {
		checkProblem(t, problemOf(err))
	}

	stored := job.Spec{App: "a", Name: "n", Command: "c", Schedule: "@daily", Labels: map[string]string{"k": "v"}}
	if _, err := patched(&stored, o); err != nil {
		checkProblem(t, err)
	}
}
