package cli

import (
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
)

// completeAll adds completion to commands and flags that have none. Otherwise a shell would
// complete file names.
func completeAll(c *console, cmd *cobra.Command) {
	for _, sub := range cmd.Commands() {
		completeAll(c, sub)
	}

	if cmd.Runnable() && !cmd.HasSubCommands() && cmd.ValidArgsFunction == nil && !takesFiles(cmd) {
		cmd.ValidArgsFunction = argumentsOf(c, cmd)
	}

	cmd.LocalFlags().VisitAll(func(f *pflag.Flag) {
		if _, there := cmd.GetFlagCompletionFunc(f.Name); there {
			return
		}
		switch f.Name {
		case "app":
			complete(cmd, f.Name, completeApps(c))
		case "group":
			complete(cmd, f.Name, completeNames(c, "/api/v1/groups"))
		case "calendar":
			complete(cmd, f.Name, completeNames(c, calendarsPath))
		case "job":
			complete(cmd, f.Name, completeJobs(c))
		case "node":
			if cmd.Name() != "serve" {
				complete(cmd, f.Name, completeNames(c, "/api/v1/nodes"))
			}
		case "timezone":
			complete(cmd, f.Name, completeZones)
		}
	})
}

func complete(cmd *cobra.Command, flag string, f cobra.CompletionFunc) {
	_ = cmd.RegisterFlagCompletionFunc(flag, f) // it fails only if the flag already has completion
}

// takesFiles reports whether the arguments of a command are files.
func takesFiles(cmd *cobra.Command) bool {
	return strings.Contains(cmd.Use, "FILE")
}

// argumentsOf returns the completion of a command's arguments. The word in the usage line selects
// it.
func argumentsOf(c *console, cmd *cobra.Command) cobra.CompletionFunc {
	_, argument, _ := strings.Cut(cmd.Use, " ")
	switch strings.TrimRight(strings.Fields(argument + " -")[0], "…") {
	case "APP":
		return completeApps(c)
	case "JOB":
		return completeJobs(c)
	case "RULE":
		return completeNames(c, rulesPath)
	case "CHANNEL":
		return completeNames(c, channelsPath)
	case "SILENCE":
		return completeField(c, silencesPath, "id")
	case "GROUP":
		return completeNames(c, "/api/v1/groups")
	case "CALENDAR":
		return completeNames(c, calendarsPath)
	case "NODE":
		return completeNames(c, "/api/v1/nodes")
	case "KEY":
		return completeField(c, "/api/v1/handlers", "handler")
	case "RUN":
		return completeField(c, "/api/v1/runs", "id")
	case "ID":
		return completeField(c, backfillsPath, "id")
	}

	return cobra.NoFileCompletions
}
