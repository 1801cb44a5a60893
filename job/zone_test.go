package job

import (
	"archive/zip"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

func TestLoadZone(t *testing.T) {
	t.Parallel()
	for typed, want := range map[string]string{
		"": "UTC", "UTC": "UTC", "Europe/Berlin": "Europe/Berlin",
		"America/Argentina/Buenos_Aires": "America/Argentina/Buenos_Aires", "Etc/GMT-8": "Etc/GMT-8",
		"PRC": "PRC", "EST": "EST",
		// In any case, and with spaces.
		"utc": "UTC", "europe/berlin": "Europe/Berlin", "AMERICA/NEW_YORK": "America/New_York",
		"america/new york": "America/New_York", "etc/gmt-8": "Etc/GMT-8",
		"america/port-au-prince": "America/Port-au-Prince", "africa/dar_es_salaam": "Africa/Dar_es_Salaam",
		"prc": "PRC",
		// What people and Windows call them.
		"Beijing": "Asia/Shanghai", "asia/beijing": "Asia/Shanghai", "San Francisco": "America/Los_Angeles",
		"mumbai":              "Asia/Kolkata",
		"China Standard Time": "Asia/Shanghai", "W. Europe Standard Time": "Europe/Berlin",
		"w. europe standard time": "Europe/Berlin",
		"Eastern Standard Time":   "America/New_York", "FLE Standard Time": "Europe/Kyiv",
		"India Standard Time": "Asia/Kolkata", "UTC-11": "Etc/GMT+11",
	} {
		for range 2 {
			if loc, err := LoadZone(typed); err != nil || loc.String() != want {
				t.Errorf("%q: got %v, %v; want %s", typed, loc, err, want)
			}
		}

		if got := canonicalZone(typed); typed != "" && got != want {
			t.Errorf("%q is stored as %q, want %s", typed, got, want)
		}
	}
}

func TestLoadZoneRefuses(t *testing.T) {
	t.Parallel()
	for name, want := range map[string]string{
		"Local":                   "differs from machine to machine",
		"LOCAL":                   "differs from machine to machine",
		"localtime":               "differs from machine to machine",
		"Shanghai":                `time zone "Shanghai" is unknown; did you mean Asia/Shanghai?`,
		"Europe/Shangh":           "unknown; give an IANA name",
		"Asia/New_York":           "did you mean America/New_York?",
		"Europe/Berln":            "did you mean Europe/Berlin?",
		"Europ/Berlin":            "did you mean Europe/Berlin?",
		"new york":                "did you mean America/New_York?",
		"UTC+8":                   "did you mean Etc/GMT-8?",
		"GMT-03:00":               "did you mean Etc/GMT+3?",
		"UTC+25":                  "unknown",
		"CST":                     "can mean several zones; write America/Chicago or Asia/Shanghai or America/Havana",
		"ist":                     "write Asia/Kolkata or Europe/Dublin or Asia/Jerusalem",
		"right/UTC":               "unknown",
		"posix/UTC":               "unknown",
		"../../etc/x":             "unknown",
		"/etc/localtime":          "unknown",
		"\x00":                    "unknown",
		" ":                       "unknown",
		"/":                       "unknown",
		strings.Repeat("x", 1000): "unknown",
	} {
		if loc, err := LoadZone(name); err == nil || !strings.Contains(err.Error(), want) || len(err.Error()) > 300 {
			t.Errorf("%q: got %v, %v; want %q", name, loc, err, want)
		}

		if got := canonicalZone(name); got != name {
			t.Errorf("%q is stored as %q", name, got)
		}
	}
}

// TestZoneTables: every name of ours leads to a zone that exists, under its own name.
func TestZoneTables(t *testing.T) {
	t.Parallel()
	for typed, name := range zoneNames() {
		if loc, err := time.LoadLocation(name); err != nil || loc.String() != name {
			t.Errorf("%q leads to %q: %v", typed, name, err)
		}
		if ambiguousZones[typed] != nil {
			t.Errorf("%q leads to %s, and is ambiguous", typed, name)
		}
	}

	for typed, choices := range ambiguousZones {
		for _, name := range choices {
			if zoneName(name) != name {
				t.Errorf("%q leads to %q, which is no zone", typed, name)
			}
		}
	}

	// The list is that of the data which is built into the binary.
	root, err := exec.Command("go", "env", "GOROOT").Output()
	if err != nil {
		t.Fatal(err)
	}

	archive, err := zip.OpenReader(filepath.Join(strings.TrimSpace(string(root)), "lib", "time", "zoneinfo.zip"))
	if err != nil {
		t.Logf("not compared with Go's own list: %v", err)
		return
	}
	defer archive.Close()
	for _, f := range archive.File {
		if !strings.HasSuffix(f.Name, "/") && zoneName(f.Name) != f.Name {
			t.Errorf("%s is missing", f.Name)
		}
	}
}
