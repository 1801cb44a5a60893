package job

import (
	"archive/zip"
	"bytes"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

// TestOffsets: data of two sources says the same of a zone, and a rule that is changed is noticed.
func TestOffsets(t *testing.T) {
	root, err := exec.Command("go", "env", "GOROOT").Output()
	if err != nil {
		t.Skip(err)
	}

	archive, err := zip.OpenReader(filepath.Join(strings.TrimSpace(string(root)), "lib", "time", "zoneinfo.zip"))
	if err != nil {
		t.Skip(err)
	}
	defer archive.Close()
	data := func(name string) []byte {
		f, err := archive.Open(name)
		if err != nil {
			t.Fatal(err)
		}
		b, err := io.ReadAll(f)
		if err != nil {
			t.Fatal(err)
		}
		return b
	}

	zone := func(b []byte) *time.Location {
		loc, err := time.LoadLocationFromTZData("x", b)
		if err != nil {
			t.Fatal(err)
		}
		return loc
	}

	berlin := data("Europe/Berlin")
	if b, err := os.ReadFile("/usr/share/zoneinfo/Europe/Berlin"); err == nil { // written in another way
		if !bytes.Equal(offsets(zone(b)), offsets(zone(berlin))) {
			t.Error("of Europe/Berlin the machine says something else than Go")
		}
	}

	changed := bytes.Replace(berlin, []byte("M10.5.0"), []byte("M10.4.0"), 1)
	if bytes.Equal(changed, berlin) || bytes.Equal(offsets(zone(changed)), offsets(zone(berlin))) {
		t.Error("a summer that ends a week before is not noticed")
	}

	if got := len(offsets(zone(berlin))) / 12; got != 37 {
		t.Errorf("got %d offsets of Europe/Berlin in eighteen years, want 37", got)
	}

	if got := len(offsets(time.UTC)) / 12; got != 1 {
		t.Errorf("got %d offsets of UTC, want one", got)
	}
}

// TestZoneData: it is told soon.
func TestZoneData(t *testing.T) {
	begin := time.Now()
	if got := ZoneData(); len(got) != 16 || got != ZoneData() {
		t.Errorf("got %q, and then %q", got, ZoneData())
	}
	if took := time.Since(begin); took > 5*time.Second {
		t.Errorf("it took %s", took)
	}
}
