package job

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"
)

func TestSecretUses(t *testing.T) {
	t.Parallel()
	s := Spec{Command: "x", CommandOptions: CommandOptions{
		Env: map[string]string{
			"B": "{{secret.pg}}/{{ secret.pg }}", "A": "a{{.Template}}{{{{secret.none}}", "C": "{{secret.c-1_2.x}}",
		},
		Stdin: "{{due}} {{secret.in}}",
	}}

	if got, want := fmt.Sprint(s.SecretUses()),
		"[{env.B pg false} {env.B pg false} {env.C c-1_2.x false} {stdin in false}]"; got != want {
		t.Errorf("got %s, want %s", got, want)
	}

	h := Spec{HTTP: &HTTP{
		URL: "http://a", Headers: map[string]string{"Authorization": "Bearer {{secret.api}} {{{{secret.not}}",
			"X": "{{due}}"}, Body: `{"k": "{{secret.body}}"}`,
		Sign: &HTTPSign{"hook"}, TLS: &HTTPTLS{ClientKey: "key"},
	}}

	want := "[{http.headers.Authorization api false} {http.body body false} {http.sign.secret hook true} {http.tls.client_key key true}]"
	if got := fmt.Sprint(h.SecretUses()); got != want {
		t.Errorf("got %s, want %s", got, want)
	}

	if got := SecretNames(append(s.SecretUses(), h.SecretUses()...)); !slices.Equal(got,
		[]Secret{"api", "body", "c-1_2.x", "hook", "in", "key", "pg"}) {
		t.Errorf("got the names %v", got)
	}

	h.App = "shop"
	exist := map[AppSecret]bool{{"", "api"}: true, {"billing", "body"}: true}
	if got := h.MissingSecrets(exist); len(got) != 1 || got[0].Field != "http.body" ||
		!strings.Contains(got[0].Message, `no secret "body" that jobs of app "shop" can use`) {
		t.Errorf("got %v", got)
	}

	if exist[AppSecret{"shop", "body"}] = true; h.MissingSecrets(exist) != nil {
		t.Errorf("got %v, want nothing", h.MissingSecrets(exist))
	}
}

func TestFillSecrets(t *testing.T) {
	t.Parallel()
	value := func(name Secret) (string, error) {
		if name == "gone" {
			return "", errors.New("there is none")
		}
		return "<{{secret.pg}}" + string(name) + ">", nil // a value is never a placeholder
	}

	for text, want := range map[string]string{
		"":                                     "",
		"{{due}} {{ .Values.x }} }} {{":        "{{due}} {{ .Values.x }} }} {{",
		"a {{secret.pg}} b":                    "a <{{secret.pg}}pg> b",
		"{{  secret.a }}{{secret.b}}":          "<{{secret.pg}}a><{{secret.pg}}b>",
		"{{{{secret.pg}} {{secret.pg}}":        "{{secret.pg}} <{{secret.pg}}pg>",
		"{{{{{{secret.pg}}":                    "{{{{secret.pg}}",
		"${{ secrets.PG }} {{secretly}} {{x.}": "${{ secrets.PG }} {{secretly}} {{x.}",
	} {
		if got, err := fillSecrets(text, value); err != nil || got != want {
			t.Errorf("%q: got %q, %v, want %q", text, got, err, want)
		}
	}

	for text, want := range map[string]string{
		"{{secret.pg": "without }}", "{{secret.}}": "is not a valid secret name", "{{secret.a b}}": "is not a valid secret name",
		"{{secret.../x}}": "is not a valid secret name", "{{secret.gone}}": "there is none",
	} {
		if got, err := fillSecrets(text, value); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%q: got %q, %v, want an error with %q", text, got, err, want)
		}
	}

	big := func(Secret) (string, error) { return strings.Repeat("x", MaxSecret), nil }
	many := CommandOptions{Stdin: strings.Repeat("{{secret.a}}", 1000)}
	if _, err := many.FillSecrets(big); err == nil ||
		!strings.Contains(err.Error(), "stdin: is longer than 1048576 bytes") {
		t.Errorf("got %v, want that it is too much", err)
	}

	many = CommandOptions{Env: map[string]string{}}
	for i := range 20 {
		many.Env[fmt.Sprint("V", i)] = "{{secret.a}}"
	}

	if _, err := many.FillSecrets(big); err == nil || !strings.Contains(err.Error(), "env: has 1310720 bytes") {
		t.Errorf("got %v, want that it is too much", err)
	}
}

