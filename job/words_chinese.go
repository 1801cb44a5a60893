package job

import (
	"cmp"
	"fmt"
	"strconv"
	"strings"
	"time"
)

// chinese speaks simplified Chinese. 工作日 are the days from Monday to Friday.
type chinese struct{}

func (c chinese) schedule(w *scheduleWords) string {
	var parts []string
	switch {
	case w.every != 0:
		parts = append(parts, "每 "+c.duration(w.every)+"一次")
		if !w.start.IsZero() {
			parts = append(parts, "首次 "+c.instant(w.start))
		}
	case w.delay != 0:
		parts = append(parts, "每次运行结束 "+c.duration(w.delay)+"后")
		if !w.start.IsZero() {
			parts = append(parts, "首次 "+c.instant(w.start))
		}
	case w.after != nil:
		parts = append(parts, c.after(w.after))
	case w.manual:
		parts = append(parts, "仅手动运行")
	case !w.at.IsZero():
		parts = append(parts, "一次，"+c.instant(w.at))
	default:
		said := make([]string, len(w.crons))
		for i, cron := range w.crons {
			said[i] = c.cron(cron)
		}
		parts = append(parts, strings.Join(said, "，以及")+"（"+w.zone.String()+"）")
		if w.weeks != nil {
			parts = append(parts, fmt.Sprintf("自 %s 所在周起，每 %d 周一次", w.weeks.From, w.weeks.Every))
		}
		if !w.start.IsZero() {
			parts = append(parts, "自 "+c.instant(w.start)+" 起")
		}
	}

	if !w.end.IsZero() {
		parts = append(parts, "到 "+c.instant(w.end)+" 为止")
	}

	if w.fires > 0 {
		parts = append(parts, fmt.Sprintf("共 %d 次", w.fires))
	}

	if len(w.calendars) > 0 {
		quoted := make([]string, len(w.calendars))
		for i, name := range w.calendars {
			quoted[i] = "“" + name + "”"
		}
		all := ""
		if len(quoted) > 1 {
			all = "都"
		}
		switch w.onClosed {
		case ClosedNext:
			parts = append(parts, "遇休息日顺延到日历"+c.list(quoted)+all+"开放的下一天")
		case ClosedPrevious:
			parts = append(parts, "遇休息日提前到日历"+c.list(quoted)+all+"开放的前一天")
		default:
			parts = append(parts, "仅在日历"+c.list(quoted)+all+"开放时")
		}
	}

	if w.jitter != 0 {
		parts = append(parts, "每次推迟 "+c.duration(w.jitter)+"以内该任务固定的一段")
	}

	return strings.Join(parts, "；")
}

// cron goes from the widest unit to the narrowest: year, month, days, times.
func (c chinese) after(a *After) string {
	did := cmp.Or(map[string]string{OnSuccess: "成功", OnFailure: "失败"}[a.On], "结束")
	if a.Gathers() {
		return fmt.Sprintf("%s 在 %s内都%s后", c.list(a.Jobs), c.duration(time.Duration(a.Within)), did)
	}
	return fmt.Sprintf("%s 每次运行%s后", strings.Join(a.Jobs, " 或 "), did)
}

func (c chinese) cron(w *cronWords) string {
	s := ""
	if w.years != nil {
		s += c.spans(w.years, "年")
	}

	day, is := w.days.date()
	dated := is && len(w.months) == 1 && w.months[0].first == w.months[0].last
	switch {
	case dated:
		s += fmt.Sprintf("%d月%d日", w.months[0].first, day)
		if w.years == nil {
			s = "每年" + s
		}
	case w.months != nil:
		s += c.spans(w.months, "月")
	}

	if !dated && (!w.days.every || w.times.kind != timesHourly && !w.times.allDay()) {
		if s != "" {
			s += "的"
		}
		s += c.days(&w.days)
	}

	return strings.TrimSpace(s + c.times(&w.times))
}

func (c chinese) times(t *timeWords) string {
	switch t.kind {
	case timesListed:
		list := make([]string, len(t.list))
		for i, at := range t.list {
			list[i] = english{}.clock(at)
		}
		return " " + c.list(list)
	case timesEvery:
		s := "每 " + c.pace(t.step)
		switch {
		case t.allDay() && t.step == 3600:
			return "每小时整点"
		case t.allDay() && t.step == 60:
			return "每分钟"
		case t.allDay() && t.step < 3600:
			return s
		}
		return " " + english{}.clock(t.first) + " 至 " + english{}.clock(t.last) + " " + s
	case timesHourly:
		return "每小时的" + c.values("分", "每分钟", t.minutes)
	}

	s := " " + c.values("点", "每小时", t.hours) + "的" + c.values("分", "每分钟", t.minutes)
	if len(t.seconds) == 1 && t.seconds[0].first == 0 && t.seconds[0].last == 0 {
		return s
	}

	return s + "的" + c.values("秒", "每秒", t.seconds)
}

