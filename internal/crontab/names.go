package crontab

import (
	"fmt"
	"hash/fnv"
	"path"
	"strings"
	"unicode"

	"go-crontab/job"
)

// next names a job after its file, which may be empty, and its command. It first tries the
// program's name, then adds the arguments, then a hash of the line, and then a number. A name does
// not depend on later lines.
func (n *Names) next(file string, s *job.Spec) string {
	if n.taken == nil {
		n.taken, n.number = map[string]bool{}, map[string]int{}
	}

	program, arguments := called(s.Command, 0)
	name := slug(program, 40)
	if name == "" {
		name = "job"
	}

	// If the program has the same name as the file, the job needs no second name.
	if file = slug(file, 40); file != "" && name != file && !strings.HasPrefix(name, file+"-") {
		name = file + "-" + name
	}

	h := fnv.New32a()
	fmt.Fprintf(h, "%s\x00%s\x00%s\x00%s", s.Schedule, s.User, s.Command, s.Stdin)
	tries := []string{name}
	if more := slug(strings.Join(arguments, " "), 40); more != "" {
		tries = append(tries, name+"-"+more)
	}

	tries = append(tries, fmt.Sprintf("%s-%04x", name, h.Sum32()&0xffff))
	numbered := s.App + "\x00" + name
	for {
		for _, try := range tries {
			if key := s.App + "\x00" + try; !n.taken[key] {
				n.taken[key] = true
				return try
			}
		}
		n.number[numbered] = max(n.number[numbered], 1) + 1 // lower numbers are taken
		tries = []string{fmt.Sprintf("%s-%d", name, n.number[numbered])}
	}
}

// slug keeps the characters that are allowed in names.
func slug(s string, most int) string {
	var b strings.Builder
	for _, r := range s {
		switch {
		case r >= 'a' && r <= 'z', r >= 'A' && r <= 'Z', r >= '0' && r <= '9', r == '.', r == '_', r == ':',
			r > 0x7f && (unicode.IsLetter(r) || unicode.IsDigit(r)):
			b.WriteRune(r)
		default:
			if b.Len() > 0 && !strings.HasSuffix(b.String(), "-") {
				b.WriteByte('-')
			}
		}
		if b.Len() >= most {
			break
		}
	}

	return strings.Trim(b.String(), "-.:")
}

// prefixWords are words that may precede the main program. The number says how many arguments each
// takes besides options.
var prefixWords = map[string]int{
	"sudo": 0, "nice": 0, "ionice": 0, "nohup": 0, "time": 0, "exec": 0, "env": 0, "chronic": 0, "setsid": 0,
	"stdbuf": 0, "command": 0, "builtin": 0,
	"chrt": 1, "timeout": 1, "flock": 1, "taskset": 1, "run-one": 0, "cronic": 0, "systemd-cat": 0, "systemd-run": 0,
	"invoke-rc.d": 0, "service": 0, "then": 0, "else": 0, "do": 0, "!": 0, "{": 0, "(": 0,
}

// optionArguments are the options of prefix words that take an argument.
var optionArguments = map[string]string{
	"sudo": "-u -g -h -p -C -T -U -r -t", "nice": "-n", "ionice": "-c -n -p", "timeout": "-k -s", "flock": "-w -E -c",
	"env": "-u -C -S", "stdbuf": "-i -o -e", "systemd-cat": "-t -p", "chrt": "-p",
}

// interpreters run the script in their first argument.
var interpreters = []string{
	"sh", "bash", "dash", "zsh", "ksh", "ash", "python", "perl", "ruby", "php", "node", "nodejs", "Rscript", "lua",
	"tclsh", "pwsh",
}

// called finds the main program of a command, and its arguments.
func called(command string, depth int) (program string, arguments []string) {
	if depth > 3 {
		return "", nil
	}

	for _, words := range parts(command) {
		words = mainWords(words)
		if len(words) == 0 {
			continue
		}

		name := path.Base(words[0])
		if isInterpreter(name) {
			what, rest, isText := script(words[1:])
			if isText {
				if program, rest = called(what, depth+1); program != "" {
					return program, rest
				}
				continue // the text only prepares something
			}
			if what != "" {
				return bare(what), rest
			}
		}

		rest := notOptions(words[1:])
		if name == "run-parts" && len(rest) > 0 {
			return path.Base(rest[len(rest)-1]), nil
		}

		return bare(words[0]), rest
	}

	return "", nil
}

