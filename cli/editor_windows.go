package cli

import (
	"context"
	"os/exec"
	"syscall"
)

const (
	someEditor = "notepad"
	nameEditor = "name another one:  set EDITOR=notepad"
)

// editorCommand opens a file in an editor, by a shell: it may be given with arguments. cmd takes its line as it is, and of
// that only the first quotes and the last away.
func editorCommand(ctx context.Context, editor, file string) *exec.Cmd {
	cmd := exec.CommandContext(ctx, "cmd")
	cmd.SysProcAttr = &syscall.SysProcAttr{CmdLine: `cmd /s /c "` + editor + ` "` + file + `""`}
	return cmd
}