// values returns, for instance, "第 5、10 至 20 分" or "9 至 17 点", or all if the list is nil.
func (c chinese) values(unit, all string, list []span) string {
	if list == nil {
		return all
	}

	s := c.spans(list, "")
	if !strings.HasSuffix(s, "）") {
		s += " "
	}

	if unit == "点" {
		return s + unit
	}

	return "第 " + s + unit
}

func (c chinese) spans(list []span, unit string) string {
	items := make([]string, len(list))
	for i, s := range list {
		items[i] = strconv.Itoa(s.first) + unit
		if s.last > s.first {
			items[i] = strconv.Itoa(s.first) + unit + "至" + strconv.Itoa(s.last) + unit
			if unit == "" {
				items[i] = fmt.Sprintf("%d 至 %d", s.first, s.last)
			}
		}
		if s.last > s.first && s.step > 1 {
			items[i] += fmt.Sprintf("（每隔 %d）", s.step)
		}
	}

	return c.list(items)
}

func (c chinese) days(d *dayWords) string {
	if d.every {
		return "每天"
	}

	var said, monthdays []string
	for _, s := range d.monthdays {
		switch {
		case s.first == s.last:
			monthdays = append(monthdays, fmt.Sprintf("%d日", s.first))
		case s.step == 1:
			monthdays = append(monthdays, fmt.Sprintf("%d日至%d日", s.first, s.last))
		default:
			monthdays = append(monthdays, fmt.Sprintf("%d日至%d日每 %d 天", s.first, s.last, s.step))
		}
	}

	for _, n := range d.nearest {
		monthdays = append(monthdays, fmt.Sprintf("最接近%d日的工作日", n))
	}

	if d.lastWorkday {
		monthdays = append(monthdays, "最后一个工作日")
	}

	if d.last {
		monthdays = append(monthdays, "最后一天")
	}

	if monthdays != nil {
		said = append(said, "每月"+c.list(monthdays))
	}

	if d.weekdays != 0 {
		said = append(said, c.weekdays(d.weekdays))
	}

	var nth []string
	for week, days := range d.nth {
		for _, day := range c.names(days) {
			nth = append(nth, fmt.Sprintf("第 %d 个%s", week+1, day))
		}
	}

	for _, day := range c.names(d.lastOf) {
		nth = append(nth, "最后一个"+day)
	}

	if nth != nil {
		said = append(said, "每月"+c.list(nth))
	}

	return strings.Join(said, "以及")
}

var chineseDays = [7]string{"周日", "周一", "周二", "周三", "周四", "周五", "周六"}

// names lists days of the week, Monday first.
func (chinese) names(w weekdays) (names []string) {
	for i := range 7 {
		if d := time.Weekday((i + 1) % 7); w.has(d) {
			names = append(names, chineseDays[d])
		}
	}
	return names
}

func (c chinese) weekdays(w weekdays) string {
	if w == usualWork {
		return "每个工作日"
	}

	var list []int
	for i := range 7 {
		if w.has(time.Weekday((i + 1) % 7)) {
			list = append(list, i+1)
		}
	}

	var items []string
	for _, s := range spans(list) {
		item := chineseDays[s.first%7]
		if s.last > s.first {
			item += "至" + chineseDays[s.last%7]
		}
		if s.last > s.first && s.step > 1 {
			item += fmt.Sprintf("（每隔 %d）", s.step)
		}
		items = append(items, item)
	}

	return "每" + c.list(items)
}

func (chinese) list(items []string) string { return strings.Join(items, "、") }

// pace returns an interval: "1 分钟", "15 分钟", "90 秒".
func (chinese) pace(seconds int) string {
	switch {
	case seconds%3600 == 0:
		return strconv.Itoa(seconds/3600) + " 小时"
	case seconds%60 == 0:
		return strconv.Itoa(seconds/60) + " 分钟"
	}
	return strconv.Itoa(seconds) + " 秒"
}

// duration returns a length of time, to the nanosecond.
func (chinese) duration(d time.Duration) string {
	var items []string
	for _, u := range []struct {
		unit string
		size time.Duration
	}{{"小时", time.Hour}, {"分钟", time.Minute}, {"秒", time.Second}, {"毫秒", time.Millisecond}, {"微秒", time.Microsecond},
		{"纳秒", 1}} {
		if n := d / u.size; n > 0 {
			items = append(items, fmt.Sprintf("%d %s", n, u.unit))
			d -= n * u.size
		}
	}

	return strings.Join(items, " ")
}

func (chinese) instant(t time.Time) string { return english{}.instant(t) }
