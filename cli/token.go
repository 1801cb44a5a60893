package cli

import (
	"context"
	"net/http"
	"net/url"
	"strings"
	"time"

	"go-crontab/api/view"

	"github.com/spf13/cobra"
)

// tokenView is a token. The secret text is set only in the answer that creates the token.
type tokenView struct{ view.NewToken }

const tokensPath = "/api/v1/tokens"

func tokenCommand(c *console) *cobra.Command {
	return newGroup("token", "Create, list and revoke access tokens", tokenCreate(c), tokenList(c),
		tokenRevoke(c), tokenShow(c))
}

func tokenCreate(c *console) *cobra.Command {
	var (
		role, expires string
		apps          []string
	)

	cmd := &cobra.Command{
		Use: "create NAME", Short: "Create a token", Args: wants(1, 1, "NAME"),
		Long: `Create a token and print it. It is shown only this once. NAME says who holds the token; the audit
shows it as the author of changes. This needs the token of an admin of the whole cluster.

  viewer    may read definitions, runs and their output
  operator  may also pause, resume, run, kill and backfill
  admin     may also create, change and delete, and so run any command on the nodes

With --app, the role is limited to these apps. Everything that belongs to no app (groups, calendars,
nodes, tokens) is then read-only.`,
		Example: `  go-crontab token create alice --role admin
  go-crontab token create ci --role admin --app billing --expires 30d
  go-crontab token create wallboard --role viewer --expires never > token`,
	}

	r := newRemote(c, cmd)
	cmd.Flags().StringVarP(&role, "role", "r", "", "role of the token: viewer, operator or admin")
	cmd.Flags().StringSliceVarP(&apps, "app", "a", nil,
		"limit the role to this app; may be repeated, or separated by commas (default the whole cluster)")
	cmd.Flags().StringVarP(&expires, "expires", "e", "",
		`when the token expires: a time, a duration such as 30d, or "never" (default 90d)`)
	_ = cmd.RegisterFlagCompletionFunc("role",
		cobra.FixedCompletions([]string{"viewer", "operator", "admin"}, cobra.ShellCompDirectiveNoFileComp))
	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		if role == "" {
			return usageError("--role is missing: want viewer, operator or admin")
		}

		body := map[string]any{"name": args[0], "role": role}
		if len(apps) > 0 {
			body["apps"] = apps
		}
		if expires != "" {
			until, err := tokenEnd(expires, c.now())
			if err != nil {
				return err
			}
			body["expires"] = until
		}

		t, raw, err := once[tokenView](cmd.Context(), r, tokensPath, nil, body)
		if isStatus(err, http.StatusConflict) {
			err = withHint(err, "to revoke the existing token:  %s token revoke %s", program(), quote(args[0]))
		}
		if err != nil {
			return err
		}

		r.warnOfApps(cmd.Context(), apps...)
		return r.object(c, raw, t.Name, func() error {
			c.printf("%s\n", plain(t.Text))
			c.notef("This is the token of %s, %s, until %s. It is shown only once.\n", plain(t.Name), t.grant(),
				t.until(c.now()))
			return nil
		})
	}

	return cmd
}

// tokenEnd parses the expiry of a token. It accepts the time formats of all other commands.
func tokenEnd(s string, now time.Time) (string, error) {
	if s == "never" {
		return s, nil
	}
	return parseEnd("expires", s, now)
}

// grant describes the permissions of the token.
func (t *tokenView) grant() string {
	if len(t.Apps) == 0 {
		return string(t.Role) + " of the cluster"
	}
	return string(t.Role) + " of " + plain(strings.Join(t.Apps, ", "))
}

func (t *tokenView) until(now time.Time) string {
	if t.Expires == nil {
		return "it is revoked"
	}
	return both(t.Expires, now)
}

func tokenList(c *console) *cobra.Command {
	all := false
	cmd := &cobra.Command{
		Use: "ls", Aliases: []string{"list"}, Short: "List tokens, and when they were last used", Args: nothing,
		Example: "  go-crontab token ls\n  go-crontab token ls --revoked",
	}

	r := newRemote(c, cmd)
	cmd.Flags().BoolVar(&all, "revoked", false, "include revoked tokens")
	cmd.RunE = func(cmd *cobra.Command, _ []string) error {
		q := url.Values{}
		if all {
			q.Set("revoked", "true")
		}
		tokens, raw, err := list[tokenView](cmd.Context(), r, tokensPath, q, 0)
		if err != nil {
			return err
		}
		return r.list(raw, func(i int) string { return tokens[i].Name },
			func() error { return r.table(tokenTable(tokens, c.now())) })
	}

	return cmd
}

