package job

import (
	"fmt"
	"strconv"
	"strings"

	"go-crontab/job/problem"
)

// readSpecial parses L, LW and 15W as days of the month, 5L and 5#3 as days of the week. ok is
// false for any other item.
func (f *cronField) readSpecial(item string) (text string, ok bool, err *CronError) {
	switch f.kind {
	case &fieldKinds[domAt]:
		return f.readSpecialDay(item)
	case &fieldKinds[dowAt]:
		return f.readSpecialWeekday(item)
	}
	return "", false, nil
}

func (f *cronField) readSpecialDay(item string) (string, bool, *CronError) {
	if item == "L" {
		f.lastDay = true
		return item, true, nil
	}

	if item == "LW" {
		f.lastWorkday = true
		return item, true, nil
	}

	if back, ok := strings.CutPrefix(item, "L-"); ok {
		return "", false, f.wrong(item, daysBefore(back), problem.CronBeforeLast)
	}

	day, ok := strings.CutSuffix(item, "W")
	if !ok {
		return "", false, nil
	}

	if strings.ContainsAny(day, "-/") {
		return "", false, f.wrong(item, "write each day with its own W", problem.CronWorkdayRange)
	}

	v, err := f.value(item, day)
	if err != nil {
		return "", false, err
	}

	f.nearest.add(v - f.kind.min)
	return strconv.Itoa(v) + "W", true, nil
}

// daysBefore suggests a replacement for an item such as L-3: three schedules, one for each length
// of month.
func daysBefore(back string) string {
	n, ok := number(back)
	if !ok || n < 1 || n > 27 {
		return "write L, or the days themselves"
	}
	return fmt.Sprintf(
		"give the job three schedules, with day %d in months 1,3,5,7,8,10,12, day %d in 4,6,9,11 and day %d in 2",
		31-n, 30-n, 28-n)
}

func (f *cronField) readSpecialWeekday(item string) (string, bool, *CronError) {
	if item == "L" {
		return "", false, f.wrong(item, "write 6L for the last Saturday of the month, or 6 for every one",
			problem.CronLastWithoutDay)
	}

	if day, week, ok := strings.Cut(item, "#"); ok {
		v, err := f.value(item, day)
		if err != nil {
			return "", false, err
		}
		n, isNumber := number(week)
		if !isNumber || n < 1 || n > 5 {
			return "", false, f.wrong(item, "", problem.CronWeek, shorten(week))
		}
		v %= 7
		f.nth[n-1].add(v)
		return fmt.Sprintf("%d#%d", v, n), true, nil
	}

	// No name of a weekday ends in L.
	if day, ok := strings.CutSuffix(item, "L"); ok {
		v, err := f.value(item, day)
		if err != nil {
			return "", false, err
		}
		v %= 7
		f.lastOf.add(v)
		return strconv.Itoa(v) + "L", true, nil
	}

	return "", false, nil
}
