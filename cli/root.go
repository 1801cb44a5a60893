package cli

import (
	"fmt"
	"io"
	"slices"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"go-crontab/api"
	"go-crontab/job"
)

// Main runs a command line and returns its exit code.
func Main(args []string, in io.Reader, out, errs io.Writer) int {
	if code, done := beInit(args, in, out, errs); done {
		return code
	}

	c := &console{in: in, out: out, err: errs}
	defer c.flush()

	running := false
	root := newRoot(c)
	root.PersistentPreRunE = func(cmd *cobra.Command, _ []string) error {
		err := noEmptyFlag(cmd)
		if _, wrong := job.LoadZone(c.timezone); err == nil && wrong != nil {
			err = usageError("--timezone: %w", wrong)
		}
		running = err == nil
		return err
	}

	root.SetArgs(args)
	root.SetIn(in)
	root.SetOut(out)
	root.SetErr(errs)
	strictHelp(root)
	cmd, err := root.ExecuteC()
	if err == nil {
		err = c.lost
	}
	if err == nil {
		return exitOK
	}

	if !running { // cobra rejected the command line
		err = &exitError{code: exitUsage, err: flagProblem(cmd, err), hint: hintOf(err)}
		if near := nearest(root, args); cmd == root && near != "" {
			err = withHint(err, "%s", near)
		}
		if !cmd.HasSubCommands() {
			err = withHint(err, "usage:  %s\nsee %s --help", cmd.UseLine(), cmd.CommandPath())
		}
	}
	if codeOf(err) == exitUsage {
		err = withHint(err, "see %s --help", cmd.CommandPath())
	}

	c.complain(err)
	return codeOf(err)
}

// Root returns the command tree, for manual pages and completions.
func Root() *cobra.Command {
	return newRoot(&console{in: strings.NewReader(""), out: io.Discard, err: io.Discard})
}

func newRoot(c *console) *cobra.Command {
	root := &cobra.Command{
		Use:   "go-crontab",
		Short: "A cron cluster that needs nothing but MySQL",
		Long: `A cron cluster that needs nothing but MySQL: identical nodes, no leader, one binary.

Try it without any setup:   go-crontab dev
Run it for real:            go-crontab migrate --bootstrap, then go-crontab serve on each machine`,
		SilenceErrors: true,
		SilenceUsage:  true,
		// nearest suggests commands instead, as for groups.
		DisableSuggestions: true,
		Version:            readVersion().Version,
	}

	root.SetVersionTemplate("go-crontab {{.Version}}\n")
	root.AddGroup(&cobra.Group{ID: "cluster", Title: "Run a cluster:"}, &cobra.Group{ID: "jobs",
		Title: "Use a cluster:"},
		&cobra.Group{ID: "files", Title: "Jobs as files, and schedules:"})

	for _, cmd := range append(nodeCommands(c), migrateCommand(c), doctorCommand(c)) {
		cmd.GroupID = "cluster"
		root.AddCommand(cmd)
	}

	for _, cmd := range []*cobra.Command{
		statusCommand(c), jobCommand(c), runCommand(c), upcomingCommand(c), backfillCommand(c), groupCommand(c), calendarCommand(c),
		nodeCommand(c), handlerCommand(c), clusterCommand(c), appCommand(c), auditCommand(c), eventsCommand(c),
		alertCommand(c), tokenCommand(c), loginCommand(c), secretCommand(c), retentionCommand(c),
	} {
		cmd.GroupID = "jobs"
		cmd.PersistentFlags().StringVarP(&c.timezone, "timezone", "z", "",
			"time zone to print times in, and to read times without an offset in (default this machine's)")
		_ = cmd.RegisterFlagCompletionFunc("timezone", completeZones)
		root.AddCommand(cmd)
	}

	for _, cmd := range fileCommands(c) {
		cmd.GroupID = "files"
		root.AddCommand(cmd)
	}

	root.AddCommand(versionCommand(c))
	root.AddCommand(hiddenCommands(c)...)
	root.AddCommand(topics()...)
	completeAll(c, root)

	return root
}

// noEmptyFlag refuses a flag with an empty value, which usually comes from an unset variable. Such
// a flag would act like a missing flag: a filter would select everything, and a setting would get
// its default.
func noEmptyFlag(cmd *cobra.Command) (err error) {
	cmd.Flags().Visit(func(f *pflag.Flag) {
		_, allowed := f.Annotations[emptyAllowed]
		if !allowed && isEmpty(f.Value) {
			err = fmt.Errorf("--%s is empty: give a value, or leave the flag out", f.Name)
		}
	})
	return err
}

func isEmpty(v pflag.Value) bool {
	if list, is := v.(pflag.SliceValue); is {
		return strings.Join(list.GetSlice(), "") == ""
	}
	return v.Type() == "string" && v.String() == ""
}

// emptyAllowed is the annotation of flags whose value may be empty.
const emptyAllowed = "empty-allowed"

func allowEmpty(flags *pflag.FlagSet, names ...string) {
	for _, name := range names {
		_ = flags.SetAnnotation(name, emptyAllowed, nil) // fails only for an unknown flag
	}
}

