package job

import (
	"strings"
	"testing"
)

func TestLoadZone(t *testing.T) {
	for _, name := range []string{"", "UTC", "Europe/Berlin", "America/Argentina/Buenos_Aires", "Etc/GMT-8"} {
		want := name
		if name == "" {
			want = "UTC"
		}
		for range 2 {
			if loc, err := LoadZone(name); err != nil || loc.String() != want {
				t.Errorf("%q: got %v, %v", name, loc, err)
			}
		}
	}
}

func TestLoadZoneRefuses(t *testing.T) {
	for name, want := range map[string]string{
		"Local":                   "differs from machine to machine",
		"LOCAL":                   "differs from machine to machine",
		"localtime":               "differs from machine to machine",
		"europe/berlin":           `time zone "europe/berlin": unknown; did you mean Europe/Berlin?`,
		"Shanghai":                "did you mean Asia/Shanghai?",
		"Europe/Shanghai":         "did you mean Asia/Shanghai?",
		"asia/beijing":            "did you mean Asia/Shanghai?",
		"new york":                "did you mean America/New_York?",
		"utc":                     "did you mean UTC?",
		"UTC+8":                   "unknown; want an IANA name such as Europe/Berlin",
		"right/UTC":               "unknown",
		"../../etc/x":             "unknown",
		"/etc/localtime":          "unknown",
		"\x00":                    "unknown",
		strings.Repeat("x", 1000): "unknown",
	} {
		if loc, err := LoadZone(name); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%q: got %v, %v; want %q", name, loc, err, want)
		}
	}
}
