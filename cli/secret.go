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
	return newGroup("secret",
		"Manage secrets for jobs, whose values nobody can read", secretList(c), secretSet(c), secretRemove(c),
		secretRotate(c), secretKeygen(c))
}

func secretList(c *console) *cobra.Command {
	cmd := &cobra.Command{
		Use: "ls", Aliases: []string{"list"}, Short: "List the secrets, without their values", Args: nothing,
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
				c.notef("There are no secrets yet. To create one:  %s secret set NAME\n", program())
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
		Use: "set NAME", Short: "Create a secret, or change its value", Args: nameAlone,
		Long: `Create a secret, or change its value. The value is read from a file or from standard input; a
terminal does not show it. It is never read from the command line, which other users can see. Line
breaks at the end are removed.

Jobs refer to it as {{secret.NAME}} in the values of env, in stdin, and in the headers and the body
of HTTP jobs. In their output it is replaced by ***. A secret belongs to one app or to all apps. A
job uses the secret of its own app, if there is one of that name, else the secret for all apps.`,
		Example: "  go-crontab secret set pg\n  pwgen 32 1 | go-crontab secret set hook --app billing\n  go-crontab secret set tls-key --from-file key.pem",
	}

	r := newRemote(c, cmd)
	cmd.Flags().StringVarP(&file, "from-file", "f", "-", "file with the value; - is standard input")
	cmd.Flags().StringVarP(&app, "app", "a", "",
		"only jobs of this app may use the secret (default jobs of all apps)")
	allowEmpty(cmd.Flags(), "app")
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
			c.printf("set secret %s for jobs of %s\n", plain(s.Name), ofApp(s.App))
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
	return "app " + plain(app)
}

// nameAlone rejects a value on the command line, without repeating it in the error.
func nameAlone(cmd *cobra.Command, args []string) error {
	if len(args) > 1 {
		return fmt.Errorf("%s: unexpected argument; give the value on standard input or with --from-file, "+
			"because all users of this machine can see command lines", cmd.CommandPath())
	}
	return wants(1, 1, "NAME")(cmd, args)
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
		return "", usageError("the value is longer than %d bytes, which is the limit", job.MaxSecret)
	case !utf8.ValidString(value): // JSON would change it
		return "", usageError("the value is not UTF-8 text; encode it, for example as base64")
	}

	return value, nil
}

// readHidden reads a line without echo. It always turns the echo on again, even after Ctrl-C.
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
	cmd := removal{"secret", "NAME", "Delete secrets that no job uses", example, path, "", ""}.command(c)
	cmd.Flags().StringVarP(&app, "app", "a", "", "app of the secrets (default the secrets for all apps)")
	allowEmpty(cmd.Flags(), "app")
	return cmd
}

func secretPath(name string) string { return secretsPath + "/" + url.PathEscape(name) }

func secretRotate(c *console) *cobra.Command {
	cmd := &cobra.Command{
		Use: "rotate", Short: "Encrypt all secrets again, with a new key", Args: nothing,
		Long: `Encrypt all secrets again, with the first key of the node that --server names. Values do not change,
and jobs continue to run.

To change the key of a cluster:
  1. Create a key with "secret keygen", add it below the old key in the key file of each node, and restart the nodes.
  2. Move the new key to the top of these files, and restart the nodes again.
  3. Run this command. When "secret ls" shows no old keys, remove the old key from the files.`,
		Example: "  go-crontab secret rotate",
	}

	r := newRemote(c, cmd)
	cmd.RunE = func(cmd *cobra.Command, _ []string) error {
		v, raw, err := ask[view.Rotated](cmd.Context(), r, http.MethodPost, secretsPath+"/rotate", nil, map[string]any{})
		if err != nil {
			return err
		}

		err = r.object(c, raw, v.Key, func() error {
			c.printf("encrypted %s again, with key %s\n", counted(v.Rotated, "secret"), plain(v.Key))
			for _, f := range v.Failed {
				c.printf("secret %s of %s is unchanged: %s\n", plain(f.Name), ofApp(f.App), plain(f.Why))
			}
			return nil
		})
		if err == nil && len(v.Failed) > 0 {
			err = fmt.Errorf("%s could not be decrypted", counted(len(v.Failed), "secret"))
		}

		return err
	}

	return cmd
}

func secretKeygen(c *console) *cobra.Command {
	return &cobra.Command{
		Use: "keygen", Short: "Print a new key for the encryption of secrets", Args: nothing,
		Long: `Print a new key for the encryption of secrets: 32 random bytes in base64, for --secret-key-file or
GOCRONTAB_SECRET_KEY of all nodes. Anyone with the key and access to the database can read all
secrets. Without the key they are lost. Keep a copy, but not with the backups of the database.`,
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

// secretKeys reads the keys of a node. The flag's file wins over the variable, and the variable
// over the file that a variable names. If none is set, it returns nil.
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
		log.Warn("the file with the secret keys is readable by other users than its owner", "file", file)
	}

	return ring, nil
}
