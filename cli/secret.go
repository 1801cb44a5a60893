package cli

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"net/url"
	"os"
	"os/signal"
	"strings"
	"syscall"
	"time"
	"unicode/utf8"

	"go-crontab/api/view"
	"go-crontab/internal/secret"
	"go-crontab/job"

	"github.com/spf13/cobra"
	"golang.org/x/term"
)

const secretsPath = "/api/v1/secrets"

func secretCommand(c *console) *cobra.Command {
	return newGroup("secret", "Keep what jobs use and nobody may read", secretList(c), secretSet(c), secretRemove(c),
		secretRotate(c), secretKeygen(c))
}

func secretList(c *console) *cobra.Command {
	cmd := &cobra.Command{
		Use: "ls", Aliases: []string{"list"}, Short: "List the secrets; nothing shows their values", Args: nothing,
		Example: "  go-crontab secret ls",
	}

	r := newRemote(c, cmd)
	cmd.RunE = func(cmd *cobra.Command, _ []string) error {
		secrets, raw, err := list[view.Secret](cmd.Context(), r, secretsPath, nil, 0)
		if err != nil {
			return err
		}

		return r.list(raw, func(i int) string { return string(secrets[i].Name) }, func() error {
			if len(secrets) == 0 {
				c.notef("There are no secrets yet. To make one:  %s secret set NAME\n", program())
				return nil
			}

			t := &table{
				columns: []column{
					{head: "SECRET", shrink: true}, {head: "APP", shrink: true}, {head: "SET"},
					{head: "BY", shrink: true, drop: true}, {head: "KEY", drop: true}, {head: "KEY IS"},
				},
			}

			for _, s := range secrets {
				app := s.App
				if app == "" {
					app = "all"
				}
				colours := map[string]colour{"current": green, "old": yellow, "unknown": red}
				t.add(text(s.Name), text(app), text(relative(&s.Updated, time.Now())), text(s.By),
					text(s.Key), cell{plain(s.KeyState), colours[s.KeyState]})
			}

			return r.table(t)
		})
	}

	return cmd
}

func secretSet(c *console) *cobra.Command {
	var file, app string
	cmd := &cobra.Command{
		Use: "set NAME", Short: "Make a secret, or give it another value", Args: nameAlone,
		Long: `Make a secret, or give it another value. The value is read from a file or from standard input, at a terminal without
showing it; never from the command line, which others can see. Line breaks at its end are left out.

Jobs name it as {{secret.NAME}}, in the values of env, in stdin, and in the headers and the body of HTTP jobs; what
they write has *** in its place. Each app may have a secret of the same name, and there may be one of all apps: a job
uses its app's own, or else that.`,
		Example: "  go-crontab secret set pg\n  pwgen 32 1 | go-crontab secret set hook --app billing\n  go-crontab secret set tls-key --from-file key.pem",
	}

	r := newRemote(c, cmd)
	cmd.Flags().StringVarP(&file, "from-file", "f", "-", "file with the value; - is standard input")
	cmd.Flags().StringVarP(&app, "app", "a", "",
		"the app that it belongs to, whose jobs alone may use it (default all apps)")
	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		value, err := c.readSecret(cmd.Context(), args[0], file)
		if err != nil {
			return err
		}

		body := map[string]string{"value": value}
		if app != "" {
			body["app"] = app
		}

		s, raw, err := ask[view.Secret](cmd.Context(), r, http.MethodPut, secretPath(args[0]), nil, body)
		if err != nil {
			return err
		}

		r.warnOfApps(cmd.Context(), app)
		return r.object(c, raw, string(s.Name), func() error {
			c.printf("secret %s is set, for jobs of %s\n", plain(s.Name), ofApp(s.App))
			return nil
		})
	}

	return cmd
}

// ofApp describes the app of a secret.
func ofApp(app string) string {
	if app == "" {
		return "all apps"
	}
	return "the app " + plain(app)
}

// nameAlone rejects a value on the command line, without repeating it in the error.
func nameAlone(cmd *cobra.Command, args []string) error {
	if len(args) > 1 {
		return fmt.Errorf("%s: too much is given; the value is read from standard input or --from-file: all users of this machine can see a command line", cmd.CommandPath())
	}
	return wants(1, 1, "the NAME")(cmd, args)
}

// readSecret reads a value from a file, the terminal or standard input.
func (c *console) readSecret(ctx context.Context, name, file string) (string, error) {
	var (
		b   []byte
		err error
	)

	fd, ok := terminal(c.in)
	switch {
	case file != "-":
		var f *os.File
		if f, err = os.Open(file); err != nil {
			return "", usageError("--from-file: %w", err)
		}
		defer f.Close()
		b, err = io.ReadAll(io.LimitReader(f, job.MaxSecret+2))
	case ok:
		c.notef("value of %s (it is not shown): ", plain(name))
		b, err = readHidden(ctx, fd)
		c.notef("\n")
	default:
		b, err = io.ReadAll(io.LimitReader(c.in, job.MaxSecret+2))
	}

	if err != nil {
		return "", fmt.Errorf("read the value: %w", err)
	}

	value := strings.TrimRight(string(b), "\r\n")
	switch {
	case value == "":
		return "", usageError("the value is empty; give it with --from-file FILE, or on standard input")
	case len(value) > job.MaxSecret:
		return "", usageError("the value is longer than %d bytes, of which no more are taken", job.MaxSecret)
	case !utf8.ValidString(value): // JSON would change it
		return "", usageError("the value is no text (UTF-8); encode it, as base64 for instance")
	}

	return value, nil
}