// strictHelp makes help and completion, which are cobra's own commands, refuse unknown arguments.
func strictHelp(root *cobra.Command) {
	root.InitDefaultHelpCmd()
	root.InitDefaultCompletionCmd()
	for _, cmd := range root.Commands() {
		switch cmd.Name() {
		case "help":
			cmd.Args = func(_ *cobra.Command, args []string) error {
				found, left, err := root.Find(args)
				if err == nil && len(left) > 0 {
					err = wants(0, 0, "a command or a topic")(found, left)
				}
				return err
			}
		case "completion":
			cmd.RunE = func(cmd *cobra.Command, _ []string) error { return cmd.Help() }
		}
	}
}

// newGroup returns a command that has only subcommands. A mistyped subcommand is an error. Cobra
// would treat it as a request for help.
func newGroup(use, short string, commands ...*cobra.Command) *cobra.Command {
	group := &cobra.Command{Use: use, Short: short, RunE: func(cmd *cobra.Command, args []string) error {
		if len(args) == 0 {
			return listOf(cmd)
		}
		err := usageError("unknown command %q for %q", args[0], cmd.CommandPath())
		if near := nearest(cmd, args); near != "" {
			err = withHint(err, "%s", near)
		}
		return err
	}}

	// A mistyped subcommand may come with flags of the intended one. Report the subcommand, not the
	// flags.
	group.SetFlagErrorFunc(func(cmd *cobra.Command, err error) error {
		if args := cmd.Flags().Args(); cmd == group && len(args) > 0 {
			return cmd.RunE(cmd, args)
		}
		return err
	})

	for _, cmd := range commands {
		cmd.SuggestFor = append(cmd.SuggestFor, namesElsewhere[cmd.Name()]...)
	}

	group.AddCommand(commands...)
	return group
}

// listOf answers a group without a subcommand. It runs the subcommand ls if there is one, and
// otherwise prints the help.
func listOf(group *cobra.Command) error {
	i := slices.IndexFunc(group.Commands(), func(sub *cobra.Command) bool { return sub.Name() == "ls" })
	if i < 0 {
		return group.Help()
	}

	ls := group.Commands()[i]
	ls.SetContext(group.Context())
	if ls.PreRunE != nil {
		if err := ls.PreRunE(ls, nil); err != nil {
			return err
		}
	}
	if err := ls.RunE(ls, nil); err != nil {
		return err
	}

	group.PrintErrf("to see its commands:  %s --help\n", group.CommandPath())
	return nil
}

// namesElsewhere lists the names that other programs use for a command.
var namesElsewhere = map[string][]string{
	"rm":      {"delete", "remove", "del"},
	"show":    {"get", "describe", "info", "status"},
	"add":     {"create", "new"},
	"create":  {"add", "new"},
	"set":     {"add", "create", "new"},
	"edit":    {"update", "change"},
	"run":     {"start", "trigger"},
	"kill":    {"stop", "cancel"},
	"logs":    {"output", "log", "tail"},
	"resume":  {"unpause", "enable"},
	"pause":   {"disable", "suspend"},
	"rerun":   {"retry"},
	"history": {"runs"},
	"revoke":  {"rm", "delete", "remove"},
}

// nearest suggests the commands that the user probably meant. It returns "" if none is near.
func nearest(cmd *cobra.Command, args []string) string {
	if len(args) == 0 {
		return ""
	}

	var near []string
	for _, sub := range cmd.Commands() {
		if slices.Contains(sub.SuggestFor, args[0]) {
			near = append(near, sub.Name())
		}
	}

	if len(near) == 0 {
		var names []string
		for _, sub := range cmd.Commands() {
			if sub.IsAvailableCommand() {
				names = append(names, sub.Name())
			}
		}
		if name := api.Nearest(args[0], names); name != "" {
			near = []string{name}
		}
	}
	if len(near) == 0 {
		return ""
	}

	return fmt.Sprintf("did you mean %s %s?", cmd.CommandPath(), strings.Join(near, " or "))
}

// wants checks the number of arguments. what describes them in errors.
func wants(least, most int, what string) cobra.PositionalArgs {
	return func(cmd *cobra.Command, args []string) error {
		switch {
		case len(args) < least:
			return fmt.Errorf("%s: an argument is missing; want %s", cmd.CommandPath(), what)
		case most >= 0 && len(args) > most:
			err := fmt.Errorf("%s: unexpected argument %q; want %s", cmd.CommandPath(), args[most], what)
			if near := nearest(cmd, args[most:]); near != "" {
				err = withHint(err, "%s", near)
			}
			return err
		case slices.Contains(args, ""): // from an unset variable; an empty name could mean all objects
			return fmt.Errorf("%s: an argument is empty; want %s", cmd.CommandPath(), what)
		}
		return nil
	}
}

// nothing rejects all arguments.
func nothing(cmd *cobra.Command, args []string) error { return wants(0, 0, "no arguments")(cmd, args) }
