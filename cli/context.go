package cli

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"go-crontab/internal/auth"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
	"go.yaml.in/yaml/v3"
)

// contexts are named clusters. They are stored in a file in the user's settings folder that only
// the user can read. Tokens are stored in separate files.
type contexts struct {
	Current  string                    `yaml:"current,omitempty"`
	Contexts map[string]clusterContext `yaml:"contexts,omitempty"`

	file string
}

// clusterContext is the address of a cluster: one or several nodes with commas between them. It
// also names two files: one with the token, and one with the certificates of trusted authorities.
type clusterContext struct {
	Server    string `yaml:"server"`
	TokenFile string `yaml:"token_file,omitempty"`
	CACert    string `yaml:"ca_cert,omitempty"`
}

func contextsFile() (string, error) {
	return appDir("XDG_CONFIG_HOME", ".config", "", "contexts.yaml")
}

// readContexts reads the file. It returns no contexts if the file or its folder does not exist.
func readContexts() (*contexts, error) {
	c := &contexts{Contexts: map[string]clusterContext{}}
	file, err := contextsFile()
	if err != nil {
		return c, nil
	}

	c.file = file
	text, err := os.ReadFile(file)
	if errors.Is(err, fs.ErrNotExist) {
		return c, nil
	}
	if err != nil {
		return nil, err
	}

	d := yaml.NewDecoder(bytes.NewReader(text))
	d.KnownFields(true)
	if err := d.Decode(c); err != nil && !errors.Is(err, io.EOF) {
		return nil, usageError("%s: %w", file, err)
	}
	if c.Contexts == nil {
		c.Contexts = map[string]clusterContext{}
	}

	return c, nil
}

// write replaces the file atomically.
func (c *contexts) write() error {
	if c.file == "" {
		return usageError("no folder for settings: set HOME or XDG_CONFIG_HOME")
	}

	var text bytes.Buffer
	e := yaml.NewEncoder(&text)
	e.SetIndent(2)
	if err := errors.Join(e.Encode(c), e.Close()); err != nil {
		return err
	}
	if err := os.MkdirAll(filepath.Dir(c.file), 0o700); err != nil {
		return err
	}

	return writeSecret(c.file, strings.TrimSuffix(text.String(), "\n"))
}

func (c *contexts) find(name string) (clusterContext, error) {
	ctx, there := c.Contexts[name]
	if !there {
		return ctx, &exitError{
			code: exitNotFound, err: notFound("context", name),
			hint: "to list contexts:  " + program() + " context ls",
		}
	}
	return ctx, nil
}

// fromContext sets the server and the token from a context, unless they are given in another way. A
// flag wins over a variable. --context wins over GOCRONTAB_SERVER and GOCRONTAB_TOKEN. These
// variables win over GOCRONTAB_CONTEXT and the current context. The token of a context is sent only
// to the server of that context. With --context, a variable sets no token: it may belong to another
// cluster.
func fromContext(flags *pflag.FlagSet) error {
	asked := flags.Lookup("context")
	if asked == nil {
		return nil
	}

	name := asked.Value.String()
	switch {
	case asked.Changed && flags.Changed("server"):
		return usageError("--context and --server cannot be combined: a context already has a server")
	case asked.Changed:
	case flags.Changed("server"), os.Getenv(envName("server")) != "":
		return nil
	default:
		name = os.Getenv(envName("context"))
	}

	all, err := readContexts()
	if err != nil {
		return err
	}

	if name == "" {
		name = all.Current
	}
	if name == "" {
		return nil
	}

	ctx, err := all.find(name)
	if err != nil {
		return err
	}

	if err := flags.Set("server", ctx.Server); err != nil {
		return err
	}

	if ctx.CACert != "" && !flags.Changed("ca-cert") && (asked.Changed || os.Getenv(envName("ca-cert")) == "") {
		if err := flags.Set("ca-cert", ctx.CACert); err != nil {
			return err
		}
	}

	told := !asked.Changed && (os.Getenv(envName("token")) != "" || os.Getenv(envName("token")+"_FILE") != "")
	if ctx.TokenFile == "" || flags.Changed("token") || told {
		return nil
	}

	text, err := os.ReadFile(ctx.TokenFile)
	if err != nil {
		return usageError("the token of context %s: %w", name, err)
	}

	return flags.Set("token", strings.TrimSpace(string(text)))
}

func contextCommand(c *console) *cobra.Command {
	return newGroup("context",
		"Manage names for the clusters that you use", contextList(c), contextAdd(c), contextUse(c),
		contextRemove(c))
}

