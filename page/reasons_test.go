package page

import (
	"os"
	"regexp"
	"slices"
	"strings"
	"testing"
)

// reasonsTable reads the console's Chinese for reasons, by code: the patterns, and whether there are words
// for any text.
func reasonsTable(t *testing.T) (patterns map[string][]*regexp.Regexp, always map[string]bool) {
	t.Helper()
	patterns, always = map[string][]*regexp.Regexp{}, map[string]bool{}
	part := tableOf(t, "export const reasons: Record<string, Patterns> = {", "\n};")
	for _, line := range regexp.MustCompile(`(?m)^  (\w+): \[(.+)\],$`).FindAllStringSubmatch(part, -1) {
		code := line[1]
		patterns[code] = patternsIn(line[2])
		for _, words := range regexp.MustCompile(`, '([^']+)'\]`).FindAllStringSubmatch(line[2], -1) {
			always[code] = always[code] || !strings.Contains(words[1], "$")
		}
	}
	return patterns, always
}

// TestReasonsAreSaidInChinese: the console has Chinese for each code of a reason, and its patterns take the
// examples of testdata/reasons.txt.
func TestReasonsAreSaidInChinese(t *testing.T) {
	t.Parallel()
	patterns, always := reasonsTable(t)
	source, err := os.ReadFile("../job/reason.go")
	if err != nil {
		t.Fatal(err)
	}
	codes := regexp.MustCompile(`ReasonCode = "(\w+)"`).FindAllStringSubmatch(string(source), -1)
	for _, m := range codes {
		if !always[m[1]] {
			t.Errorf("page/src/zh-server.ts has no words without a value for the code %s", m[1])
		}
	}
	if len(codes) != len(patterns) {
		t.Errorf("page/src/zh-server.ts has %d codes, job/reason.go has %d", len(patterns), len(codes))
	}

	// Lines of codes, a tab, and a reason as users read it.
	examples, err := os.ReadFile("testdata/reasons.txt")
	if err != nil {
		t.Fatal(err)
	}
	found := 0
	for line := range strings.Lines(string(examples)) {
		names, example, _ := strings.Cut(strings.TrimSuffix(line, "\n"), "\t")
		var own []*regexp.Regexp
		for _, code := range strings.Split(names, ", ") {
			own = append(own, patterns[code]...)
		}
		if len(own) == 0 {
			continue // words for any text
		}
		found++
		if !matches(own, example) && !slices.ContainsFunc(strings.Split(example, "; "), func(part string) bool { return matches(own, part) }) {
			t.Errorf("page/src/zh-server.ts: no pattern of %s is for %q", names, example)
		}
	}
	if found < 30 {
		t.Errorf("testdata/reasons.txt has only %d examples of reasons with a pattern", found)
	}
}

// TestFreeReasonsStay holds that what a job says of itself is no reason of ours, whatever it begins with.
func TestFreeReasonsStay(t *testing.T) {
	t.Parallel()
	var chinese []*regexp.Regexp
	byCode, _ := reasonsTable(t)
	for _, patterns := range byCode {
		chinese = append(chinese, patterns...)
	}
	for _, own := range []string{
		"timeout waiting for lock invoice-7", "killed by the customer", "is missing: orders.csv", "no node in the answer", "overlap of two invoices", "want 3 rows, got 2", "paused invoices are left",
		"nobody paid", "exit status 1 of convert", "group 7 has no members",
	} {
		if matches(chinese, own) {
			t.Errorf("page/src/zh-server.ts takes %q, which a handler wrote, for a reason of ours", own)
		}
	}
	for said, ours := range map[string]bool{
		"app shop is paused by ann: moving; not before May": true, "app shop is paused by ann smith": true, "the cluster is paused: new disks": true,
		"the job is paused": true, "handler shop/pay is disabled by ann: it pays twice": true,
	} {
		if matches(chinese, said) != ours {
			t.Errorf("%q: got %t, want %t", said, !ours, ours)
		}
	}
}

// TestOtherTextsAreSaidInChinese: the console has Chinese for what messages, pings and the archive
// command met with.
func TestOtherTextsAreSaidInChinese(t *testing.T) {
	t.Parallel()
	chinese := patternsIn(tableOf(t, "export const others: Patterns = [", "\n];"))
	for _, said := range []string{
		"the job no longer has a ping", "the job no longer has a URL for this ping", "a later due time replaced it",
		"it was tried for 24h0m0s; the last error: no response in time", "it waited longer than 24h0m0s",
		"it is outdated: it is older than 1m", "the channel was deleted", "the channel is disabled",
		"the channel cannot be read: unexpected end", "too many messages are waiting for the channel",
		"the node stopped while sending it: context canceled", "no response in time", "the response broke off: EOF",
		"the url cannot be parsed", "301 Moved Permanently: redirects are not followed; set the final URL",
		"the server answered errcode 310000: sign not match", "mail.example.com accepted it for ann@example.com",
		"dial tcp 127.0.0.1:9: connect: connection refused", "dial tcp: lookup chat.invalid on 10.0.0.1:53: no such host",
		"job 17: exit status 3: disk full", "cannot remove records of job 17: it is locked", "exit status 3",
		"exit status 3: disk\nfull", "signal: killed", "the command took longer than 1m0s and was killed",
		"the command took longer than 1m0s and was killed: slow",
		"the command exited with status 0 without reading the last 512 bytes",
	} {
		if !matches(chinese, said) {
			t.Errorf("page/src/zh-server.ts: no pattern of others is for %q", said)
		}
	}
}

func matches(patterns []*regexp.Regexp, text string) bool {
	for _, p := range patterns {
		if p.MatchString(text) {
			return true
		}
	}
	return false
}

// tableOf reads a table of the console's Chinese.
func tableOf(t *testing.T, from, to string) string {
	t.Helper()
	file, err := os.ReadFile("src/zh-server.ts")
	if err != nil {
		t.Fatal(err)
	}
	_, part, _ := strings.Cut(string(file), from)
	part, _, _ = strings.Cut(part, to)
	return part
}

func patternsIn(text string) (out []*regexp.Regexp) {
	for _, m := range regexp.MustCompile(`\[/(\^.+?\$)/(s?), '`).FindAllStringSubmatch(text, -1) {
		if strings.HasPrefix(m[1], "^ ") {
			continue // an end of a sentence
		}
		if m[2] != "" {
			m[1] = "(?s)" + m[1]
		}
		out = append(out, regexp.MustCompile(m[1]))
	}
	return out
}
