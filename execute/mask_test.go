package execute

import (
	"encoding/base64"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"io"
	"net/url"
	"strings"
	"testing"
	"testing/iotest"

	"go-crontab/job"

	"pgregory.net/rapid"
)

func maskOf(values ...string) *masker {
	all := map[job.Secret]string{}
	for i, v := range values {
		all[job.Secret(fmt.Sprint(i))] = v
	}
	return newMasker(all)
}

func TestMask(t *testing.T) {
	t.Parallel()
	m := maskOf("hunter2 & Söhne/+", "abcd", "bcde", "aaaa", "-----BEGIN\nline one 1\nline two 2\n", "abcdefgh tail")

	for text, want := range map[string]string{
		"nothing here":                       "nothing here",
		"xhunter2 & Söhne/+y":                "x***y",
		"hunter2 & Söhne/":                   "***", // cut off
		"hunter2":                            "hunter2",
		"abcdx abcde":                        "***x ***",
		"abcdefgh tail abcdefgh tai!":        "*** ***fgh tai!",
		"aaaaaaaaaaaaaaaaaaaaab":             "***b",
		"abcdabcd aaaa":                      "****** ***",
		"abcabcabcd":                         "abcabc***",
		"> line one 1\n> line two 2":         "> ***\n> ***",
		url.QueryEscape("hunter2 & Söhne/+"): "***",
		"q=" + url.PathEscape("hunter2 & Söhne/+") + "&r": "q=***&r",
		hex.EncodeToString([]byte("hunter2 & Söhne/+")):   "***",
	} {
		if got := m.text(text); got != want {
			t.Errorf("%q: got %q, want %q", text, got, want)
		}
	}

	quoted, _ := json.Marshal("say hunter2 & Söhne/+ twice")
	if got := m.text(string(quoted)); got != `"say *** twice"` {
		t.Errorf("got %s", got)
	}

	for before := range 5 {
		for _, e := range []*base64.Encoding{base64.StdEncoding, base64.RawURLEncoding} {
			text := e.EncodeToString([]byte(strings.Repeat("u", before) + "hunter2 & Söhne/+" + "xyz"))
			if got := m.text(text); !strings.Contains(got, stars) || len(got) > len(stars)+13 {
				t.Errorf("base64 behind %d bytes: got %q of %q", before, got, text)
			}
		}
	}

	if maskOf() != nil || maskOf("abc") != nil {
		t.Error("there is something to find in nothing")
	}
}

// TestMaskAgainstPlainSearch compares streams in random pieces with a search of the whole text for each value.
func TestMaskAgainstPlainSearch(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		word := rapid.StringMatching(`[ab]{4,7}`)
		values := rapid.SliceOfN(word, 1, 4).Draw(t, "values")
		text := strings.Join(rapid.SliceOfN(rapid.OneOf(rapid.StringMatching(`[abc]{0,6}`), rapid.SampledFrom(values)), 0, 12).Draw(t, "parts"), "")

		var want strings.Builder
		hidden := 0 // end of the last secret in text
		for i := range text {
			to := 0
			for _, v := range values {
				if strings.HasPrefix(text[i:], v) {
					to = max(to, i+len(v))
				}
			}
			switch {
			case to > 0 && i >= hidden:
				want.WriteString(stars)
			case i >= hidden:
				want.WriteByte(text[i])
			}
			hidden = max(hidden, to)
		}

		s := &masking{m: maskOf(values...)}
		var got []byte
		for rest := text; rest != ""; {
			n := rapid.IntRange(1, min(5, len(rest))).Draw(t, "piece")
			got = s.next(got, []byte(rest[:n]))
			rest = rest[n:]
		}
		if got = s.end(got); string(got) != want.String() {
			t.Fatalf("%q without %q: got %q, want %q", text, values, got, &want)
		}
	})
}

// TestMaskedOutput: a secret arrives byte by byte, at the boundary between the kept head and tail, and many times.
func TestMaskedOutput(t *testing.T) {
	t.Parallel()
	const secret = "correct horse battery"
	for _, keep := range []int{1, 8, 40, 64 << 10} {
		for _, text := range []string{strings.Repeat("x", 15) + secret + "y", strings.Repeat(secret, 500), strings.Repeat("ab"+secret, 500), "a" + secret[:12]} {
			for name, r := range map[string]io.Reader{"at once": strings.NewReader(text), "byte by byte": iotest.OneByteReader(strings.NewReader(text))} {
				o := newOutput(keep)
				var live strings.Builder
				o.hiding, o.sink = &masking{m: maskOf(secret)}, func(p []byte) { live.Write(p) }
				if err := o.readAll(r); err != nil {
					t.Fatal(err)
				}
				kept := o.output()
				all := string(kept.Head) + string(kept.Tail)
				want := strings.ReplaceAll(text, secret, stars)
				want = strings.ReplaceAll(want, secret[:12], stars)
				if live.String() != want || kept.Bytes != int64(len(want)) || len(all) > keep || o.came != int64(len(text)) {
					t.Errorf("%s, keeping %d of %.40q…: %d bytes, %d told, live %.60q", name, keep, text, len(all), kept.Bytes, live.String())
				}
				if keep > len(want) && all != want {
					t.Errorf("%s, keeping %d of %.40q…: kept %.60q, want %.60q", name, keep, text, all, want)
				}
				if strings.Contains(all, "horse") {
					t.Errorf("%s, keeping %d of %.40q…: kept %.60q", name, keep, text, all)
				}
			}
		}
	}
}

// TestMaskIsLinear: the text repeats almost all of a long secret of one letter.
func TestMaskIsLinear(t *testing.T) {
	t.Parallel()
	s := &masking{m: maskOf(strings.Repeat("a", job.MaxSecret))}
	text := []byte(strings.Repeat(strings.Repeat("a", job.MaxSecret-1)+"b", 64)) // 4 MiB
	got := s.next(nil, text)
	if got = s.end(got); string(got) != string(text) {
		t.Error("what is no secret was changed")
	}
}
