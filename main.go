// Command go-crontab is a cron cluster that needs nothing but MySQL.
package main

import (
	"os"
	"runtime/debug"

	"go-crontab/cli"
)

func main() {
	// A node reads, compiles and forgets definitions by the thousand. Collecting garbage half as often as Go does by itself
	// leaves a twentieth more of the processor to runs, for some tens of megabytes.
	if os.Getenv("GOGC") == "" {
		debug.SetGCPercent(200)
	}
	os.Exit(cli.Main(os.Args[1:], os.Stdin, os.Stdout, os.Stderr))
}
