package docs_test

import (
	"fmt"
	"strings"
	"testing"

	"go-crontab/docs"
)

func TestJobFields(t *testing.T) {
	t.Parallel()
	fields := docs.JobFields()
	for path, want := range map[string]docs.Field{
		"name":           {Required: true},
		"app":            {Preset: []byte(`"default"`)},
		"retry.attempts": {Default: "1: no retry", Limits: "1–100"},
		"command":        {},
	} {
		f := fields[path]
		if f.Meaning == "" || f.Required != want.Required || string(f.Preset) != string(want.Preset) ||
			want.Default != "" && f.Default != want.Default || want.Limits != "" && f.Limits != want.Limits {
			t.Errorf("%s: got %+v, want %+v", path, f, want)
		}
	}
	if got := fmt.Sprintf("%s", fields["retry.attempts"].Values); got != "[3]" {
		t.Errorf("the examples of retry.attempts are %s, want 3", got)
	}
	if got := fields["command"].Values; len(got) != 1 || !strings.Contains(string(got[0]), " | ") {
		t.Errorf("the examples of command are %s, want one with a pipe", got)
	}
	for path, f := range fields {
		if strings.Contains(f.Meaning+f.Limits+f.Default, "](") {
			t.Errorf("%s: a link is left in %+v", path, f)
		}
	}
}
