package follow

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"log/slog"
	"strings"
	"time"

	"go-crontab/internal/loop"
	"go-crontab/internal/manifest"
	"go-crontab/job"
)

// Editor changes the cluster.
type Editor interface {
	Apply(context.Context, job.Apply) (job.Applied, error)
	NoteFolder(ctx context.Context, name string, n job.FolderNode) error
	ForgetFolders(ctx context.Context, node, name string) error
}

// Config describes a folder and its node.
type Config struct {
	Path   string         // absolute; the same on all nodes; "": the node follows no folder
	Node   string         // name of the node that has this copy
	Prune  map[string]any // as in POST /api/v1/apply; nil: no job is deleted
	Read   func(body []byte) (job.Apply, error)
	Editor func() Editor // it returns nil while changes are impossible
	Log    *slog.Logger
}

// Folder is a folder that a node follows.
type Folder struct {
	Config

	forgot      bool      // the node's notes of other folders are gone
	seen        content   // of the previous read
	lastMessage string    // last log message
	lastTried   string    // digest or error of the last attempt to apply
	next        time.Time // when to try the same content again
}

// New returns a folder. The caller runs it.
func New(cfg Config) *Folder { return &Folder{Config: cfg} }

const (
	// readEvery is the interval between two reads.
	readEvery = 2 * time.Second
	// compareEvery is the interval for comparing unchanged files with the cluster again.
	compareEvery = 30 * time.Second
)

// content is the result of reading the folder once.
type content struct {
	set    *manifest.Set
	body   []byte
	digest string // empty if the folder cannot be read
	err    error
}

// same reports whether two reads had the same result.
func (c *content) same(as *content) bool {
	if c.err != nil || as.err != nil {
		return c.err != nil && as.err != nil && c.err.Error() == as.err.Error()
	}
	return c.digest == as.digest && c.set != nil && as.set != nil
}

// Run follows the folder until ctx ends. If the node follows no folder, Run ends once the node's
// notes of earlier folders are gone.
func (f *Folder) Run(ctx context.Context) error {
	ctx, end := context.WithCancel(ctx)
	defer end()
	return loop.Loop{First: loop.Jitter(readEvery), Period: readEvery}.Run(ctx,
		loop.Each(func(ctx context.Context) error {
			if f.step(ctx, time.Now()); f.forgot && f.Path == "" {
				end()
			}
			return nil // step logs by itself
		}))
}

// step reads the folder once. If the previous read found the same content, step applies it. now is
// the node's own clock, and only measures intervals.
func (f *Folder) step(ctx context.Context, now time.Time) {
	defer func() {
		if r := recover(); r != nil { // a bad file must not stop the node
			f.say(slog.LevelError, "panic while applying the folder", "panic", r)
		}
	}()

	if !f.forgot {
		e := f.Editor()
		f.forgot = e != nil && e.ForgetFolders(ctx, f.Node, f.Path) == nil // otherwise the next step tries again
	}
	if f.Path == "" {
		return
	}

	is := f.look()
	settled := is.same(&f.seen)
	f.seen = is
	if !settled {
		return
	}

	key := is.digest
	if is.err != nil {
		key = is.err.Error()
	}
	if key == f.lastTried && now.Before(f.next) {
		return
	}

	e := f.Editor()
	if e == nil {
		return // the node itself logs why it has no session
	}

	f.lastTried, f.next = key, now.Add(compareEvery)
	f.settle(ctx, e, &is)
}

// look reads the folder once.
func (f *Folder) look() content {
	set, err := manifest.ReadAll([]string{f.Path}, strings.NewReader(""))
	if err != nil {
		return content{err: err}
	}

	more := map[string]any{}
	if f.Prune != nil {
		more["prune"] = f.Prune
	}

	body, err := set.Body(more)
	if err != nil {
		return content{err: err}
	}

	sum := sha256.Sum256(body)
	return content{set: set, body: body, digest: hex.EncodeToString(sum[:])[:job.DigestSize]}
}

