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
			Use: "exit-codes", Short: "Exit codes of all commands",
			Long: `Exit codes of all commands:

  0  success, also of a dry run that would make changes
  1  failed: the server or MySQL cannot be reached, an awaited run did not succeed, or you declined a confirmation
  2  usage: the command line, a GOCRONTAB_ variable or the DSN is not valid, or a file is missing
  3  not found: the job, run, group, calendar, node or context does not exist
  4  refused: a definition or a file is not valid, the name is taken, the object was changed meanwhile, or a node may
     not join its cluster
  5  not authorised: the token is missing, not valid, expired or revoked, or does not allow it
  124  --wait-timeout has passed; what was awaited goes on

Results go to standard output. Notes, warnings and errors with hints go to standard error. A program
that reads -o json needs only the exit code and standard output.`,
		},
		{
			Use: "environment", Short: "Environment variables",
			Long: `Environment variables:

  GOCRONTAB_SERVER       URL of a node, such as http://web-1:8610, or of several, separated by commas
                         (default http://127.0.0.1:8610)
  GOCRONTAB_CA_CERT      PEM file with the authorities to trust instead of the system's
  GOCRONTAB_TOKEN        API token; GOCRONTAB_TOKEN_FILE names a file with it
  GOCRONTAB_CONTEXT      name of the cluster to use, see: go-crontab context
  GOCRONTAB_DSN          database of serve and migrate; GOCRONTAB_DSN_FILE names a file with it
  GOCRONTAB_SECRET_KEY   encryption key of secrets; GOCRONTAB_SECRET_KEY_FILE names a file with it
  GOCRONTAB_SECRET_…     node secret for HTTP jobs of the apps that --grant-secret names
  GOCRONTAB_<FLAG>       any other flag of serve, see below
  OTEL_…                 where serve sends traces, as OpenTelemetry defines it
  VISUAL, EDITOR         editor for go-crontab job edit
  NO_COLOR               turns colours off; they are also off if the output is no terminal, or TERM is dumb
  TZ                     time zone to print times in, and to read times without an offset in; see --timezone
  XDG_CONFIG_HOME        instead of ~/.config, for contexts.yaml
  XDG_DATA_HOME          instead of ~/.local/share, for the data of dev, including its token
  XDG_STATE_HOME         instead of ~/.local/state, for the state folder of a node that does not run as root

A flag takes precedence over a variable, and a variable over the context in use. With
--context, GOCRONTAB_TOKEN is not used. An empty variable counts as not set. serve, dev and
migrate refuse unknown GOCRONTAB_ variables; other commands refuse only misspelt forms of
GOCRONTAB_SERVER, _TOKEN, _CA_CERT and _CONTEXT.

Variables of serve:

` + columns(namesOf(serveVariables, []string{oidcSecret})),
		},
		{
			Use: "formats", Short: "Output formats of -o",
			Long: `Output formats of -o:

  table     for people, as wide as the terminal; never cut if the output is no terminal
  json      the response of the API with all fields; a list is complete, as {"items": […]}
  yaml      the same as json, in YAML
  name      only names or ids, one per line, for use by another command

  go-crontab job ls --app shop -o name | xargs -d '\n' go-crontab job pause`,
		},
	}
}
