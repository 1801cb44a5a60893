package api

import (
	"encoding/json"
	"fmt"
	"runtime"
	"strings"
	"sync"
	"syscall"
	"time"
)

// Shape is a JSON value that is meant to cost more than its length.
type Shape struct {
	Name string
	JSON string
}

// fill repeats a text up to a number of bytes.
func fill(text string, most int) string { return strings.Repeat(text, max(0, most/len(text))) }

// numbered makes parts up to a number of bytes. %d in the format is the number of the part.
func numbered(format string, most int) string {
	var b strings.Builder
	for i := 0; ; i++ {
		part := fmt.Sprintf(format, i)
		if b.Len() > 0 {
			part = "," + part
		}
		if b.Len()+len(part) > most {
			return b.String()
		}
		b.WriteString(part)
	}
}

// deep nests a value as deep as a body permits, minus the levels of some enclosing fields.
func deep(open, value, end string, fields int) string {
	n := maxDepth - fields
	return strings.Repeat(open, n) + value + strings.Repeat(end, n)
}

// ofCommas is a list of equal values.
func ofCommas(value string, most int) string {
	return "[" + strings.TrimSuffix(fill(value+",", most-2), ",") + "]"
}

// HostileValues are values for a field, of up to a number of bytes.
func HostileValues(most int) []Shape { return shapesOf(most, "values", hostileValues) }

// HostileBodies are whole bodies.
func HostileBodies(most int) []Shape { return shapesOf(most, "bodies", hostileBodies) }

// made caches shapes: making them costs more than sending them.
var made sync.Map

func shapesOf(most int, what string, build func(int) []Shape) []Shape {
	key := fmt.Sprint(what, most)
	if s, ok := made.Load(key); ok {
		return s.([]Shape)
	}
	s := build(most)
	made.Store(key, s)
	return s
}

func hostileValues(most int) []Shape {
	quoted := func(s string) string { return `"` + s + `"` }
	return []Shape{
		{"a long text", quoted(fill("a", most-2))},
		{"a cron list", quoted(fill("1,", most-12) + "1 * * * *")},
		{"a list of different texts", "[" + numbered(`"a%d"`, most-2) + "]"},
		{"a list of unknown fields", ofCommas(`{"naem":1}`, most)},
		{"many fields", "{" + numbered(`"A%d":"1"`, most-2) + "}"},
	}
}

func hostileBodies(most int) []Shape {
	half := most/2 - 16
	short, long := strings.Repeat("n", maxFieldName), strings.Repeat("n", half)
	inList := func(value string) string {
		return "{" + fmt.Sprintf("%q:", short) + ofCommas(value, most-len(short)-8) + "}"
	}
	return []Shape{
		{"a long name of a long list", fmt.Sprintf("{%q:", long) + ofCommas("1", half) + "}"},
		{"a name of a long list", inList("1")},
		{"deep lists", inList(deep("[", "1", "]", 2))},
		{"too deep", fill("[", most)},
		{"unknown fields", "{" + numbered(`"field%d":1`, most-2) + "}"},
		{"fields that are nearly right", "{" + numbered(`"nam%d":1`, most-2) + "}"},
		{"a field twice at the end", "{" + numbered(`"f%d":1`, most-20) + `,"f0":1}`},
		{"not JSON at its end", "{" + numbered(`"f%d":[1]`, most-2)},
	}
}

// CPU returns the CPU time of a function on its caller's thread. Other load on the machine does not
// change it.
func CPU(f func()) time.Duration {
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	const thisThread = 1 // RUSAGE_THREAD
	used := func() time.Duration {
		var u syscall.Rusage
		if err := syscall.Getrusage(thisThread, &u); err != nil {
			panic(err)
		}
		return time.Duration(u.Utime.Nano() + u.Stime.Nano())
	}

	before := used()
	f()
	return used() - before
}

// Patience is the allowed cost of 256 KiB of JSON: 100 ms, or more with the slower race detector.
// It is measured by reading a body with the standard library.
func Patience() time.Duration {
	body := []byte("[" + strings.TrimSuffix(strings.Repeat(`{"a":1},`, 256<<10/8), ",") + "]")
	least := time.Hour
	for range 5 {
		least = min(least, CPU(func() {
			if err := json.Unmarshal(body, new([]any)); err != nil {
				panic(err)
			}
		}))
	}

	return max(100*time.Millisecond, 8*least)
}
