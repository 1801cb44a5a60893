package secret

import (
	"bytes"
	"encoding/base64"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

func ring(t testing.TB, keys ...string) *Ring {
	t.Helper()
	r, err := Parse(strings.Join(keys, "\n"))
	if err != nil {
		t.Fatal(err)
	}
	return r
}

func TestParse(t *testing.T) {
	t.Parallel()
	a, b := NewKey(), NewKey()
	r := ring(t, "# new\n"+a+" # since May\n\n", "\t"+b+"\r")
	if again := ring(t, a+","+b); !slices.Equal(r.IDs(), again.IDs()) || len(r.IDs()) != 2 ||
		r.IDs()[0] == r.IDs()[1] || !r.Has(r.IDs()[1]) || r.Has("") {
		t.Errorf("got %v and %v", r, again)
	}

	for what, shown := range map[string]string{"%v": fmt.Sprintf("%v", r), "%+v": fmt.Sprintf("%+v", r),
		"%s": r.String()} {
		if raw, _ := base64.StdEncoding.DecodeString(a); strings.Contains(shown, a) ||
			strings.Contains(shown, fmt.Sprint(raw[:4])) {
			t.Errorf("%s shows the key: %s", what, shown)
		}
	}

	for text, want := range map[string]string{
		"": "no key", "# nothing\n": "no key", a[:40]: "line 1 is not a key", a + "\nhunter2": "line 2 is not a key", a +
			" " + a: "twice", base64.StdEncoding.EncodeToString(make([]byte, 16)): "line 1 is not a key",
	} {
		if r, err := Parse(text); err == nil || !strings.Contains(err.Error(), want) ||
			strings.Contains(err.Error(), "hunter2") || strings.Contains(err.Error(), a) {
			t.Errorf("%.10q: got %v, %v, want an error with %q", text, r, err, want)
		}
	}

	file := filepath.Join(t.TempDir(), "keys")
	for mode, want := range map[os.FileMode]bool{0o600: false, 0o640: true} {
		if err := os.WriteFile(file, []byte(a+"\n"), mode); err != nil {
			t.Fatal(err)
		}
		if err := os.Chmod(file, mode); err != nil {
			t.Fatal(err)
		}
		if r, open, err := Load(file); err != nil || open != want || len(r.IDs()) != 1 {
			t.Errorf("mode %o: got %v, open %v, %v", mode, r, open, err)
		}
	}
}

func TestSeal(t *testing.T) {
	t.Parallel()
	a, b := NewKey(), NewKey()
	one, both := ring(t, a), ring(t, b, a)
	s := Row{Name: "pg", App: "shop", Version: 7}
	if err := one.seal(&s, "hunter2"); err != nil {
		t.Fatal(err)
	}

	for name, r := range map[string]*Ring{"itself": one, "one with a newer key": both} {
		if got, err := r.open(&s); err != nil || got != "hunter2" {
			t.Errorf("%s: got %q, %v", name, got, err)
		}
	}

	again := s
	if one.seal(&again, "hunter2"); bytes.Equal(again.Sealed, s.Sealed) || bytes.Contains(s.Sealed, []byte("hunter")) {
		t.Error("sealed twice it is the same, or it is not sealed")
	}

	for name, c := range map[string]struct {
		ring   *Ring
		change func(*Row)
		want   string
	}{
		"no key":          {nil, func(*Row) {}, "no key for secrets"},
		"another key":     {ring(t, b), func(*Row) {}, "this node has keys " + ring(t, b).IDs()[0]},
		"another name":    {one, func(s *Row) { s.Name = "pg2" }, "damaged"},
		"another app":     {one, func(s *Row) { s.App = "" }, "damaged"},
		"another version": {one, func(s *Row) { s.Version++ }, "damaged"},
		"a bit":           {one, func(s *Row) { s.Sealed[len(s.Sealed)/2] ^= 1 }, "damaged"},
		"cut":             {one, func(s *Row) { s.Sealed = s.Sealed[:5] }, "damaged"},
		"a false key id":  {both, func(s *Row) { s.Key = both.IDs()[0] }, "damaged"},
	} {
		row := s
		row.Sealed = bytes.Clone(s.Sealed)
		c.change(&row)
		if got, err := c.ring.open(&row); err == nil || got != "" || !strings.Contains(err.Error(), c.want) ||
			strings.Contains(err.Error(), "hunter") {
			t.Errorf("%s: got %q, %v, want an error with %q", name, got, err, c.want)
		}
	}
}
