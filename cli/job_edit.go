package cli

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"os"
	"os/signal"
	"strings"

	"go-crontab/api/view"
	"go-crontab/client"
	"go-crontab/internal/manifest"

	"github.com/spf13/cobra"
)

func jobEdit(c *console) *cobra.Command {
	cmd := &cobra.Command{
		Use: "edit JOB", Short: "Change a job in your editor", Args: wants(1, 1, jobArgument),
		Long: `Change a job in your editor, which VISUAL or EDITOR names. Defaults are left out, and a field that
you remove gets its default. If the job has errors, the editor opens again with the errors at the
top; save without a change to give up. If the job was changed by someone else meanwhile, you see the
changes and can save again. Text that could not be saved is kept in a file.`,
		Example:           "  go-crontab job edit backup\n  EDITOR=nano go-crontab job edit ops/ping",
		ValidArgsFunction: completeJobs(c),
	}

	r := newRemote(c, cmd)
	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		j, _, err := findJob(cmd.Context(), r, args[0])
		if err != nil {
			return err
		}

		e := &jobEditing{remote: r, id: j.ID, name: j.fullName(), version: j.Version}
		raw, err := e.run(cmd.Context())
		if err != nil || raw == nil {
			return err
		}

		if err := json.Unmarshal(raw, &j); err != nil {
			return err
		}

		return r.object(c, raw, j.fullName(), func() error {
			if e.same {
				c.printf("%s is unchanged, version %d\n", plain(j.fullName()), j.Version)
			} else {
				c.printf("changed %s, version %d\n", plain(j.fullName()), j.Version)
			}
			for _, w := range j.Warnings {
				c.notef("warning: %s\n", plain(w.Message))
			}
			return nil
		})
	}

	return cmd
}

// jobEditing is a job that is being edited.
type jobEditing struct {
	*remote
	id, name string
	version  int64
	file     string
	lastRead string   // the text of the job as last read
	others   []string // changes by others since then; nil: none
	saved    bool     // the editor has written the file
	paused   bool     // the opened text had a pause; if the user removes it, the job is resumed
	same     bool     // the saved text equals the job
}

// remark begins each of our own lines at the top of the file.
const remark = "#: "

// run repeats editing until the server accepts the job, and returns the job. It returns nil if
// nothing changed.
func (e *jobEditing) run(ctx context.Context) (json.RawMessage, error) {
	body, err := e.text(ctx)
	if err != nil {
		return nil, err
	}

	// The text goes into a private temporary file, which is kept if the job cannot be saved.
	e.lastRead, e.paused = body, saysPaused(body)
	f, err := os.CreateTemp("", "go-crontab-*.yaml") // 0600
	if err != nil {
		return nil, err
	}

	e.file = f.Name()
	if err := f.Close(); err != nil {
		return nil, err
	}

	// Edit and save until the server accepts the text, or the user gives up.
	first := body
	var refused error
	for {
		after, err := e.edit(ctx, body, refused)
		switch {
		case err != nil && body == first && after == first:
			_ = os.Remove(e.file) // nothing is lost
			return nil, err
		case err != nil:
			return nil, e.keep(err)
		}

		// The user gives up with an empty or unchanged text.
		switch {
		case strings.TrimSpace(after) == "", refused == nil && after == first:
			e.notef("%s was not changed\n", plain(e.name))
			return nil, os.Remove(e.file)
		case refused != nil && after == body && !(e.others != nil && e.saved):
			return nil, e.keep(refused)
		}

		// Try to save.
		body, e.others = after, nil
		raw, err := e.save(ctx, body)
		if err == nil {
			return raw, os.Remove(e.file)
		}
		if codeOf(err) != exitRefused {
			return nil, e.keep(err)
		}

		// The server has refused the text. Open the editor again with its errors.
		refused = err
		if isStale(err) {
			if err := e.readAgain(ctx); err != nil {
				return nil, e.keep(err)
			}
		}
	}
}

