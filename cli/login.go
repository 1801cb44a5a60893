package cli

import (
	"encoding/json"
	"net/http"
	"net/url"
	"strings"
	"time"

	"go-crontab/api/view"

	"github.com/spf13/cobra"
)

const loginsPath = "/api/v1/logins"

func loginCommand(c *console) *cobra.Command {
	return newGroup("login", "List and end the sign-ins of browsers", loginList(c), loginRevoke(c))
}

func loginList(c *console) *cobra.Command {
	who := ""
	cmd := &cobra.Command{
		Use: "ls", Aliases: []string{"list"}, Short: "List which browsers are signed in", Args: nothing,
		Long: `List which browsers are signed in, by token or by the identity provider. A token that is limited to apps, or not an
admin's, sees the sign-ins made with it.`,
		Example: "  go-crontab login ls\n  go-crontab login ls --who ann@example.com",
	}

	r := newRemote(c, cmd)
	cmd.Flags().StringVar(&who, "who", "",
		"only those of this one: the name of a token, or of a person as the audit has it")
	_ = cmd.RegisterFlagCompletionFunc("who", completeField(c, loginsPath, "who"))
	cmd.RunE = func(cmd *cobra.Command, _ []string) error {
		q := url.Values{}
		if cmd.Flags().Changed("who") {
			q.Set("who", who)
		}
		logins, raw, err := list[view.LoginRow](cmd.Context(), r, loginsPath, q, 0)
		if err != nil {
			return err
		}
		return r.list(raw, func(i int) string { return logins[i].ID },
			func() error { return r.table(loginTable(logins, time.Now())) })
	}

	return cmd
}

func loginTable(logins []view.LoginRow, now time.Time) *table {
	t := &table{columns: []column{
		{head: "ID", right: true}, {head: "WHO", shrink: true}, {head: "BY"}, {head: "MAY", shrink: true},
		{head: "SINCE"}, {head: "UNTIL"},
		{head: "LAST USED"}, {head: "FROM", shrink: true, drop: true},
	}}

	for _, v := range logins {
		used, from := "never", v.From
		if v.Used != nil {
			used, from = relative(v.Used, now), v.UsedFrom
		}
		by := map[string]string{"token": "token", "oidc": "provider"}[v.Kind]
		t.add(text(v.ID), text(v.Who), text(by), text(grantsText(v.Grants)), text(relative(&v.Since, now)),
			text(relative(&v.Until, now)), text(used), text(from))
	}

	return t
}

// grantsText describes permissions: "viewer; operator of billing".
func grantsText(grants []view.Grant) string {
	if len(grants) == 0 {
		return "nothing"
	}

	parts := make([]string, len(grants))
	for i, g := range grants {
		parts[i] = string(g.Role)
		if len(g.Apps) > 0 {
			parts[i] += " of " + strings.Join(g.Apps, ", ")
		}
	}

	return strings.Join(parts, "; ")
}

func loginRevoke(c *console) *cobra.Command {
	who := ""
	cmd := &cobra.Command{
		Use: "revoke [LOGIN…]", Short: "End sign-ins, by id or all of somebody", Args: cobra.ArbitraryArgs,
		Long: `End sign-ins, by id, or with --who all of somebody. Once this has answered these browsers change nothing any more, on any
node; what they show ends within a second. Whoever still has a token, or is let in by the identity provider, can sign in
again: revoke the token, or lock the account there, first.`,
		Example: "  go-crontab login revoke 17\n  go-crontab login revoke --who ann@example.com",
	}

	r := newRemote(c, cmd)
	cmd.Flags().StringVar(&who, "who", "",
		"all sign-ins of this one: the name of a token, or of a person as the audit has it; the whole name")
	cmd.ValidArgsFunction = completeField(c, loginsPath, "id")
	_ = cmd.RegisterFlagCompletionFunc("who", completeField(c, loginsPath, "who"))
	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		named := cmd.Flags().Changed("who")
		switch {
		case named && len(args) > 0:
			return usageError("a LOGIN and --who: want one of them")
		case named && who == "":
			return usageError("--who is empty: want the name of a token, or of a person as %s login ls has it",
				program())
		case !named && len(args) == 0:
			return usageError("want a LOGIN (its id), or --who NAME")
		case named:
			return r.revokeLoginsOf(cmd, who)
		}

		for _, id := range args {
			if err := r.revokeLogin(cmd, id); err != nil {
				return err
			}
		}
		return nil
	}

	return cmd
}

func (r *remote) revokeLogin(cmd *cobra.Command, id string) error {
	_, err := r.call(cmd.Context(), http.MethodDelete, loginsPath+"/"+url.PathEscape(id), nil, nil)
	if isStatus(err, http.StatusNotFound) {
		return &exitError{
			code: exitNotFound, err: notFound("sign-in", id), hint: "to see them: " + program() + " login ls",
		}
	}
	if err != nil {
		return err
	}

	return r.object(r.console, deleted{id}, id, func() error {
		r.printf("sign-in %s is ended\n", plain(id))
		return nil
	})
}

func (r *remote) revokeLoginsOf(cmd *cobra.Command, who string) error {
	raw, err := r.call(cmd.Context(), http.MethodDelete, loginsPath, url.Values{"who": {who}}, nil)
	if isStatus(err, http.StatusNotFound) {
		return &exitError{
			code: exitNotFound, err: notFound("sign-in of", who),
			hint: "to see who is signed in: " + program() + " login ls",
		}
	}
	if err != nil {
		return err
	}

	n, err := decode[view.Ended](r, loginsPath, raw)
	if err != nil {
		return err
	}

	return r.object(r.console, json.RawMessage(raw), who, func() error {
		r.printf("%d sign-ins of %s are ended\n", n.Ended, plain(who))
		return nil
	})
}