func tokenTable(tokens []tokenView, now time.Time) *table {
	t := &table{columns: []column{
		{head: "ID", right: true, drop: true}, {head: "NAME", shrink: true}, {head: "ROLE"},
		{head: "APPS", shrink: true}, {head: "STATE"}, {head: "EXPIRES"},
		{head: "LAST USED"}, {head: "FROM", shrink: true, drop: true}, {head: "MADE BY", shrink: true, drop: true},
	}}

	for _, v := range tokens {
		apps, expires, used := "all", "never", "never"
		if len(v.Apps) > 0 {
			apps = strings.Join(v.Apps, ", ")
		}
		if v.Expires != nil {
			expires = relative(v.Expires, now)
		}
		if v.Used != nil {
			used = relative(v.Used, now)
		}
		colours := map[string]colour{"active": green, "expired": yellow, "revoked": faint}
		t.add(text(v.ID), text(v.Name), text(v.Role), text(apps), cell{plain(v.State), colours[v.State]}, text(expires),
			text(used), text(v.UsedFrom), text(v.By))
	}

	return t
}

func tokenRevoke(c *console) *cobra.Command {
	cmd := &cobra.Command{
		Use: "revoke TOKEN…", Short: "Revoke tokens, by name or id", Args: wants(1, -1, "TOKEN (its name or id)"),
		Long: `Revoke tokens, by name or id. When this command has ended, the tokens can change nothing, on any
node, and neither can browsers that are signed in with them.`,
		Example: "  go-crontab token revoke ci",
	}

	r := newRemote(c, cmd)
	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		for _, arg := range args {
			t, err := r.tokenOf(cmd.Context(), arg)
			if err != nil {
				return err
			}

			if _, err := r.call(cmd.Context(), http.MethodDelete, tokensPath+"/"+t.ID, nil, nil); err != nil {
				return err
			}

			err = r.object(c, deleted{t.Name}, t.Name, func() error {
				c.printf("revoked token %s\n", plain(t.Name))
				return nil
			})
			if err != nil {
				return err
			}
		}
		return nil
	}

	return cmd
}

// tokenOf finds an active token by name, or any token by id.
func (r *remote) tokenOf(ctx context.Context, arg string) (tokenView, error) {
	found, _, err := list[tokenView](ctx, r, tokensPath, url.Values{"name": {arg}}, 1)
	if err != nil {
		return tokenView{}, err
	}
	if len(found) > 0 && found[0].Name == arg {
		return found[0], nil
	}
	if strings.Trim(arg, "0123456789") == "" {
		t, _, err := get[tokenView](ctx, r, tokensPath+"/"+arg, nil)
		if err == nil || !isStatus(err, http.StatusNotFound) {
			return t, err
		}
	}

	return tokenView{}, &exitError{
		code: exitNotFound, err: notFound("token", arg), hint: "to list tokens:  " + program() + " token ls --revoked",
	}
}

func tokenShow(c *console) *cobra.Command {
	cmd := &cobra.Command{
		Use: "show", Short: "Show the permissions of the token in use", Args: nothing,
		Example: "  go-crontab token show\n  GOCRONTAB_TOKEN_FILE=./token go-crontab token show",
	}

	r := newRemote(c, cmd)
	cmd.RunE = func(cmd *cobra.Command, _ []string) error {
		me, raw, err := get[view.Me](cmd.Context(), r, "/api/v1/me", nil)
		if err != nil {
			return err
		}

		return r.object(c, raw, me.Name, func() error {
			apps, expires := "all", "never"
			if len(me.Apps) > 0 {
				apps = strings.Join(me.Apps, ", ")
			}
			if me.Expires != nil {
				expires = both(me.Expires, c.now())
			}

			d := new(card)
			for _, line := range [][2]string{
				{"name", me.Name}, {"role", string(me.Role)}, {"apps", apps}, {"expires", expires},
			} {
				d.add(line[0], line[1], "")
			}
			return r.card(*d)
		})
	}

	return cmd
}
