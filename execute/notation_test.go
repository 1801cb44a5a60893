package execute

import (
	"encoding/base64"
	"encoding/json"
	"encoding/xml"
	"fmt"
	"html"
	"net/url"
	"os/exec"
	"strconv"
	"strings"
	"testing"
	"unicode/utf8"

	"pgregory.net/rapid"
)

// awkward is a secret with every printable special character, a line break, a tab, and letters of other scripts. A
// Z stands between any two of them, and nowhere in what the tests write around the secret.
var awkward = func() string {
	var b strings.Builder
	b.WriteString("Z")
	for _, r := range "'\"\\$`!#%&()*+,-./:;<=>?@[]^_{|}~ \n\té\x1b\x7fя😀''\"\"\\\\'\n\t''" {
		b.WriteRune(r)
		if r != '\'' {
			b.WriteString("Z")
		}
	}
	return b.String()
}()

// hidden masks a text at once and byte by byte, and returns the result.
func hidden(t *testing.T, m *masker, text string) string {
	t.Helper()
	at := &masking{m: m}
	var got []byte
	for i := range len(text) {
		got = at.next(got, []byte{text[i]})
	}

	once := m.text(text)
	if got = at.end(got); string(got) != once {
		t.Errorf("byte by byte got %q, at once %q", got, once)
	}
	return once
}

// TestMaskWhatProgramsWrite: programs of every Debian, shells and coreutils, write the secret.
func TestMaskWhatProgramsWrite(t *testing.T) {
	t.Parallel()
	for kind, value := range awkwards {
		for name, command := range programs {
			for _, locale := range []string{"C", "C.UTF-8"} {
				t.Run(name+" in "+locale+", "+kind, func(t *testing.T) {
					t.Parallel()
					testProgram(t, command, locale, value)
				})
			}
		}
	}
}

// awkwards are the kinds of values for which shells choose another way of quoting.
var awkwards = map[string]string{
	"everything":      awkward,
	"printable":       only(func(r rune) bool { return r >= ' ' && r != 0x7f }),
	"printable ASCII": only(func(r rune) bool { return r >= ' ' && r < 0x7f }),
	"no double quote": only(func(r rune) bool { return r >= ' ' && r < 0x7f && r != '"' }),
	"no single quote": only(func(r rune) bool { return r >= ' ' && r < 0x7f && r != '\'' }),
	"one quote":       `S3cr3t$Val"ueZ'x/&`,
	"quotes outside":  `''"\Zother'Z"\'''`,
	"controls beside": "\n'\tZ'\n\n''Z\té\n",
}

func only(keep func(rune) bool) string {
	return strings.Map(func(r rune) rune {
		if keep(r) {
			return r
		}
		return -1
	}, awkward)
}

var programs = map[string][]string{
	"bash set -x":            {"bash", "-c", `set -x; : "$A" "pre $A post"`},
	"bash set -x assignment": {"bash", "-c", `set -x; B=$A`},
	"bash set -x comparison": {"bash", "-c", `set -x; [[ x == "$A" ]]`},
	"bash export -p":         {"bash", "-c", `export -p`},
	"bash declare -p":        {"bash", "-c", `declare -p A`},
	"bash declare array":     {"bash", "-c", `B=(1 "$A"); declare -p B`},
	"bash set":               {"bash", "-c", `set`},
	"bash printf %q":         {"bash", "-c", `printf '%q %q\n' "$A" "pre $A"`},
	"bash @Q":                {"bash", "-c", `echo "${A@Q}"`},
	"bash @A":                {"bash", "-c", `echo "${A@A}"`},
	"bash error":             {"bash", "-c", `"./$A"`},
	"dash export -p":         {"sh", "-c", `export -p`},
	"dash set":               {"sh", "-c", `set`},
	"dash set -x":            {"sh", "-c", `set -x; : "$A"; B=$A`},
	"env":                    {"env"},
	"ls error":               {"bash", "-c", `ls "$A"`},
	"sort error":             {"bash", "-c", `sort "$A"`},
	"date error":             {"bash", "-c", `date --date "$A"`},
	"coreutils printf %q":    {"bash", "-c", `env printf '%q\n' "$A"`},
}

func testProgram(t *testing.T, command []string, locale, value string) {
	c := exec.Command(command[0], command[1:]...)
	c.Env = []string{"PATH=/usr/bin:/bin", "LC_ALL=" + locale, "A=" + value}
	text, err := c.CombinedOutput()
	if _, exited := err.(*exec.ExitError); err != nil && !exited {
		t.Fatal(err)
	}
	if !strings.Contains(string(text), "Z") {
		t.Fatalf("the program does not write the secret, but %q", text)
	}

	got := hidden(t, maskOf(value), string(text))
	if strings.Contains(got, "Z") || !strings.Contains(got, stars) {
		t.Errorf("left %q\nof %q", got, text)
	}
}

