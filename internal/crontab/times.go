package crontab

import (
	"fmt"
	"hash/fnv"
	"path"
	"regexp"
	"strconv"
	"strings"

	"go-crontab/job"
	"go-crontab/job/problem"
)

// times reads the schedule of a line. It returns our cron expression in UTC, and the rest of the
// line.
func (p *parser) times(e *Entry, line string) (c *job.Cron, rest string, err error) {
	if m := anacrons.FindStringSubmatch(line); m != nil && (p.anacron || m[1] == "") {
		p.anacron = true
		return nil, "", problem.Errorf(problem.CrontabAnacron)
	}
	if strings.HasPrefix(line, "@") {
		macro, rest := word(line)
		if strings.EqualFold(macro, "@reboot") {
			return nil, "", problem.Errorf(problem.CrontabReboot)
		}
		c, err = job.ParseCron(macro, nil)
		return c, rest, err
	}

	var fields [5]string
	rest = line
	for i := range fields {
		if fields[i], rest = word(rest); fields[i] == "" || rest == "" {
			return nil, "", problem.Errorf(problem.CrontabLine)
		}
	}

	starred := strings.HasPrefix(fields[2], "*") || strings.HasPrefix(fields[4], "*")
	for i := range fields {
		if fields[i], err = p.field(e, i, fields[i], line); err != nil {
			return nil, "", err
		}
	}

	if err := bothDays(e, &fields, starred); err != nil {
		return nil, "", err
	}

	c, err = job.ParseCron(strings.Join(fields[:], " "), nil)
	return c, rest, err
}

// kinds are the fields with their names and ranges.
var kinds = [5]struct {
	name        string
	first, last int
}{{"minute", 0, 59}, {"hour", 0, 23}, {"day-of-month", 1, 31}, {"month", 1, 12}, {"day-of-week", 0, 7}}

// anacrons matches lines of anacrontabs. Such a line has a name in place of the day of the month.
// If a line begins with a macro, the line alone does not show whether it is anacron's. Then the
// other lines of the file decide.
var anacrons = regexp.MustCompile(`^(?:\d+|(@[a-z]+))[ \t]+\d+[ \t]+[A-Za-z][A-Za-z0-9_.-]+[ \t]+\S`)

var (
	random  = regexp.MustCompile(`^(\d*)~(\d*)(?:/(\d+))?$`)
	stepped = regexp.MustCompile(`^(\*|\d+-\d+)/0*([1-9]\d*)$`)
)

// field converts a field to our syntax. Cronie's random value becomes a fixed value. A step wider
// than its range becomes the first value.
func (p *parser) field(e *Entry, i int, text, line string) (string, error) {
	items := strings.Split(text, ",")
	for n, item := range items {
		if m := random.FindStringSubmatch(item); m != nil {
			v, err := pick(i, m, path.Base(p.o.Name)+"\x00"+line+"\x00"+strconv.Itoa(i))
			if err != nil {
				return "", err
			}
			e.say(problem.CrontabRandom, kinds[i].name, item, v)
			items[n] = v
			continue
		}
		if m := stepped.FindStringSubmatch(item); m != nil {
			items[n] = narrow(i, m, item)
		}
	}

	return strings.Join(items, ","), nil
}

// pick chooses a value of a~b. It always chooses the same value for the same line.
func pick(i int, m []string, seed string) (string, error) {
	k := kinds[i]
	first, last := k.first, k.last
	if i == 4 {
		last = 6
	}
	if m[1] != "" {
		first, _ = strconv.Atoi(m[1])
	}
	if m[2] != "" {
		last, _ = strconv.Atoi(m[2])
	}

	if m[3] != "" || len(m[1]) > 3 || len(m[2]) > 3 || first < k.first || last > k.last || first > last {
		return "", problem.Errorf(problem.CrontabRandomRange, k.name, m[0], k.first, k.last)
	}

	h := fnv.New64a()
	h.Write([]byte(seed))
	return strconv.Itoa(first + int(h.Sum64()%uint64(last-first+1))), nil
}

// narrow replaces a step by its first value, if the step never reaches a second value.
func narrow(i int, m []string, item string) string {
	step, err := strconv.Atoi(m[2])
	first, last := kinds[i].first, kinds[i].last
	if i == 4 {
		last = 6
	}
	if from, to, ranged := strings.Cut(m[1], "-"); ranged {
		a, err1 := strconv.Atoi(from)
		b, err2 := strconv.Atoi(to)
		if err1 != nil || err2 != nil || a > b {
			return item
		}
		first, last = a, b
	}

	if err == nil && step > last-first {
		return strconv.Itoa(first)
	}
	return item
}

// bothDays handles lines that restrict both day fields. In cron, a day must match both fields if
// one of them begins with *, and either field if none does. In our expressions it must always
// match either field, even with */2.
func bothDays(e *Entry, fields *[5]string, starred bool) error {
	dom, dow := fields[2], fields[4]
	if !starred || dom == "*" || dow == "*" {
		return nil
	}

	// A field with all days does not restrict the other one.
	if all(dom, 2) {
		fields[2] = "*"
		return nil
	}
	if all(dow, 4) {
		fields[4] = "*"
		return nil
	}

	if week, ok := weekOf(dom); ok && dowDays(dow) != nil {
		var days []string
		for _, d := range dowDays(dow) {
			days = append(days, fmt.Sprintf("%d#%d", d, week))
		}
		fields[2], fields[4] = "*", strings.Join(days, ",")
		e.say(problem.CrontabWeekOfMonth, dom, dow, fields[4])
		return nil
	}

	return problem.Errorf(problem.CrontabBothDays, dom, dow)
}

// members lists the values that match a day field in an example: a month that begins on a Sunday
// and has 28 days, or a week.
func members(field string, i int) (out []int) {
	probe := [5]string{"0", "0", "*", "*", "*"}
	probe[i] = field
	c, err := job.ParseCron(strings.Join(probe[:], " "), nil)
	if err != nil {
		return nil
	}

	text := c.Fields()[map[int]int{2: 3, 4: 5}[i]]
	last := kinds[i].last
	if i == 4 {
		last = 6
	}

	for v := kinds[i].first; v <= last; v++ {
		if holds(text, v, i) {
			out = append(out, v)
		}
	}
	return out
}

// holds reports whether a field in plain form contains a value. Sunday is 0 and 7.
func holds(text string, v, i int) bool {
	for item := range strings.SplitSeq(text, ",") {
		body, step, _ := strings.Cut(item, "/")
		from, to, ranged := strings.Cut(body, "-")
		a, err := strconv.Atoi(from)
		b := a
		switch {
		case body == "*":
			a, b = kinds[i].first, kinds[i].last
			if i == 4 {
				b = 6
			}
		case err != nil:
			return false // L, 15W and the like
		case ranged:
			b, _ = strconv.Atoi(to)
		case step != "":
			b = kinds[i].last
		}

		by := 1
		if step != "" {
			by, _ = strconv.Atoi(step)
		}

		for x := a; x <= b; x += max(by, 1) {
			if x == v || i == 4 && x%7 == v {
				return true
			}
		}
	}
	return false
}

func all(field string, i int) bool {
	return len(members(field, i)) == kinds[i].last-kinds[i].first+1-i/4
}

func dowDays(field string) []int { return members(field, 4) }

// weekOf returns the week of the month with these days: 1 for days 1–7, up to 4.
func weekOf(field string) (week int, ok bool) {
	days := members(field, 2)
	if len(days) != 7 || days[6]-days[0] != 6 || days[0]%7 != 1 {
		return 0, false
	}
	return days[0]/7 + 1, true
}
