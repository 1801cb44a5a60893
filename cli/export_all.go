package cli

import (
	"context"
	"fmt"
	"net/url"
	"strings"
	"time"
)

// exportRest prints, as comments, what a cluster has and a file cannot hold, as the commands that make it elsewhere:
// pauses, retention, handlers that are disabled, and the names of secrets and tokens, whose values nobody can read.
func (r *remote) exportRest(ctx context.Context) error {
	var lines []string
	add := func(words ...string) {
		for i := range words {
			words[i] = plain(words[i])
		}
		lines = append(lines, "go-crontab "+strings.Join(words, " "))
	}
	rules, _, err := get[retentionRules](ctx, r, "/api/v1/retention", nil)
	if err != nil {
		return err
	}
	for _, rule := range rules.Items {
		words := []string{"retention", "set"}
		for _, f := range []struct{ flag, value string }{{"app", rule.App}, {"age", rule.Age}, {"bytes", rule.Bytes}, {"failures", rule.Failures}} {
			if f.value != "" {
				words = append(words, "--"+f.flag, quote(f.value))
			}
		}
		if rule.Runs != 0 {
			words = append(words, "--runs", fmt.Sprint(rule.Runs))
		}
		if rule.Archive {
			words = append(words, "--archive")
		}
		add(words...)
	}
	pauses, _, err := get[page[pauseView]](ctx, r, "/api/v1/pauses", nil)
	if err != nil {
		return err
	}
	for _, p := range pauses.Items {
		words := []string{"cluster", "pause"}
		if p.App != "" {
			words = []string{"app", "pause", quote(p.App)}
		}
		if p.Reason != "" {
			words = append(words, "--reason", quote(p.Reason))
		}
		if p.Until != nil {
			words = append(words, "--until", p.Until.Format("2006-01-02T15:04:05Z07:00"))
		}
		add(words...)
	}
	handlers, _, err := get[page[handlerView]](ctx, r, handlersPath, nil)
	if err != nil {
		return err
	}
	for _, h := range handlers.Items {
		if h.Disabled {
			add("handler", "disable", quote(h.Handler))
		}
	}
	secrets, _, err := list[secretView](ctx, r, secretsPath, nil, everything)
	if err != nil {
		return err
	}
	for _, s := range secrets {
		words := []string{"secret", "set", quote(s.Name)}
		if s.App != "" {
			words = append(words, "--app", quote(s.App))
		}
		add(append(words, "  # its value is asked for")...)
	}
	tokens, _, err := list[tokenView](ctx, r, "/api/v1/tokens", url.Values{}, everything)
	if err != nil {
		return err
	}
	for _, t := range tokens {
		if t.State != "" && t.State != "active" {
			continue
		}
		words := []string{"token", "create", quote(t.Name), "--role", t.Role}
		for _, app := range t.Apps {
			words = append(words, "--app", quote(app))
		}
		if t.Expires != nil {
			words = append(words, "--expires", fmt.Sprintf("%dh", max(1, int(time.Until(*t.Expires).Hours()))))
		}
		add(words...)
	}
	r.printf("\n# What a file cannot hold. Run what you want of it on the other cluster:\n")
	for _, l := range lines {
		r.printf("# %s\n", l)
	}
	return nil
}

// everything is more than any list has.
const everything = 1 << 30