// TestMaskBase64InLines: base64 breaks lines anywhere in a longer text.
func TestMaskBase64InLines(t *testing.T) {
	t.Parallel()
	value := strings.Repeat(awkward, 4)
	m := maskOf(value)
	for before := range 60 {
		text := strings.Repeat("u", before) + value + "end"
		for _, columns := range []int{0, 57, 64, 76} {
			for _, ending := range []string{"\n", "\r\n"} {
				encoded := inLines(base64.StdEncoding.EncodeToString([]byte(text)), columns, ending)
				got := hidden(t, m, encoded)
				if most := len(inLines(strings.Repeat("u", before*4/3+16), columns, ending)); len(got) > most {
					t.Fatalf("%d bytes before, %d columns: got %q", before, columns, got)
				}
			}
		}
	}

	for _, option := range []string{"-w0", "-w64", "-w76", "-w100"} {
		c := exec.Command("base64", option)
		c.Stdin = strings.NewReader(value)
		text, err := c.Output()
		if err != nil {
			t.Fatal(err)
		}
		if got := strings.TrimSpace(hidden(t, m, string(text))); len(got) > len(stars)+4 {
			t.Errorf("base64 %s: got %q", option, got)
		}
	}

	apart := base64.StdEncoding.EncodeToString([]byte(value))
	apart = apart[:80] + "\n\n" + apart[80:]
	if got := hidden(t, m, apart); !strings.HasPrefix(got, apart[:80]) {
		t.Errorf("an empty line does not end an encoding: got %q", got)
	}
}

func inLines(s string, columns int, ending string) string {
	if columns == 0 {
		return s
	}
	var b strings.Builder
	for ; len(s) > columns; s = s[columns:] {
		b.WriteString(s[:columns] + ending)
	}
	return b.String() + s + ending
}

// TestMaskNotations writes the secret by the rules of other languages.
func TestMaskNotations(t *testing.T) {
	t.Parallel()
	for kind, value := range awkwards {
		t.Run(kind, func(t *testing.T) { testNotations(t, value) })
	}
}