func TestFillSecretsIntoRequest(t *testing.T) {
	t.Parallel()
	values := map[Secret]string{"token": `a%b "c`, "lines": "a\nb", "euro": "€€"}
	p := Placeholders{Secret: func(n Secret) (string, error) { return values[n], nil }}
	h := HTTP{
		URL: "http://a", Headers: map[string]string{"Authorization": "Bearer {{secret.token}}"},
		Body: `{"a": "{{secret.token}} {{secret.lines}}"}`,
	}
	c, err := h.Fill(p)
	if err != nil || c.Headers["Authorization"] != `Bearer a%b "c` || c.Body != `{"a": "a%b \"c a\nb"}` {
		t.Errorf("got %+v, %v", c, err)
	}

	for name := range values {
		h.Headers["Authorization"] = "{{secret." + string(name) + "}}"
		_, err := h.Fill(p)
		if bad := name != "token"; bad != (err != nil) ||
			bad && (!strings.Contains(err.Error(), "headers.Authorization: the secret "+string(name)) ||
				strings.Contains(err.Error(), values[name])) {
			t.Errorf("%s: got %v", name, err)
		}
	}
}

func TestWhereSecretsMayStand(t *testing.T) {
	t.Parallel()
	many := map[string]string{}
	for i := range MaxSecrets + 1 {
		many[fmt.Sprintf("V%02d", i)] = fmt.Sprintf("{{secret.s%02d}}", i)
	}

	for name, c := range map[string]struct {
		change func(*Spec)
		field  string // "" if it is valid
	}{
		"in a variable":          {func(s *Spec) { s.Env = map[string]string{"P": "{{secret.pg}}"} }, ""},
		"in the input":           {func(s *Spec) { s.Stdin = "{{secret.pg}}" }, ""},
		"in the command":         {func(s *Spec) { s.Command = "psql --password={{ secret.pg }}" }, "command"},
		"another template there": {func(s *Spec) { s.Command = "echo '{{secrets}}' '{{ .x }}'" }, ""},
		"open":                   {func(s *Spec) { s.Env = map[string]string{"P": "{{secret.pg"} }, "env.P"},
		"no name":                {func(s *Spec) { s.Stdin = "{{secret.a b}}" }, "stdin"},
		"too many":               {func(s *Spec) { s.Env = many }, "env.V16"},
		"in a header": {
			func(s *Spec) { *s = httpJob(HTTP{URL: "http://a", Headers: map[string]string{"A": "{{secret.pg}}"}}) }, "",
		},
		"in a body":  {func(s *Spec) { *s = httpJob(HTTP{URL: "http://a", Body: `{"a": "{{secret.pg}}"}`}) }, ""},
		"in the URL": {func(s *Spec) { *s = httpJob(HTTP{URL: "http://a/{{secret.pg}}"}) }, "http.url"},
		"unquoted in JSON": {func(s *Spec) {
			*s = httpJob(HTTP{
				URL: "http://a", Headers: map[string]string{"Content-Type": "application/json"},
				Body: `{"a": {{secret.pg}}}`,
			})
		}, "http.body"},
	} {
		s := Spec{Name: "a", Schedule: "@daily", Command: "true"}
		c.change(&s)
		s.Defaults(time.Now())
		err := s.Validate()
		var p Problems
		errors.As(err, &p)
		if c.field == "" && err != nil || c.field != "" && (len(p) != 1 || p[0].Field != c.field) {
			t.Errorf("%s: got %v, want a problem of %q", name, err, c.field)
		}
	}
}

func httpJob(h HTTP) Spec { return Spec{Name: "a", Schedule: "@daily", HTTP: &h} }

func TestCheckSecret(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		name       Secret
		app, value string
		field      string
	}{
		"good": {"a", "", "good", ""}, "short": {"a", "", "sho", "value"},
		"long": {"a", "", strings.Repeat("x", MaxSecret+1), "value"}, "NUL": {"a", "", "hunter\x00", "value"},
		"no text": {"a", "", "hunter\xff", "value"}, "space": {"a", "", "    \n", "value"},
		"no name": {"a/b", "", "good", "name"}, "no app": {"a", "a\nb", "good", "app"},
	} {
		err := CheckSecret(c.name, c.app, c.value)
		var p Problems
		errors.As(err, &p)
		if c.field == "" && err != nil || c.field != "" && (len(p) != 1 || p[0].Field != c.field) ||
			err != nil && strings.Contains(err.Error(), "hunter") {
			t.Errorf("%s: got %v, want a problem of %q", name, err, c.field)
		}
	}
}
