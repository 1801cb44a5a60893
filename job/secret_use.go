package job

import (
	"fmt"
	"maps"
	"regexp"
	"slices"
	"strings"
	"unicode"
	"unicode/utf8"

	"go-crontab/job/problem"
)

// A definition names a secret by {{secret.NAME}} in the values of env, in stdin, and in the headers
// and the body of a request. The value is filled in only there, and only when the job runs.
// sign.secret and tls.client_key hold the name without braces.
//
// env and stdin have no other placeholder, so any other {{ in them stays unchanged. {{{{secret.
// means the text {{secret. itself.

// Bounds of secrets.
const (
	MinSecret  = 4        // bytes: output contains a shorter value too often to hide it
	MaxSecret  = 64 << 10 // bytes
	MaxSecrets = 16       // per job

	maxFilled = 1 << 20 // bytes of a text after filling
)

// KindSecret is the kind of secrets in audit lines.
const KindSecret Kind = "secret"

// ActionRotate is sealing secrets with another key.
const ActionRotate Action = "rotate"

// CheckSecret returns the problems of a secret, as Problems, or nil. The problems never contain the
// value. An empty app means all apps.
func CheckSecret(name Secret, app, value string) error {
	var p Problems
	if err := name.Check(); err != nil {
		p.Put("name", problem.Of(err))
	}

	if app != "" {
		checkName(&p, "app", app)
	}

	switch {
	case len(value) < MinSecret:
		p.Add("value", problem.SecretTooShort, len(value), MinSecret)
	case len(value) > MaxSecret:
		p.Add("value", problem.TooManyBytes, len(value), MaxSecret)
	case !utf8.ValidString(value) || strings.ContainsRune(value, 0):
		p.Add("value", problem.SecretNotText)
	case strings.TrimSpace(value) == "":
		p.Add("value", problem.SecretBlank)
	}

	if p == nil {
		return nil
	}

	return p
}

// SecretUse is a place in a definition that names a secret.
type SecretUse struct {
	Field string
	Name  Secret
	Own   bool // if the cluster has no such secret, the node's own is used
}

// SecretUses lists the places where a valid definition names secrets.
func (s *Spec) SecretUses() []SecretUse {
	var uses []SecretUse
	in := func(field string) func(Secret) (string, error) {
		return func(name Secret) (string, error) {
			uses = append(uses, SecretUse{Field: field, Name: name})
			return "", nil
		}
	}

	for _, name := range slices.Sorted(maps.Keys(s.Params)) {
		if secret := s.Params[name].Secret; secret != "" {
			_, _ = in("params." + name + ".secret")(secret)
		}
	}

	// Validation has already reported problems of the texts.
	if s.Command != "" {
		for _, name := range slices.Sorted(maps.Keys(s.Env)) {
			_, _ = fillSecrets(s.Env[name], in("env."+name))
		}
		_, _ = fillSecrets(s.Stdin, in("stdin"))
	}

	if h := s.HTTP; h != nil {
		for _, name := range slices.Sorted(maps.Keys(h.Headers)) {
			_, _ = (&Placeholders{Secret: in("http.headers." + name)}).fill(h.Headers[name], asItIs, sendable)
		}
		_, _ = (&Placeholders{Secret: in("http.body")}).fill(h.Body, asItIs, sendable)
		if h.Sign != nil {
			uses = append(uses, SecretUse{"http.sign.secret", h.Sign.Secret, true})
		}
		if h.TLS != nil && h.TLS.ClientKey != "" {
			uses = append(uses, SecretUse{"http.tls.client_key", h.TLS.ClientKey, true})
		}
	}

	return uses
}

// SecretNames returns the sorted, distinct names in uses.
func SecretNames(uses []SecretUse) []Secret {
	var names []Secret
	for _, u := range uses {
		names = append(names, u.Name)
	}
	slices.Sort(names)
	return slices.Compact(names)
}

// MissingSecrets returns a problem for each secret of the definition that does not exist for its
// app. exist holds the existing secrets.
func (s *Spec) MissingSecrets(exist map[AppSecret]bool) (p Problems) {
	for _, u := range s.SecretUses() {
		if !u.Own && !exist[AppSecret{s.App, u.Name}] && !exist[AppSecret{"", u.Name}] {
			p.Add(u.Field, problem.NoSecret.Advise("create it first: go-crontab secret set %s", u.Name), u.Name,
				shorten(s.App))
		}
	}
	return p
}

