//go:build !windows

package cli

import (
	"context"
	"os/exec"
)

const (
	someEditor = "vi"
	nameEditor = "to use another editor:  export EDITOR=nano"
)

// editorCommand opens a file in an editor. It uses a shell, because the setting may contain
// arguments of the editor.
func editorCommand(ctx context.Context, editor, file string) *exec.Cmd {
	return exec.CommandContext(ctx, "sh", "-c", editor+` "$1"`, "sh", file)
}
