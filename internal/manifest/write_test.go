package manifest_test

import (
	"bytes"
	"encoding/json"
	"strings"
	"testing"
	"time"

	"go-crontab/internal/manifest"
	"go-crontab/test/specgen"

	"pgregory.net/rapid"
)

func TestWrite(t *testing.T) {
	t.Parallel()

	o := &manifest.Objects{
		Groups: []json.RawMessage{[]byte(`{"name":"g","slots":2}`)},
		Jobs: []json.RawMessage{
			[]byte(`{"app":"default","name":"yes","labels":{"a":"1","b c":""},"schedules":["@daily","0 3 * * *"],"command":"set -e\na && b <c\n"}`),
			[]byte(`{"app":"ops","name":"b","at":"2027-01-31T09:00:00Z","command":"echo \"#x\"","limits":{"cpu":0.5},"http":{"tls":{}},"stdin":" x\n"}`),
		},
	}

	const want = `groups:
  - name: g
    slots: 2
jobs:
  - app: default
    name: "yes"
    labels:
      a: "1"
      b c: ""
    schedules:
      - '@daily'
      - 0 3 * * *
    command: |
      set -e
      a && b <c

  - app: ops
    name: b
    at: "2027-01-31T09:00:00Z"
    command: echo "#x"
    limits:
      cpu: 0.5
    http:
      tls: {}
    stdin: " x\n"
`

	var got, js bytes.Buffer
	if err := manifest.WriteYAML(&got, o); err != nil || got.String() != want {
		t.Errorf("got\n%s, %v, want\n%s", got.String(), err, want)
	}
	if err := manifest.WriteJSON(&js, o); err != nil ||
		!strings.Contains(js.String(), `"command": "set -e\na && b <c\n"`) || !json.Valid(js.Bytes()) {
		t.Errorf("got %s, %v", js.String(), err)
	}

	got.Reset()
	if err := manifest.WriteYAML(&got, &manifest.Objects{}); err != nil || got.String() != "jobs: []\n" {
		t.Errorf("nothing: got %q, %v", got.String(), err)
	}
}

// TestWhatIsWrittenIsRead writes random definitions as YAML and JSON. Reading them returns the same
// values, and writing these again returns the same bytes.
func TestWhatIsWrittenIsRead(t *testing.T) {
	t.Parallel()

	gen := specgen.Spec("app", []string{"g"}, []string{"c"})
	rapid.Check(t, func(t *rapid.T) {
		o := &manifest.Objects{}
		for range rapid.IntRange(1, 3).Draw(t, "jobs") {
			s := gen.Draw(t, "spec")
			s.Defaults(time.Unix(0, 0))
			text, err := s.Minimal()
			if err != nil {
				t.Fatal(err)
			}
			o.Jobs = append(o.Jobs, text)
		}
		checkWritten(t, o)
	})
}

// TestTextsComeBack does the same with arbitrary strings.
func TestTextsComeBack(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		text := rapid.OneOf(specgen.Text(), rapid.Custom(func(t *rapid.T) string {
			return strings.Join(rapid.SliceOfN(rapid.OneOf(specgen.Text(),
				rapid.SampledFrom([]string{"\n", " ", "\t", "- ", "  - ", ":", "#", "\n\n"})), 1, 5).Draw(t,
				"parts"), "")
		})).Draw(t, "text")
		value, err := json.Marshal(map[string]string{"name": text, text: "x"})
		if err != nil {
			t.Fatal(err)
		}
		checkWritten(t, &manifest.Objects{Jobs: []json.RawMessage{value, value}})
	})
}

func checkWritten(t *rapid.T, o *manifest.Objects) {
	want, err := json.Marshal(map[string]any{"jobs": o.Jobs})
	if err != nil {
		t.Fatal(err)
	}

	for file, write := range map[string]func(*bytes.Buffer) error{
		"a.yaml": func(b *bytes.Buffer) error { return manifest.WriteYAML(b, o) },
		"a.json": func(b *bytes.Buffer) error { return manifest.WriteJSON(b, o) },
	} {
		var first, second bytes.Buffer
		if err := write(&first); err != nil {
			t.Fatalf("%s: %v of %s", file, err, want)
		}

		s := &manifest.Set{}
		if err := s.Read(file, first.Bytes()); err != nil {
			t.Fatalf("%s: %v in\n%s", file, err, first.String())
		}

		got, err := s.Body(nil)
		if err != nil || canonical(t, got) != canonical(t, want) {
			t.Fatalf("%s: got\n%s, %v\nof\n%s\nfrom\n%s", file, got, err, want, first.String())
		}

		if err := write(&second); err != nil || first.String() != second.String() {
			t.Fatalf("%s: the second time it is\n%s", file, second.String())
		}
	}
}

func canonical(t *rapid.T, text []byte) string {
	var v any
	if err := json.Unmarshal(text, &v); err != nil {
		t.Fatal(err)
	}
	out, err := json.Marshal(v)
	if err != nil {
		t.Fatal(err)
	}
	return string(out)
}