// HasSecrets reports whether a header value or a body contains secrets. params are the parameters
// that have secrets as values.
func HasSecrets(text string, params map[string]Secret) bool {
	has := false
	p := &Placeholders{
		Secret: func(Secret) (string, error) { has = true; return "", nil },
		Param:  func(name string) (string, Secret, bool) { return "", params[name], true },
	}
	_, _ = p.fill(text, asItIs, sendable)
	return has
}

// FillSecrets returns the options with secrets filled in, in env and stdin.
func (o CommandOptions) FillSecrets(value func(Secret) (string, error)) (CommandOptions, error) {
	env, bytes := make(map[string]string, len(o.Env)), 0
	for name, text := range o.Env {
		filled, err := fillSecrets(text, value)
		if err != nil {
			return o, fmt.Errorf("env.%s: %w", name, err)
		}
		env[name], bytes = filled, bytes+len(filled)
	}

	if bytes > maxFilled {
		return o, fmt.Errorf("env: has %d bytes once its secrets are filled in; "+
			"at most %d are allowed: pass large values on stdin", bytes, maxFilled)
	}

	o.Env = env
	var err error
	if o.Stdin, err = fillSecrets(o.Stdin, value); err != nil {
		return o, fmt.Errorf("stdin: %w", err)
	}

	return o, nil
}

const secretPrefix = "secret."

// secretOpening matches the start of a placeholder in env and stdin. With four braces it matches
// the escape.
var secretOpening = regexp.MustCompile(`(?:\{\{)?\{\{ *secret\.`)

// fillSecrets fills a text in which only secrets are placeholders.
func fillSecrets(text string, value func(Secret) (string, error)) (string, error) {
	if !strings.Contains(text, opening) {
		return text, nil
	}

	var b strings.Builder
	for {
		at := secretOpening.FindStringIndex(text)
		if at == nil {
			b.WriteString(text)
			return b.String(), bounded(&b)
		}
		b.WriteString(text[:at[0]])
		found, rest := text[at[0]:at[1]], text[at[1]:]
		if literal, is := strings.CutPrefix(found, opening+opening); is {
			b.WriteString(opening + literal)
			text = rest
			continue
		}
		name, after, closed := strings.Cut(rest, closing)
		if !closed {
			return "", problem.Errorf(problem.SecretOpen)
		}
		v, err := secretNamed(name, value)
		if err != nil {
			return "", err
		}
		b.WriteString(v)
		if err := bounded(&b); err != nil {
			return "", err
		}
		text = after
	}
}

// secretNamed returns the value of a secret. name is the text in the placeholder.
func secretNamed(name string, value func(Secret) (string, error)) (string, error) {
	s := Secret(strings.TrimSpace(name))
	if err := s.Check(); err != nil {
		return "", fmt.Errorf("has the placeholder of a secret, but %w", err)
	}
	return value(s)
}

// bounded limits how much memory a few large secrets take in many placeholders.
func bounded(b *strings.Builder) error {
	if b.Len() > maxFilled {
		return problem.Errorf(problem.PlaceholdersLong, maxFilled)
	}
	return nil
}

func asItIs(s string) string { return s }

// sendable accepts any value.
func sendable(s string) (string, error) { return s, nil }

// headerSecret accepts only a value that a header can hold unchanged. Encoding would change the
// secret.
func headerSecret(s string) (string, error) {
	if strings.ContainsFunc(s, func(r rune) bool { return r > unicode.MaxASCII || r < ' ' && r != '\t' || r == 0x7f }) {
		return "", problem.Errorf(problem.SecretNotInHeader)
	}
	return s, nil
}

// validateSecrets checks how the definition names secrets.
func (s *Spec) validateSecrets(p *Problems) {
	if s.Command != "" {
		if at := secretOpening.FindString(s.Command); at != "" && !strings.HasPrefix(at, opening+opening) {
			p.Add("command", problem.SecretInCommand)
		}
		sample := func(Secret) (string, error) { return "", nil }
		for _, name := range slices.Sorted(maps.Keys(s.Env)) {
			if _, err := fillSecrets(s.Env[name], sample); err != nil {
				p.Put("env."+name, problem.Of(err))
			}
		}
		if _, err := fillSecrets(s.Stdin, sample); err != nil {
			p.Put("stdin", problem.Of(err))
		}
	}

	seen := map[Secret]bool{}
	for _, u := range s.SecretUses() {
		if seen[u.Name] = true; len(seen) > MaxSecrets {
			p.Add(u.Field, problem.TooManySecrets, len(seen), MaxSecrets)
			return
		}
	}
}
