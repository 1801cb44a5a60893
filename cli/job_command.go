package cli

import (
	"encoding/json"
	"fmt"
	"maps"
	"os"
	"slices"
	"strings"

	"github.com/spf13/cobra"
)

// commandOptions are the options of a command in the API.
type commandOptions struct {
	User         string            `json:"user,omitempty"`
	Dir          string            `json:"dir,omitempty"`
	Env          map[string]string `json:"env,omitempty"`
	Stdin        string            `json:"stdin,omitempty"`
	SuccessCodes []int             `json:"success_codes,omitempty"`
	Grace        string            `json:"grace,omitempty"`
	Limits       map[string]any    `json:"limits,omitempty"`
}

// commandFlags are the flags of `job add` that need conversion.
type commandFlags struct {
	env, limits []string
	stdinFile   string
}

func (f *commandFlags) flags(cmd *cobra.Command, o *commandOptions) {
	flags := cmd.Flags()
	flags.StringVar(&o.User, "user", "",
		"run the command as this user or user:group, by name or id (default set by the node)")
	flags.StringVar(&o.Dir, "dir", "", "working folder of the command, an absolute path (default the user's home)")
	flags.StringArrayVar(&f.env, "env", nil,
		"environment variable, NAME=value, visible to everyone who may see the job; may be repeated")
	flags.StringVar(&o.Stdin, "stdin", "", "text for the command's standard input (default none)")
	flags.StringVar(&f.stdinFile, "stdin-file", "", "file on this machine with the text for --stdin")
	flags.IntSliceVar(&o.SuccessCodes, "success-codes", nil, "exit codes that count as success (default 0)")
	flags.StringVar(&o.Grace, "grace", "", "time from SIGTERM to SIGKILL when the command is killed (default 5s)")
	flags.StringSliceVar(&f.limits, "limit", nil,
		`limit, NAME=value: memory, cpu, pids for the whole command; open_files, cpu_seconds, file_size,
address_space, core for each process; may be repeated, or separated by commas`)
}

// complete converts the remaining flags.
func (f *commandFlags) complete(o *commandOptions) error {
	for _, pair := range f.env {
		name, value, ok := strings.Cut(pair, "=")
		if !ok {
			return usageError("--env %q: want NAME=value", pair)
		}
		if o.Env == nil {
			o.Env = map[string]string{}
		}
		o.Env[name] = value
	}

	for _, pair := range f.limits {
		name, value, ok := strings.Cut(pair, "=")
		if !ok {
			return usageError("--limit %q: want NAME=value, such as memory=512MiB", pair)
		}
		if o.Limits == nil {
			o.Limits = map[string]any{}
		}
		o.Limits[name] = numberOrText(value)
	}

	if f.stdinFile == "" {
		return nil
	}
	if o.Stdin != "" {
		return usageError("--stdin and --stdin-file cannot be combined")
	}

	text, err := os.ReadFile(f.stdinFile)
	if err != nil {
		return usageError("--stdin-file: %w", err)
	}

	o.Stdin = string(text)
	return nil
}

// numberOrText keeps numbers as numbers. The server knows which limit takes which type.
func numberOrText(s string) any {
	var n json.Number
	if json.Unmarshal([]byte(s), &n) == nil && !strings.HasPrefix(s, `"`) {
		return n
	}
	return s
}

// commandCard adds the non-default options.
func commandCard(d *card, o *commandOptions) {
	d.add("user", o.User)
	d.add("dir", o.Dir)
	for i, name := range slices.Sorted(maps.Keys(o.Env)) {
		d.add([]string{"env", ""}[min(i, 1)], name+"="+o.Env[name])
	}

	if o.Stdin != "" {
		d.add("stdin", fmt.Sprintf("%d bytes", len(o.Stdin)))
	}
	if len(o.SuccessCodes) > 0 {
		d.add("success", "exit codes "+strings.Trim(strings.ReplaceAll(fmt.Sprint(o.SuccessCodes), " ", ", "), "[]"))
	}

	d.add("grace", o.Grace)
	var limits []string
	for _, name := range slices.Sorted(maps.Keys(o.Limits)) {
		limits = append(limits, fmt.Sprintf("%s=%v", name, o.Limits[name]))
	}

	d.add("limits", strings.Join(limits, ", "))
}
