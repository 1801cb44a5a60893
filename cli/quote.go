package cli

import (
	"fmt"
	"strings"
)

// commandText builds the text for bash from the arguments after "--". A single argument is the text
// itself. Several arguments are a program and its arguments, as the caller's shell has split them.
// They are quoted, so that bash splits them in the same way.
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

// quote quotes s so that a shell reads it as one literal word.
func quote[S ~string](text S) string {
	s := string(text)
	if s != "" && strings.Trim(s, harmless) == "" {
		return s
	}
	return "'" + strings.ReplaceAll(s, "'", `'\''`) + "'"
}

// counted formats a count: "1 job", "2 jobs".
func counted(n int, what string) string {
	if n != 1 {
		what += "s"
	}
	return fmt.Sprintf("%d %s", n, what)
}
