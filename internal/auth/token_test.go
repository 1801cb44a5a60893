package auth

import (
	"regexp"
	"strings"
	"testing"

	"go-crontab/job"
)

func TestTokenFormat(t *testing.T) {
	t.Parallel()
	format := regexp.MustCompile(`^gocrontab_[0-9A-Za-z]{49}$`)
	seen := map[string]bool{}
	var letters [128]int
	for range 500 {
		s := newSecret(tokenPrefix)
		if !format.MatchString(s) || !LooksLikeToken(s) || seen[s] {
			t.Fatalf("%q: want what scanners look for, and each time another", s)
		}
		seen[s] = true
		for _, c := range s[len(tokenPrefix)+1 : len(s)-sumDigits] { // the first digit has few values
			letters[c]++
		}
	}

	for _, c := range digits { // 21,000 letters, 339 of each on average
		if letters[c] < 200 || letters[c] > 480 {
			t.Errorf("%c is there %d times of 21,000, want about 339", c, letters[c])
		}
	}

	s := newSecret(tokenPrefix)
	swapped := []byte(s)
	for i := len(tokenPrefix); ; i++ {
		if swapped[i] != swapped[i+1] {
			swapped[i], swapped[i+1] = swapped[i+1], swapped[i]
			break
		}
	}

	for what, bad := range map[string]string{
		"empty": "", "short": s[:len(s)-1], "long": s +
			"0", "two letters swapped": string(swapped), "lower case": strings.ToLower(s),
		"upper case":      strings.ToUpper(s),
		"only the prefix": tokenPrefix, "another prefix": "github_pat_" +
			s[len(tokenPrefix):], "what a cookie holds": newSecret(loginPrefix), "a space": s[:20] + " " + s[21:],
		"zeros": tokenPrefix + strings.Repeat("0", 49), "a default": "default_token", "changeme": "changeme",
	} {
		if LooksLikeToken(bad) {
			t.Errorf("%s, %q, looks like a token", what, bad)
		}
	}

	if hashOf(s) == hashOf(string(swapped)) {
		t.Error("two tokens with one hash")
	}
}

func TestCheckName(t *testing.T) {
	t.Parallel()
	for _, name := range []string{"ci", "alice", "team-a/deploy.prod_2", strings.Repeat("x", 64)} {
		if err := CheckName(name); err != nil {
			t.Errorf("%q: %v", name, err)
		}
	}

	for _, name := range []string{"", strings.Repeat("x", 65), "a b", "alice@example.com", "a\n", "ü", job.Anonymous,
		job.Itself, "a:b", "<b>"} {
		if CheckName(name) == nil {
			t.Errorf("%q can be the name of a token", name)
		}
	}
}