func isInterpreter(name string) bool {
	name = strings.TrimRight(name, "0123456789.")
	for _, i := range interpreters {
		if name == i {
			return true
		}
	}
	return false
}

// script returns the script of an interpreter: a file, or with -c, -e or -r a text.
func script(words []string) (what string, rest []string, isText bool) {
	for i, w := range words {
		switch {
		case strings.HasPrefix(w, "-") && strings.ContainsAny(w[len(w)-1:], "cer") && !strings.HasPrefix(w, "--") &&
			i+1 < len(words):
			return words[i+1], nil, true
		case strings.HasPrefix(w, "-"):
		default:
			return w, notOptions(words[i+1:]), false
		}
	}
	return "", nil, false
}

// bare returns the name of a program without folder and script extension.
func bare(file string) string {
	name := path.Base(file)
	for _, ext := range []string{".sh", ".py", ".pl", ".rb", ".php", ".js", ".bash"} {
		if cut, ok := strings.CutSuffix(name, ext); ok && cut != "" {
			return cut
		}
	}
	return name
}

func notOptions(words []string) (out []string) {
	for _, w := range words {
		if !strings.HasPrefix(w, "-") && !strings.HasPrefix(w, ">") && !strings.HasPrefix(w, "<") &&
			!strings.HasPrefix(w, "2>") && !strings.HasPrefix(w, "&>") {
			out = append(out, w)
		}
	}
	return out[:min(len(out), 4)]
}

// mainWords removes words that precede the program. If the words only test or prepare something,
// it returns nil.
func mainWords(words []string) []string {
	for len(words) > 0 {
		first := path.Base(words[0])
		takes, is := prefixWords[first]
		switch {
		case isAssignment(words[0]):
			words = words[1:]
		case first == "command" && len(words) > 1 && strings.HasPrefix(words[1], "-"):
			return nil // command -v: a test
		case is:
			words = skipPrefix(first, words[1:], takes)
		case first == "[", first == "[[", first == "test", first == "cd", first == "sleep", first == "set",
			first == "export", first == "umask", first == "ulimit",
			first == ".", first == "source", first == "if", first == "true", first == ":", first == "exit",
			first == "fi", first == "which", first == "type":
			return nil
		default:
			return words
		}
	}
	return nil
}

// skipPrefix removes the options of a prefix word and its arguments.
func skipPrefix(first string, words []string, takes int) []string {
	with := " " + optionArguments[first] + " "
	for len(words) > 0 && strings.HasPrefix(words[0], "-") {
		option := words[0]
		if words = words[1:]; strings.Contains(with, " "+option+" ") && len(words) > 0 {
			words = words[1:]
		}
	}
	return words[min(takes, len(words)):]
}

func isAssignment(word string) bool {
	name, _, ok := strings.Cut(word, "=")
	return ok && name != "" &&
		strings.Trim(name, "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_") == ""
}

// parts splits a command at ; & | and line breaks, and each part into words, roughly like a shell.
func parts(command string) (out [][]string) {
	var (
		words   []string
		b       strings.Builder
		in      byte // the open quote
		started bool
	)

	endWord := func() {
		if started {
			words = append(words, b.String())
		}
		b.Reset()
		started = false
	}

	endPart := func() {
		endWord()
		if words != nil {
			out = append(out, words)
		}
		words = nil
	}

	for i := 0; i < len(command); i++ {
		c := command[i]
		switch {
		case in != 0 && c == in:
			in = 0
		case in == '\'', in == '"' && c != '\\':
			b.WriteByte(c)
		case c == '\\' && i+1 < len(command):
			i++
			b.WriteByte(command[i])
			started = true
		case c == '\'' || c == '"':
			in, started = c, true
		case c == ' ' || c == '\t':
			endWord()
		case c == '&' && strings.HasSuffix(b.String(), ">"), c == '&' && i+1 < len(command) && command[i+1] == '>':
			b.WriteByte(c)
			started = true
		case c == ';' || c == '&' || c == '|' || c == '\n':
			endPart()
		case (c == '(' || c == ')') && !started:
			endPart()
		default:
			b.WriteByte(c)
			started = true
		}
	}

	endPart()
	return out
}