// contextItem is a context in -o json.
type contextItem struct {
	Name      string `json:"name"`
	Server    string `json:"server"`
	TokenFile string `json:"token_file,omitempty"`
	CACert    string `json:"ca_cert,omitempty"`
	Current   bool   `json:"current"`
}

func contextList(c *console) *cobra.Command {
	var out output
	cmd := &cobra.Command{
		Use: "ls", Aliases: []string{"list"}, Short: "List the contexts; * marks the one in use", Args: nothing,
		Example: "  go-crontab context ls",
		RunE: func(*cobra.Command, []string) error {
			all, err := readContexts()
			if err != nil {
				return err
			}

			items := []contextItem{}
			names := slices.Sorted(maps.Keys(all.Contexts))
			for _, name := range names {
				ctx := all.Contexts[name]
				items = append(items, contextItem{name, ctx.Server, ctx.TokenFile, ctx.CACert, name == all.Current})
			}

			if out.format == "name" {
				for _, name := range names {
					c.printf("%s\n", name)
				}
				return nil
			}

			return out.object(c, map[string]any{"items": items}, "", func() error {
				if len(items) == 0 {
					c.notef("There are no contexts. To create one:  %s context add NAME --server http://HOST:8610\n",
						program())
					return nil
				}

				t := &table{
					columns: []column{
						{head: ""}, {head: "CONTEXT", shrink: true}, {head: "SERVER", shrink: true},
						{head: "TOKEN", shrink: true, drop: true},
					},
				}

				for _, i := range items {
					t.add(cell{map[bool]string{true: "*"}[i.Current], green}, text(i.Name), text(i.Server),
						text(i.TokenFile))
				}
				return t.print(c.out, terminalWidth(c.out), colourful(c.out))
			})
		},
	}

	out.flags(cmd)
	return cmd
}

func contextAdd(c *console) *cobra.Command {
	var server, tokenFile, caCert string
	var use, tokenStdin bool
	cmd := &cobra.Command{
		Use: "add NAME --server URL", Short: "Add a context, or change its server, token or authority",
		Args: wants(1, 1, "NAME"),
		Long: `Add a context, which is a name for a cluster, or change its server, token or authority. The first
context that you add is used from then on. With several servers, commands use one that answers.

Contexts are stored in ~/.config/go-crontab/contexts.yaml, and each token in a separate file. Only
you can read them.`,
		Example: `  go-crontab context add prod --server https://cron.example.com:8610 --token-file ~/.prod-token
  go-crontab context add prod --server https://web-1:8610,https://web-2:8610 --ca-cert ca.pem
  go-crontab token create me --role operator | go-crontab context add prod --server https://cron.example.com:8610 --token-stdin`,
		ValidArgsFunction: cobra.NoFileCompletions,
		RunE: func(cmd *cobra.Command, args []string) error {
			name := args[0]
			all, err := readContexts()
			if err != nil {
				return err
			}

			// An existing context keeps the settings that are not given.
			ctx := all.Contexts[name]
			if cmd.Flags().Changed("ca-cert") {
				ctx.CACert = ""
			}
			if cmd.Flags().Changed("token-file") {
				ctx.TokenFile = ""
			}
			if server != "" {
				ctx.Server = normalServers(server)
			}

			switch {
			case name == "" || strings.ContainsAny(name, "/\\ \t\n") || strings.HasPrefix(name, ".") ||
				strings.HasPrefix(name, "-"):
				return usageError("%q is not a valid name: use no white space or slashes, and do not begin with . or -", name)
			case ctx.Server == "":
				return usageError("--server is missing: give a node's URL, such as --server %s", defaultServer)
			case tokenFile != "" && tokenStdin:
				return usageError("--token-file and --token-stdin cannot be combined")
			}
			if err := checkServers(ctx.Server); err != nil {
				return err
			}

			if caCert != "" {
				if _, err := readAuthorities(caCert); err != nil {
					return err
				}
				if ctx.CACert, err = filepath.Abs(caCert); err != nil {
					return err
				}
			}

			// Take the token from a file, or from standard input.
			if tokenFile != "" {
				if ctx.TokenFile, err = filepath.Abs(tokenFile); err != nil {
					return err
				}
				if _, err := os.Stat(ctx.TokenFile); err != nil {
					return usageError("--token-file: %w", err)
				}
			}
			if tokenStdin {
				if ctx.TokenFile, err = keepToken(all, name, c.in); err != nil {
					return err
				}
			}

			// Save. The first context becomes the current one.
			_, was := all.Contexts[name]
			all.Contexts[name] = ctx
			if use || all.Current == "" {
				all.Current = name
			}
			if err := all.write(); err != nil {
				return err
			}

			c.printf("%s %s: %s\n", map[bool]string{true: "changed", false: "added"}[was], plain(name),
				plain(ctx.Server))
			if all.Current != name {
				c.notef("to use it:  %s context use %s\n", program(), quote(name))
			}

			return nil
		},
	}

	cmd.Flags().StringVar(&server, "server", "",
		"URL of a node, such as https://cron.example.com:8610, or of several, separated by commas")
	cmd.Flags().StringVar(&caCert, "ca-cert", "",
		`PEM file with the authorities to trust instead of the system's, "" for the system's again`)
	cmd.Flags().StringVar(&tokenFile, "token-file", "", `file with the token, "" for none`)
	allowEmpty(cmd.Flags(), "ca-cert", "token-file")
	cmd.Flags().BoolVar(&tokenStdin, "token-stdin", false,
		"read the token from standard input and store it in a file that only you can read")
	cmd.Flags().BoolVar(&use, "use", false, "use this context from now on")

	return cmd
}