// keep adds a hint to an error. The hint names the file with the unsaved text.
func (e *jobEditing) keep(err error) error {
	hint := fmt.Sprintf("your text is in %s; to apply it:  %s apply -f %s", e.file, program(), quote(e.file))
	if more := hintOf(err); more != "" {
		hint = more + "\n" + hint
	}
	return &exitError{code: codeOf(err), err: err, hint: hint}
}

// text returns the job in the file format.
func (e *jobEditing) text(ctx context.Context) (string, error) {
	page, _, err := get[view.Export](ctx, e.remote, "/api/v1/export", url.Values{"job_id": {e.id}})
	if err != nil {
		return "", err
	}
	if len(page.Items) == 0 {
		return "", &exitError{
			code: exitRefused,
			err:  fmt.Errorf("the definition of %s is damaged; replace it with go-crontab apply", plain(e.name)),
		}
	}

	text, err := manifest.YAML(page.Items[0])
	return string(text), err
}

// edit opens a text in an editor, with the errors of the last attempt at the top. If the editor
// fails, edit still returns the typed text.
func (e *jobEditing) edit(ctx context.Context, body string, refused error) (string, error) {
	head := e.head(refused)
	if err := os.WriteFile(e.file, []byte(head+body), 0o600); err != nil {
		return body, err
	}

	before, err := os.Stat(e.file)
	if err != nil {
		return body, err
	}

	failed := e.open(ctx)
	after, err := os.Stat(e.file)
	if err != nil {
		return body, errors.Join(failed, err)
	}

	e.saved = !os.SameFile(before, after) || !before.ModTime().Equal(after.ModTime())
	text, err := os.ReadFile(e.file)
	if err != nil {
		return body, errors.Join(failed, err)
	}
	return withoutRemarks(string(text)), failed
}

// withoutRemarks removes our lines from the top.
func withoutRemarks(text string) string {
	for strings.HasPrefix(text, strings.TrimRight(remark, " ")) {
		_, text, _ = strings.Cut(text, "\n")
	}
	return text
}

// head returns our lines at the top of the file. The line numbers in its errors count these lines,
// too.
func (e *jobEditing) head(refused error) string {
	lines := []string{
		e.name + ", version " + fmt.Sprint(e.version),
		"Save and quit the editor to change the job; quit without a change to give up.",
	}

	if refused != nil {
		said := e.faults(refused)
		lines = append(lines, "", "The job was not saved:")
		for i := range said {
			if said[i].Line > 0 {
				said[i].Line += len(lines) + len(said)
			}
		}

		for _, f := range said {
			if f.Line > 0 {
				lines = append(lines, fmt.Sprintf("line %d: %s", f.Line, f.Message))
			} else {
				lines = append(lines, f.Message)
			}
		}
	}

	var b strings.Builder
	for _, l := range lines {
		b.WriteString(strings.TrimRight(remark+plain(l), " ") + "\n")
	}

	return b.String()
}

// faults converts an error to faults with lines.
func (e *jobEditing) faults(refused error) (out []manifest.Fault) {
	var (
		faults manifest.Faults
		p      *apiProblem
	)

	switch {
	case errors.As(refused, &faults):
		return append(out, faults...)
	case !errors.As(refused, &p):
	case isStale(refused):
		out = append(out, manifest.Fault{
			Message: fmt.Sprintf("the job was changed meanwhile and is now at version %d:", e.version),
		})
		for _, line := range e.others {
			out = append(out, manifest.Fault{Message: "  " + line})
		}
		return append(out, manifest.Fault{
			Message: "Save again to overwrite these changes; quit without saving to keep your text in a file.",
		})
	case len(p.Errors) > 0:
		for _, f := range p.Errors {
			out = append(out, manifest.Fault{Place: f.at, Message: strings.TrimPrefix(f.name+": ", ": ") + f.Message})
		}
		return out
	}

	for line := range strings.Lines(refused.Error()) {
		out = append(out, manifest.Fault{Message: strings.TrimRight(line, "\n")})
	}

	return out
}

