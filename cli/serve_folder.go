//go:build unix

package cli

import (
	"context"
	"log/slog"
	"os"
	"path/filepath"

	"go-crontab/api"
	"go-crontab/internal/follow"
	"go-crontab/job"
	"go-crontab/node"

	"github.com/spf13/pflag"
)

// folderSettings are the flags of serve for following a folder of job files.
type folderSettings struct {
	path   string
	app    string
	labels []string
}

func (f *folderSettings) flags(flags *pflag.FlagSet) {
	flags.StringVar(&f.path, "apply-dir", "",
		"folder with job files, as for apply; the node applies every change of it")
	flags.StringVar(&f.app, "apply-prune-app", "",
		"the folder defines all jobs of this app; jobs that are in no file are deleted")
	flags.StringArrayVar(&f.labels, "apply-prune-label", nil,
		"the folder defines all jobs with this label, key=value; may be repeated")
}

// check validates the settings. The folder may still be missing or empty.
func (f *folderSettings) check() error {
	if f.path == "" {
		if f.app != "" || len(f.labels) > 0 {
			return usageError("--apply-dir is missing; --apply-prune-app and --apply-prune-label need it")
		}
		return nil
	}

	full, err := filepath.Abs(f.path)
	if err != nil {
		return err
	}

	info, err := os.Stat(full)
	switch {
	case err == nil && !info.IsDir():
		return usageError("--apply-dir %q: not a folder", f.path)
	case len(full) > job.MaxName:
		return usageError("--apply-dir %q: the full path has %d bytes, more than %d; use a shorter link to it", f.path,
			len(full), job.MaxName)
	case f.app != "" && len(f.labels) > 0:
		return usageError("--apply-prune-app and --apply-prune-label cannot be combined")
	}

	f.path = full
	_, err = parseLabels("--apply-prune-label", f.labels)
	return err
}

// follow applies the folder to the cluster whenever its files change, until ctx ends. If no folder
// is set, it only forgets the folders that the node followed before.
func (f *folderSettings) follow(ctx context.Context, n *node.Node, name string, log *slog.Logger) {
	labels, _ := parseLabels("", f.labels) // already checked
	cfg := follow.Config{Path: f.path, Node: name, Read: api.ReadApply, Log: log, Editor: func() follow.Editor {
		if e := n.Editor(); e != nil {
			return e
		}
		return nil
	}}

	switch {
	case f.app != "":
		cfg.Prune = map[string]any{"app": f.app}
	case len(labels) > 0:
		cfg.Prune = map[string]any{"labels": labels}
	}

	_ = follow.New(cfg).Run(ctx) // its only error is the end of ctx
}