// keptToken returns the file that stores a token given on standard input.
func keptToken(all *contexts, name string) string {
	return filepath.Join(filepath.Dir(all.file), "tokens", name)
}

func keepToken(all *contexts, name string, in io.Reader) (string, error) {
	text, err := io.ReadAll(io.LimitReader(in, 4096))
	token := strings.TrimSpace(string(text))
	if err != nil || token == "" {
		return "", usageError("--token-stdin: standard input is empty; want a token")
	}
	if !auth.LooksLikeToken(token) { // The error does not repeat the text, which may contain a token.
		return "", usageError("--token-stdin: standard input is not a token; "+
			"want only the token, as %s token create prints it", program())
	}

	file := keptToken(all, name)
	if err := os.MkdirAll(filepath.Dir(file), 0o700); err != nil {
		return "", err
	}
	return file, writeSecret(file, token)
}

func contextUse(c *console) *cobra.Command {
	return &cobra.Command{
		Use: "use NAME", Short: "Use a context from now on", Args: wants(1, 1, "NAME"),
		Example: "  go-crontab context use prod", ValidArgsFunction: completeContexts,
		RunE: func(_ *cobra.Command, args []string) error {
			all, err := readContexts()
			if err != nil {
				return err
			}

			ctx, err := all.find(args[0])
			if err != nil {
				return err
			}

			all.Current = args[0]
			if err := all.write(); err != nil {
				return err
			}

			c.printf("using %s: %s\n", plain(args[0]), plain(ctx.Server))
			for _, name := range []string{
				envName("server"), envName("context"), envName("token"), envName("token") + "_FILE", envName("ca-cert"),
			} {
				if os.Getenv(name) != "" {
					c.notef("but the variable %s is set and takes precedence\n", name)
				}
			}

			return nil
		},
	}
}

func contextRemove(c *console) *cobra.Command {
	return &cobra.Command{
		Use: "rm NAME…", Short: "Remove contexts and their stored tokens",
		Args: wants(1, -1, "NAME"), Example: "  go-crontab context rm old", ValidArgsFunction: completeContexts,
		RunE: func(_ *cobra.Command, args []string) error {
			all, err := readContexts()
			if err != nil {
				return err
			}

			for _, name := range args {
				ctx, err := all.find(name)
				if err != nil {
					return err
				}

				delete(all.Contexts, name)
				if all.Current == name {
					all.Current = ""
				}
				if err := all.write(); err != nil {
					return err
				}
				if file := keptToken(all, name); ctx.TokenFile == file {
					if err := os.Remove(file); err != nil && !errors.Is(err, fs.ErrNotExist) {
						return fmt.Errorf("the token of %s: %w", name, err)
					}
				}

				c.printf("removed %s\n", plain(name))
			}

			return nil
		},
	}
}

func completeContexts(_ *cobra.Command, _ []string, typed string) ([]cobra.Completion, cobra.ShellCompDirective) {
	all, err := readContexts()
	if err != nil {
		return nil, cobra.ShellCompDirectiveError
	}

	var out []cobra.Completion
	for _, name := range slices.Sorted(maps.Keys(all.Contexts)) {
		if strings.HasPrefix(name, typed) {
			out = append(out, cobra.CompletionWithDesc(name, all.Contexts[name].Server))
		}
	}
	return out, cobra.ShellCompDirectiveNoFileComp
}