func testNotations(t *testing.T, value string) {
	asJSON, _ := json.Marshal(value)
	var asXML strings.Builder
	_ = xml.EscapeText(&asXML, []byte(strings.ReplaceAll(value, "\x1b", "")))
	reserved := func(keep string) string { return eachByte(value, keep, "%%%02X") }

	forms := map[string]string{
		"Go's %q":             strconv.Quote(value),
		"Go's %+q":            strconv.QuoteToASCII(value),
		"Go's JSON":           string(asJSON),
		"Go's XML":            asXML.String(),
		"Go's HTML":           html.EscapeString(value),
		"Go's query":          url.QueryEscape(value),
		"Go's path":           (&url.URL{Path: value}).EscapedPath(),
		"Go's user":           url.UserPassword("me", value).String(),
		"JavaScript's JSON":   quoted(value, `"\`, `\u%04x`, false),
		"PHP's JSON":          quoted(value, `"\/`, `\u%04x`, true),
		"PHP's JSON_HEX":      strings.NewReplacer(`\"`, `\u0022`, `'`, `\u0027`, `<`, `\u003C`, `>`, `\u003E`, `&`, `\u0026`).Replace(quoted(value, `"\/`, `\u%04x`, true)),
		"Python's JSON":       quoted(value, `"\`, `\u%04x`, true),
		".NET's JSON":         strings.NewReplacer(`\"`, `\u0022`, `'`, `\u0027`, `+`, `\u002B`, "`", `\u0060`).Replace(quoted(value, `"\`, `\u%04X`, true)),
		"Python's repr":       quoted(value, `'\`, `\x%02x`, false),
		"Python's ascii":      strings.ReplaceAll(quoted(strings.ReplaceAll(value, "😀", "é"), `'\`, `\x%02x`, false), "é", `\xe9`),
		"Python's bytes":      eachByte(quoted(value, `'\`, `\x%02x`, false), ascii, `\x%02x`),
		"PHP's var_export":    strings.NewReplacer(`\`, `\\`, `'`, `\'`).Replace(value),
		"Python's html":       strings.NewReplacer("&", "&amp;", "<", "&lt;", ">", "&gt;", `"`, "&quot;", "'", "&#x27;").Replace(value),
		"PHP's html":          strings.NewReplacer("&", "&amp;", "<", "&lt;", ">", "&gt;", `"`, "&quot;", "'", "&#039;").Replace(value),
		"XML":                 strings.NewReplacer("&", "&amp;", "<", "&lt;", ">", "&gt;", `"`, "&quot;", "'", "&apos;", "é", "&#xE9;", "я", "&#1103;", "\n", "&#10;").Replace(value),
		"XML text":            strings.NewReplacer("&", "&amp;", "<", "&lt;", ">", "&gt;").Replace(value),
		"Python's quote":      reserved("_.-~/"),
		"Python's quote_plus": strings.ReplaceAll(reserved("_.-~ "), " ", "+"),
		"JavaScript's URI":    reserved("-_.!~*'()"),
		"PHP's urlencode":     strings.ReplaceAll(reserved("-_. "), " ", "+"),
		"lower hex":           eachByte(value, "", "%%%02x"),
		"SQL":                 strings.ReplaceAll(value, "'", "''"),
		"CSV":                 strings.ReplaceAll(value, `"`, `""`),
	}
	for name, form := range forms {
		secret := value
		switch name {
		case "Python's ascii":
			secret = strings.ReplaceAll(value, "😀", "é")
		case "Go's XML": // has no escape characters
			secret = strings.ReplaceAll(value, "\x1b", "")
		}
		if got := hidden(t, maskOf(secret), "of "+form+" and ("+form+")"); strings.ContainsAny(got, "Zé") || len(got) > 64 {
			t.Errorf("%s: left %q\nof %q", name, got, form)
		}
	}
}

const ascii = "\t\n !\"#$%&'()*+,-./0123456789:;<=>?@[\\]^_`{|}~abcdefghijklmnopqrstuvwxyz"

// eachByte writes all bytes in a format but letters, digits and some others.
func eachByte(s, keep, format string) string {
	var b strings.Builder
	for i := range len(s) {
		switch c := s[i]; {
		case c >= '0' && c <= '9', c >= 'A' && c <= 'Z', c >= 'a' && c <= 'z', strings.IndexByte(keep, c) >= 0:
			b.WriteByte(c)
		default:
			fmt.Fprintf(&b, format, c)
		}
	}
	return b.String()
}

// quoted writes some characters after a backslash, and control or non-ASCII characters in a format.
func quoted(s, escaped, format string, onlyASCII bool) string {
	var b strings.Builder
	for _, r := range s {
		switch {
		case r == '\n':
			b.WriteString(`\n`)
		case r == '\t':
			b.WriteString(`\t`)
		case strings.ContainsRune(escaped, r):
			b.WriteString(`\` + string(r))
		case r >= 0x10000 && onlyASCII:
			r -= 0x10000
			fmt.Fprintf(&b, format+format, 0xd800+r>>10, 0xdc00+r&0x3ff)
		case r < ' ' || r == 0x7f || r >= utf8.RuneSelf && onlyASCII:
			fmt.Fprintf(&b, format, r)
		default:
			b.WriteRune(r)
		}
	}
	return b.String()
}

// TestMaskKeepsEverythingElse: texts full of escapes but without a secret pass unchanged, in random pieces.
func TestMaskKeepsEverythingElse(t *testing.T) {
	t.Parallel()
	piece := rapid.OneOf(rapid.SampledFrom([]string{
		`\`, `'`, `"`, `$`, `%`, `&`, `;`, "\r", "\n", "+", `\x4`, `\u00`, `\ud83d\u`, `'\''`, `'"'"'`, `'$'\n''`, `&#`, `%4`, `S3cr3t`,
		base64.StdEncoding.EncodeToString([]byte("S3cr3t of"))[:8],
	}), rapid.StringN(0, 4, 8))
	rapid.Check(t, func(t *rapid.T) {
		text := strings.Join(rapid.SliceOfN(piece, 0, 30).Draw(t, "pieces"), "")
		m := &masking{m: maskOf("S3cr3t of 'mine'", "+another one & more")}
		var got []byte
		for rest := text + "."; rest != ""; {
			n := rapid.IntRange(1, min(7, len(rest))).Draw(t, "size")
			got = m.next(got, []byte(rest[:n]))
			rest = rest[n:]
		}
		if got = m.end(got); string(got) != text+"." {
			t.Fatalf("%q became %q", text+".", got)
		}
	})
}

// TestMaskHoldsLittle: escapes never end, and the held bytes must not grow.
func TestMaskHoldsLittle(t *testing.T) {
	t.Parallel()
	for _, text := range []string{`\`, `'`, `"`, `'$'\`, `'"'`, `''`, "&#", "%", "\n", "\r\n", `\u`, `\ud83d`, "S\n", "U\r\n"} {
		m := &masking{m: maskOf("S3cr3t of 'mine'", `\\\\\\\\`)}
		out := m.next(nil, []byte(strings.Repeat(text, 100_000/len(text))))
		if most := 2 * 16 * maxEscape; cap(m.held) > 4*most || len(m.held)-m.from > most {
			t.Errorf("%q again and again: holds %d bytes of %d", text, len(m.held)-m.from, len(out))
		}
		for i := range m.readers {
			if r := &m.readers[i]; cap(r.starts) > 1024 || cap(r.pending) > 64 {
				t.Errorf("%q again and again: a reader keeps %d and %d", text, cap(r.starts), cap(r.pending))
			}
		}
	}
}
