package cli

import (
	"fmt"
	"slices"
	"strings"

	"github.com/spf13/cobra"
)

// columns formats names in three columns, for help texts.
func columns(names []string) string {
	var text strings.Builder
	for line := range slices.Chunk(names, 3) {
		row := ""
		for _, name := range line {
			row += fmt.Sprintf("  %-34s", name)
		}
		text.WriteString(strings.TrimRight(row, " ") + "\n")
	}
	return strings.TrimRight(text.String(), "\n")
}

// topics are the help topics besides commands.
func topics() []*cobra.Command {
	return []*cobra.Command{
		{
			Use: "exit-codes", Short: "What the exit codes mean",
			Long: `What the exit codes mean:

  0  done. Also of a dry run that would change something: everything could be taken
  1  failed: the server or MySQL is out of reach, a run that was waited for did not succeed, or somebody said no
  2  usage: the command line, a GOCRONTAB_ variable, a file that is not there, or the DSN makes no sense
  3  not found: no such job, run, group, calendar, node or context
  4  refused: a definition or a file is not valid, the name is taken, somebody else has changed it meanwhile, who asks
     may not do that, or a node may not join its cluster

What was asked for goes to standard output, everything else to standard error: notes, warnings, and why it failed, with
what to try next. A program that reads -o json needs to look at the exit code and at standard output only.`,
		},
		{
			Use: "environment", Short: "Which variables are looked at",
			Long: `Which variables are looked at:

  GOCRONTAB_SERVER       a node's API, such as http://web-1:8610 (default http://127.0.0.1:8610)
  GOCRONTAB_TOKEN        the API token; GOCRONTAB_TOKEN_FILE names a file that holds it
  GOCRONTAB_CONTEXT      a cluster that was given a name, see: go-crontab context
  GOCRONTAB_DSN          the database of serve and migrate; GOCRONTAB_DSN_FILE names a file that holds it
  GOCRONTAB_SECRET_KEY   the key of the cluster's secrets itself; GOCRONTAB_SECRET_KEY_FILE names a file that holds it
  GOCRONTAB_SECRET_…     a secret that --grant-secret grants to HTTP jobs of apps, by its name
  GOCRONTAB_<FLAG>       any other flag of serve, see below
  OTEL_…                 where serve sends traces, in the words of OpenTelemetry
  VISUAL, EDITOR         the editor of: go-crontab job edit
  NO_COLOR               no colours; there are none either where the output is no terminal, or TERM is dumb
  TZ                     the time zone in which commands print times, and read those without an offset; see --timezone
  XDG_CONFIG_HOME        instead of ~/.config, for contexts.yaml
  XDG_DATA_HOME          instead of ~/.local/share, for what dev keeps, its token too
  XDG_STATE_HOME         instead of ~/.local/state, for the state folder of a node that root does not run

A flag counts more than a variable, and a variable more than the context in use; the token of --context more than
GOCRONTAB_TOKEN. An empty variable counts as none. A misspelt one is an error: serve, dev and migrate refuse any
GOCRONTAB_ variable that is not a setting, other commands one that nearly is GOCRONTAB_SERVER, _TOKEN or _CONTEXT.

Variables of serve:

` + columns(namesOf(serveVariables, []string{oidcSecret})),
		},
		{
			Use: "formats", Short: "What -o prints",
			Long: `What -o prints:

  table     for people, as wide as the terminal; cut nowhere when the output is none
  json      what the API answered, all fields of it; a list as {"items": […]}, to its end
  yaml      the same as YAML
  name      names or ids alone, one to a line, for the next command to read

  go-crontab job ls --app shop -o name | xargs -d '\n' go-crontab job pause`,
		},
	}
}
