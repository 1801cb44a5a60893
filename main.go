// Command go-crontab is a cron cluster that needs nothing but MySQL.
package main

import (
	"os"

	"go-crontab/cli"
)

func main() { os.Exit(cli.Main(os.Args[1:], os.Stdin, os.Stdout, os.Stderr)) }
