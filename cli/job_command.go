package cli

import (
	"encoding/json"
	"fmt"
	"maps"
	"os"
	"slices"
	"strings"

	"go-crontab/job"

	"github.com/spf13/cobra"
)

// commandFlags are the flags of `job add` whose values need conversion.
type commandFlags struct {
	env, limits []string
	stdinFile   string
}

func (f *commandFlags) flags(cmd *cobra.Command) {
	flags := cmd.Flags()
	flags.String("user", "",
		"run the command as this user or user:group, by name or id (default set by the node)")
	flags.String("dir", "", "working folder of the command, an absolute path (default the user's home)")
	flags.StringArrayVar(&f.env, "env", nil,
		"environment variable, NAME=value, visible to everyone who may see the job; may be repeated")
	flags.String("stdin", "", "text for the command's standard input (default none)")
	flags.StringVar(&f.stdinFile, "stdin-file", "", "file on this machine with the text for --stdin")
	flags.IntSlice("success-codes", nil, "exit codes that count as success (default 0)")
	flags.IntSlice("skip-exit-codes", nil, "exit codes that mean that there was nothing to do: the run ends skipped")
	flags.String("grace", "", "time from SIGTERM to SIGKILL when the command is killed (default 5s)")
	flags.StringSliceVar(&f.limits, "limit", nil,
		`limit, NAME=value: memory, cpu, pids for the whole command; open_files, cpu_seconds, file_size,
address_space, core for each process; may be repeated, or separated by commas`)
}

// complete converts the remaining flags.
func (f *commandFlags) complete(body map[string]any) error {
	env, limits := map[string]string{}, map[string]any{}
	for _, pair := range f.env {
		name, value, ok := strings.Cut(pair, "=")
		if !ok {
			return usageError("--env %q: want NAME=value", pair)
		}
		env[name] = value
		body["env"] = env
	}

	for _, pair := range f.limits {
		name, value, ok := strings.Cut(pair, "=")
		if !ok {
			return usageError("--limit %q: want NAME=value, such as memory=512MiB", pair)
		}
		limits[name] = numberOrText(value)
		body["limits"] = limits
	}

	if f.stdinFile == "" {
		return nil
	}
	if body["stdin"] != nil {
		return usageError("--stdin and --stdin-file cannot be combined")
	}

	text, err := os.ReadFile(f.stdinFile)
	if err != nil {
		return usageError("--stdin-file: %w", err)
	}

	if len(text) > 0 {
		body["stdin"] = string(text)
	}
	return nil
}

// numberOrText turns the text of a number into a number. The server knows whether a limit takes a
// number or a text.
func numberOrText(s string) any {
	var n json.Number
	if json.Unmarshal([]byte(s), &n) == nil && !strings.HasPrefix(s, `"`) {
		return n
	}
	return s
}

// exitCodes lists exit codes for people.
func exitCodes(codes []int) string {
	return "exit codes " + strings.Trim(strings.ReplaceAll(fmt.Sprint(codes), " ", ", "), "[]")
}

// commandCard adds the non-default options.
func commandCard(d *card, o *job.CommandOptions) {
	d.add("user", o.User)
	d.add("dir", o.Dir)
	for i, name := range slices.Sorted(maps.Keys(o.Env)) {
		d.add([]string{"env", ""}[min(i, 1)], name+"="+o.Env[name])
	}

	if o.Stdin != "" {
		d.add("stdin", fmt.Sprintf("%d bytes", len(o.Stdin)))
	}
	if len(o.SuccessCodes) > 0 {
		d.add("success", exitCodes(o.SuccessCodes))
	}
	if len(o.SkipCodes) > 0 {
		d.add("nothing to do", exitCodes(o.SkipCodes))
	}

	d.add("grace", lengthOf(o.Grace))

	byName := map[string]any{}
	if text, err := json.Marshal(o.Limits); err == nil {
		_ = json.Unmarshal(text, &byName)
	}
	var limits []string
	for _, name := range slices.Sorted(maps.Keys(byName)) {
		limits = append(limits, fmt.Sprintf("%s=%v", name, byName[name]))
	}

	d.add("limits", strings.Join(limits, ", "))
}
