package cli

import (
	"os/exec"
	"strings"
	"testing"
)

func TestCommandText(t *testing.T) {
	t.Parallel()
	if got := commandText([]string{"echo $HOME | wc"}); got != "echo $HOME | wc" {
		t.Errorf("one argument: got %q, want it verbatim", got)
	}
	if got := commandText([]string{
		"curl", "-fsS", "https://example.com/?a=b",
	}); got != "curl -fsS 'https://example.com/?a=b'" {
		t.Errorf("got %q, want quotes only where they are needed", got)
	}
}

// Bash is the judge: it must split the text as the caller's shell did.
func TestQuotedArgumentsArriveInBash(t *testing.T) {
	t.Parallel()

	args := []string{
		"printf", "%s\\n", "a b", "$HOME", "it's", `"`, "`id`", "*", "", "-n", "a\nb", "!x", "~", "你好", "#c", "a=b",
		"\\",
	}

	out, err := exec.Command("bash", "-c", commandText(args)).CombinedOutput()
	if err != nil {
		t.Fatalf("%v: %s", err, out)
	}

	if want := strings.Join(args[2:], "\n") + "\n"; string(out) != want {
		t.Errorf("got %q, want %q", out, want)
	}
}
