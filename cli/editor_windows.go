package cli

import (
	"context"
	"os/exec"
	"syscall"
)

const (
	someEditor = "notepad"
	nameEditor = "to use another editor:  set EDITOR=notepad"
)

// editorCommand opens a file in an editor. It uses a shell, because the setting may contain
// arguments of the editor. cmd /s removes only the first and the last quote of its command line.
func editorCommand(ctx context.Context, editor, file string) *exec.Cmd {
	cmd := exec.CommandContext(ctx, "cmd")
	cmd.SysProcAttr = &syscall.SysProcAttr{CmdLine: `cmd /s /c "` + editor + ` "` + file + `""`}
	return cmd
}