// readHidden reads a line without echo. On every exit, including Ctrl-C, it turns the echo on
// again.
func readHidden(ctx context.Context, fd int) ([]byte, error) {
	ctx, stop := signal.NotifyContext(ctx, os.Interrupt, syscall.SIGTERM)
	defer stop()

	before, err := term.GetState(fd)
	if err != nil {
		return nil, err
	}

	type answer struct {
		line []byte
		err  error
	}

	typed := make(chan answer, 1)
	go func() {
		line, err := term.ReadPassword(fd)
		typed <- answer{line, err}
	}()

	select {
	case a := <-typed:
		return a.line, a.err
	case <-ctx.Done():
		return nil, errors.Join(context.Cause(ctx), term.Restore(fd, before))
	}
}

func secretRemove(c *console) *cobra.Command {
	var app string
	path := func(name string) string {
		if app == "" {
			return secretPath(name)
		}
		return secretPath(name) + "?" + url.Values{"app": {app}}.Encode()
	}

	example := "  go-crontab secret rm pg\n  go-crontab secret rm hook --app billing"
	cmd := removal{"secret", "NAME", "Delete secrets that no job uses", example, path, nil}.command(c)
	cmd.Flags().StringVarP(&app, "app", "a", "", "the app that they belong to (default those of all apps)")
	return cmd
}

func secretPath(name string) string { return secretsPath + "/" + url.PathEscape(name) }

func secretRotate(c *console) *cobra.Command {
	cmd := &cobra.Command{
		Use: "rotate", Short: "Seal all secrets with the first key of the node that is asked", Args: nothing,
		Long: `Seal all secrets with the first key of the node that is asked. Their values stay, and jobs run on meanwhile.

To change the key of a cluster:
  1. Print one with "secret keygen", add it to the key file of every node, below the old one, and restart the nodes.
  2. Put it first in these files, and restart the nodes again.
  3. Run this. Then "secret ls" shows no key that is old, and the old one can go from the files.`,
		Example: "  go-crontab secret rotate",
	}

	r := newRemote(c, cmd)
	cmd.RunE = func(cmd *cobra.Command, _ []string) error {
		v, raw, err := ask[view.Rotated](cmd.Context(), r, http.MethodPost, secretsPath+"/rotate", nil, map[string]any{})
		if err != nil {
			return err
		}

		err = r.object(c, raw, v.Key, func() error {
			c.printf("%d secrets were sealed with another key and are now with %s\n", v.Rotated, plain(v.Key))
			for _, f := range v.Failed {
				c.printf("secret %s of %s stays as it is: %s\n", plain(f.Name), ofApp(f.App), plain(f.Why))
			}
			return nil
		})
		if err == nil && len(v.Failed) > 0 {
			err = fmt.Errorf("%d secrets could not be opened", len(v.Failed))
		}

		return err
	}

	return cmd
}

func secretKeygen(c *console) *cobra.Command {
	return &cobra.Command{
		Use: "keygen", Short: "Print a new key, with which nodes seal secrets", Args: nothing,
		Long: `Print a new key, 32 random bytes in base64, for --secret-key-file or GOCRONTAB_SECRET_KEY of all nodes. Whoever has it
and can read the database has all secrets; without it they are lost. Keep a copy where the backups of the database are
not.`,
		Example: "  (umask 077; go-crontab secret keygen > secret.key)",
		RunE: func(*cobra.Command, []string) error {
			c.printf("%s\n", secret.NewKey())
			return nil
		},
	}
}

// Settings with the keys of a node.
const (
	secretKeyFlag = "secret-key-file"
	secretKeyEnv  = envPrefix + "SECRET_KEY"
)

// secretKeys reads the keys of a node from the file that the flag names, else from the variable,
// else from the file that a variable names. It returns nil without any.
func secretKeys(file string, log *slog.Logger) (*secret.Ring, error) {
	from := "--" + secretKeyFlag
	if file == "" {
		if text := os.Getenv(secretKeyEnv); text != "" {
			ring, err := secret.Parse(text)
			if err != nil {
				return nil, usageError("%s: %w", secretKeyEnv, err)
			}
			return ring, nil
		}
		from, file = envName(secretKeyFlag), os.Getenv(envName(secretKeyFlag))
	}

	if file == "" {
		return nil, nil
	}

	ring, open, err := secret.Load(file)
	if err != nil {
		return nil, usageError("%s: %w", from, err)
	}
	if open {
		log.Warn("others than its owner may read the file with the keys of secrets", "file", file)
	}

	return ring, nil
}