// open runs the editor in the terminal.
func (e *jobEditing) open(ctx context.Context) error {
	editor := os.Getenv("VISUAL")
	if editor == "" {
		editor = os.Getenv("EDITOR")
	}
	if editor == "" {
		editor = someEditor
	}

	// Ctrl-C belongs to the editor: if we ended, the typed text would be lost. The signal is caught
	// and not ignored, because the editor would inherit an ignored signal.
	interrupts := make(chan os.Signal, 1)
	signal.Notify(interrupts, os.Interrupt)
	defer signal.Stop(interrupts)

	cmd := editorCommand(ctx, editor, e.file)
	cmd.Stdin, cmd.Stdout, cmd.Stderr = e.in, e.out, e.err
	if err := cmd.Run(); err != nil {
		return withHint(fmt.Errorf("the editor %s: %w", editor, err), "%s", nameEditor)
	}
	return nil
}

// save sends the text to the server.
func (e *jobEditing) save(ctx context.Context, body string) (json.RawMessage, error) {
	set := &manifest.Set{}
	if err := set.Read("the text", []byte(body)); err != nil {
		return nil, &exitError{code: exitRefused, err: err}
	}

	object, err := set.Job()
	if err != nil {
		return nil, &exitError{code: exitRefused, err: err}
	}

	// A removed field normally gets its default. But a text without a pause does not end the pause,
	// so the job is resumed explicitly.
	resume := e.paused && !saysPaused(body)
	var is named
	if err := json.Unmarshal(object, &is); err == nil && is.App+"/"+is.Name != e.name {
		if resume {
			if err := set.Give("paused", false); err != nil {
				return nil, err
			}
			if object, err = set.Job(); err != nil {
				return nil, err
			}
		}
		return e.rename(ctx, object, set)
	}

	versioned := &manifest.Set{}
	if err := versioned.Read("the text", []byte(body)); err != nil {
		return nil, err
	}
	if resume {
		if err := versioned.Give("paused", false); err != nil {
			return nil, err
		}
	}

	if err := versioned.Give("version", e.version); err != nil {
		return nil, err
	}

	done, _, err := e.apply(ctx, versioned, nil)
	if err != nil {
		return nil, err
	}

	e.same = done.Changed == 0
	_, raw, err := get[jobView](ctx, e.remote, "/api/v1/jobs/"+e.id, nil)
	return raw, err
}

// saysPaused reports whether a text has a field for the pause.
func saysPaused(text string) bool {
	set := &manifest.Set{}
	if err := set.Read("the text", []byte(text)); err != nil {
		return false
	}

	object, err := set.Job()
	if err != nil {
		return false
	}

	var fields map[string]json.RawMessage
	_ = json.Unmarshal(object, &fields)
	_, says := fields["paused"]
	return says
}

// rename replaces the definition by the job's id, because its name changes.
func (e *jobEditing) rename(ctx context.Context, object json.RawMessage, set *manifest.Set) (json.RawMessage, error) {
	_, raw, err := e.send(ctx, client.Request{
		Method: http.MethodPut, Path: "/api/v1/jobs/" + e.id,
		Body: client.Document{Media: "application/json", Data: object}, Match: fmt.Sprintf("%q", fmt.Sprint(e.version)),
	})
	var p *apiProblem
	if errors.As(err, &p) {
		for i := range p.Errors {
			p.Errors[i].Field = "jobs[0]." + p.Errors[i].Field
		}
		p.place(set)
	}

	return raw, err
}

// isStale reports whether the job has been changed since it was read.
func isStale(err error) bool {
	var p *apiProblem
	return errors.As(err, &p) &&
		(p.Status == http.StatusPreconditionFailed || p.Status == http.StatusConflict && len(p.Errors) > 0)
}

// readAgain reads the job's version first, and the changes of others second. A change between these
// reads makes the next save fail with a conflict, so no change is overwritten.
func (e *jobEditing) readAgain(ctx context.Context) error {
	j, _, err := get[jobView](ctx, e.remote, "/api/v1/jobs/"+e.id, nil)
	if err != nil {
		return err
	}

	now, err := e.text(ctx)
	if err != nil {
		return err
	}

	if e.others = diffLines(e.lastRead, now); now == e.lastRead {
		e.others = []string{"no change of its file"}
	}

	e.lastRead, e.version, e.name = now, j.Version, j.fullName()
	return nil
}
