// Command go-crontab is a cron cluster that needs nothing but MySQL.
package main

import (
	"os"
	"runtime/debug"

	"go-crontab/cli"
)

func main() {
	// A node reads, compiles and discards thousands of definitions. Collecting garbage half as
	// often as Go does by default leaves 5 % more of the processor to runs, at the cost of a few
	// tens of megabytes.
	if os.Getenv("GOGC") == "" {
		debug.SetGCPercent(200)
	}
	os.Exit(cli.Main(os.Args[1:], os.Stdin, os.Stdout, os.Stderr))
}
