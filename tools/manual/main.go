// Command manual writes the files that packages hold besides the program: a manual page for every
// command, and the completions of bash, zsh and fish.
//
//	go run ./tools/manual FOLDER VERSION UNIXTIME
package main

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"time"

	"go-crontab/cli"

	"github.com/spf13/cobra/doc"
)

func main() {
	if err := run(os.Args[1:]); err != nil {
		fmt.Fprintln(os.Stderr, "manual:", err)
		os.Exit(1)
	}
}

func run(args []string) error {
	if len(args) != 3 {
		return errors.New("usage: manual FOLDER VERSION UNIXTIME")
	}

	seconds, err := strconv.ParseInt(args[2], 10, 64)
	if err != nil {
		return err
	}

	pages, completions := filepath.Join(args[0], "man"), filepath.Join(args[0], "completions")
	for _, dir := range []string{pages, completions} {
		if err := os.MkdirAll(dir, 0o755); err != nil {
			return err
		}
	}

	root, date := cli.Root(), time.Unix(seconds, 0).UTC()
	root.DisableAutoGenTag = true
	header := &doc.GenManHeader{Section: "1", Source: "go-crontab " + args[1], Manual: "go-crontab", Date: &date}
	if err := doc.GenManTree(root, header, pages); err != nil {
		return err
	}

	return errors.Join(
		root.GenBashCompletionFileV2(filepath.Join(completions, "go-crontab.bash"), true),
		root.GenZshCompletionFile(filepath.Join(completions, "go-crontab.zsh")),
		root.GenFishCompletionFile(filepath.Join(completions, "go-crontab.fish"), true),
	)
}
