package job

import (
	"testing"
	"time"

	"pgregory.net/rapid"
)

func TestChineseWords(t *testing.T) {
	t.Parallel()
	for expr, want := range map[string]string{
		"0 3 * * *":                "每天 03:00（UTC）",
		"0 3 * * 1-5":              "每个工作日 03:00（UTC）",
		"*/15 9-17 * * MON-FRI":    "每个工作日 09:00 至 17:45 每 15 分钟（UTC）",
		"*/5 * * * *":              "每 5 分钟（UTC）",
		"* * * * *":                "每分钟（UTC）",
		"*/7 * * * *":              "每小时的第 0 至 56（每隔 7）分（UTC）",
		"5/15 * * * SAT,SUN":       "每周六、周日每小时的第 5、20、35、50 分（UTC）",
		"@hourly":                  "每小时整点（UTC）",
		"0 */6 * * *":              "每天 00:00、06:00、12:00、18:00（UTC）",
		"0 */2 * * *":              "00:00 至 22:00 每 2 小时（UTC）",
		"@yearly":                  "每年1月1日 00:00（UTC）",
		"0 0 13 * FRI":             "每月13日以及每周五 00:00（UTC）",
		"0 9 L * *":                "每月最后一天 09:00（UTC）",
		"0 9 LW,15W,1 3-5 *":       "3月至5月的每月1日、最接近15日的工作日、最后一个工作日 09:00（UTC）",
		"0 9 * * 5L,5#2,MON":       "每周一以及每月第 2 个周五、最后一个周五 09:00（UTC）",
		"0 0 */2 * *":              "每月1日至31日每 2 天 00:00（UTC）",
		"*/10 * * * * *":           "每 10 秒（UTC）",
		"1,7,9 3,5-7,17 * * *":     "每天 3、5 至 7、17 点的第 1、7、9 分（UTC）",
		"30 6 1 1 * 2027-2030":     "2027年至2030年1月1日 06:30（UTC）",
		"* * 5,10 * * * *":         "每天 5、10 点的每分钟的每秒（UTC）",
		"0 9 * 1,3,7 TUE-SUN":      "1月、3月、7月的每周二至周日 09:00（UTC）",
		"1-59/2 0-58/29 3 * * * *": "每天 3 点的第 0、29、58 分的第 1 至 59（每隔 2）秒（UTC）",
	} {
		s := Spec{Schedule: expr}
		if got := s.Words(Chinese); got != want {
			t.Errorf("%s: got\n%s\nwant\n%s", expr, got, want)
		}
	}

	start, end := time.Date(2027, 1, 1, 4, 30, 0, 0, time.UTC), time.Date(2028, 1, 1, 0, 0, 0, 0, time.UTC)
	for want, s := range map[string]Spec{
		"每个工作日 09:00，以及每周六 12:00（Asia/Shanghai）": {
			Schedules: []string{"0 9 * * MON-FRI", "0 12 * * SAT"}, Timezone: "Asia/Shanghai",
		},
		"每 1 小时 30 分钟一次；首次 2027-01-01 04:30:00 UTC；到 2028-01-01 00:00:00 UTC 为止；共 24 次": {
			Every: Duration(90 * time.Minute), Start: &start, End: &end, MaxFires: 24,
		},
		"一次，2027-01-01 12:30:00 +08:00 Asia/Shanghai": {At: &start, Timezone: "Asia/Shanghai"},
		"每天 03:00（UTC）；共 1 次；仅在日历“a”、“b c”都开放时；每次推迟 5 分钟以内该任务固定的一段": {
			Schedule: "0 3 * * *", MaxFires: 1, Calendars: []string{"a", "b c"}, Jitter: Duration(5 * time.Minute),
		},
	} {
		if got := s.Words(Chinese); got != want {
			t.Errorf("got\n%s\nwant\n%s", got, want)
		}
	}
}

// TestChineseSaysAll: what differs in English differs in Chinese, and the other way round.
func TestChineseSaysAll(t *testing.T) {
	t.Parallel()
	there, back := map[string]string{}, map[string]string{}
	from := time.Date(2010, 1, 1, 0, 0, 0, 0, time.UTC)
	rapid.Check(t, func(t *rapid.T) {
		at := from.Add(time.Duration(rapid.Int64Range(0, 27*365*24).Draw(t, "hours")) * time.Hour)
		c, err := ParseCron(expressionNear(at, rapid.Bool().Draw(t, "with seconds")).Draw(t, "expr"), nil)
		if err != nil {
			t.Skip("not taken")
		}

		en, zh := english{}.cron(c.inWords()), chinese{}.cron(c.inWords())
		if was, known := there[en]; known && was != zh {
			t.Fatalf("%q is\n%q and\n%q", en, was, zh)
		}

		if was, known := back[zh]; known && was != en {
			t.Fatalf("%q is\n%q and\n%q", zh, was, en)
		}

		there[en], back[zh] = zh, en
	})
}

func TestLanguageOf(t *testing.T) {
	t.Parallel()
	for accept, want := range map[string]Language{
		"": English, "zh-CN,zh;q=0.9,en;q=0.8": Chinese, "en-GB,en;q=0.9,zh;q=0.8": English,
		"fr,ZH-hans;q=0.5": Chinese, "zh;q=0, en": English, "*": English, ";;,": English, "zho": English,
	} {
		if got := LanguageOf(accept); got != want {
			t.Errorf("%q: got %s, want %s", accept, got, want)
		}
	}
}