// settle applies the content of the folder, and records the outcome.
func (f *Folder) settle(ctx context.Context, e Editor, is *content) {
	n := job.FolderNode{Node: f.Node, Digest: is.digest}
	done, err := job.Applied{}, is.err
	if err == nil {
		done, err = f.apply(ctx, e, is)
	}

	var wrong job.Problems
	switch {
	case err == nil:
		n.State = job.FolderApplied
	case errors.Is(err, job.ErrBehind):
		n.State = job.FolderBehind
	case is.err != nil, errors.As(err, &wrong):
		n.State, n.Error = job.FolderRefused, bounded(explain(is.set, err))
	default: // MySQL does not answer, or another change conflicts
		f.lastTried = ""
		f.say(slog.LevelWarn, "cannot apply the folder yet, trying again", "error", err)
		return
	}

	switch {
	case n.State == job.FolderBehind:
		f.say(slog.LevelWarn, "this node has an outdated copy of the folder, not applying it", "error", err)
	case n.State == job.FolderRefused:
		f.say(slog.LevelError, "the folder has errors, nothing of it was applied", "error", n.Error)
	default:
		f.logChanges(&done)
	}

	// If we die here, the first read after a restart records the state.
	if err := e.NoteFolder(ctx, f.Path, n); err != nil && ctx.Err() == nil {
		f.lastTried = ""
		f.Log.Warn("cannot record the state of the folder, trying again", "folder", f.Path, "error", err)
	}
}

func (f *Folder) apply(ctx context.Context, e Editor, is *content) (job.Applied, error) {
	want, err := f.Read(is.body)
	if err != nil {
		return job.Applied{}, err
	}

	want.Folder = &job.Folder{Name: f.Path, Node: f.Node, Digest: is.digest}
	done, err := e.Apply(job.WithActor(ctx, job.Actor{Who: "folder " + f.Path, Origin: f.Node}), want)
	var conflicts job.Conflicts

	// The files require versions of jobs that the cluster does not have. Another try is useless
	// until the files or the jobs change.
	if errors.As(err, &conflicts) {
		err = job.Problems(conflicts)
	}
	return done, err
}

// say logs a message unless it repeats the last one.
func (f *Folder) say(level slog.Level, message, key string, value any) {
	if text := fmt.Sprint(message, value); text != f.lastMessage {
		f.lastMessage = text
		f.Log.Log(context.Background(), level, message, "folder", f.Path, key, value)
	}
}

// logChanges logs the changes. After a failure it also logs that the folder is applied again.
func (f *Folder) logChanges(done *job.Applied) {
	count := map[job.Applying]int{}
	for _, o := range done.Objects() {
		count[o.Action]++
	}

	for _, j := range done.Jobs {
		count[j.Action]++
		for _, w := range j.Warnings {
			f.Log.Warn("a job of the folder has a warning", "folder", f.Path, "job",
				j.Job.Spec.App+"/"+j.Job.Spec.Name, "warning", w.Message)
		}
	}

	changed := count[job.Created]+count[job.Updated]+count[job.Deleted] > 0
	if changed || f.lastMessage != "" {
		f.Log.Info("applied the folder", "folder", f.Path, "created", count[job.Created], "updated",
			count[job.Updated], "deleted", count[job.Deleted])
	}

	f.lastMessage = ""
}

// explain formats an error with places in files, one per line.
func explain(set *manifest.Set, err error) string {
	var wrong job.Problems
	if set == nil || !errors.As(err, &wrong) {
		return err.Error()
	}

	var lines []string
	for _, p := range wrong {
		where := p.Field
		if at, name, ok := set.Find(p.Field); ok {
			where = strings.TrimSuffix(at.String()+": "+name, ": ")
		}
		lines = append(lines, where+": "+set.Explain(p.Message))
	}

	return strings.Join(lines, "\n")
}

// maxError bounds a recorded error, in bytes.
const maxError = 2000

func bounded(s string) string {
	s = strings.ToValidUTF8(s, "\uFFFD")
	if len(s) <= maxError {
		return s
	}
	return strings.ToValidUTF8(s[:maxError], "") + "…"
}
