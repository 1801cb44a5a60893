package cli

import (
	"fmt"
	"strings"
)

// commandText makes the text that bash gets from what stands after "--". One argument is that text already. Several
// are a program and its arguments, as the caller's shell has split them: each is quoted, so that bash makes the same
// of them again.
func commandText(args []string) string {
	if len(args) == 1 {
		return args[0]
	}
	quoted := make([]string, len(args))
	for i, arg := range args {
		quoted[i] = quote(arg)
	}
	return strings.Join(quoted, " ")
}

const harmless = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_-./:=@%+,"

// quote writes s so that a shell reads it as one word without any meaning.
func quote(s string) string {
	if s != "" && strings.Trim(s, harmless) == "" {
		return s
	}
	return "'" + strings.ReplaceAll(s, "'", `'\''`) + "'"
}

// counted is "1 job", "2 jobs".
func counted(n int, what string) string {
	if n != 1 {
		what += "s"
	}
	return fmt.Sprintf("%d %s", n, what)
}
