package follow

import (
	"context"
	"encoding/json"
	"errors"
	"io"
	"log/slog"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"go-crontab/job"
	"go-crontab/job/problem"
)

// cluster is a fake cluster that records what is applied.
type cluster struct {
	away  bool
	err   error // returned by the next calls of Apply
	done  job.Applied
	got   []job.Apply
	noted []job.FolderNode

	remembers []string // the folders of which the notes are kept, one for each success
	lost      int      // calls of ForgetFolders that fail
}

func (c *cluster) ForgetFolders(_ context.Context, node, name string) error {
	if c.lost--; c.lost >= 0 || node != "n1" {
		return errors.New("MySQL is away")
	}
	c.remembers = append(c.remembers, name)
	return nil
}

func (c *cluster) Apply(ctx context.Context, want job.Apply) (job.Applied, error) {
	if a := job.ActorOf(ctx); a.Origin != "n1" || !strings.HasPrefix(a.Who, "folder /") {
		return job.Applied{}, errors.New("nobody knows who it was")
	}
	c.got = append(c.got, want)
	return c.done, c.err
}

func (c *cluster) NoteFolder(_ context.Context, _ string, n job.FolderNode) error {
	c.noted = append(c.noted, n)
	return nil
}

func (c *cluster) last(t *testing.T) job.FolderNode {
	t.Helper()
	if len(c.noted) == 0 {
		t.Fatal("nothing is noted")
	}
	return c.noted[len(c.noted)-1]
}

// names lists the jobs of the last apply.
func (c *cluster) names() (out []string) {
	if len(c.got) > 0 {
		for _, j := range c.got[len(c.got)-1].Jobs {
			out = append(out, j.Name)
		}
	}
	return out
}

// read mimics the API's parsing of a body.
func read(body []byte) (job.Apply, error) {
	var b struct {
		Jobs []struct {
			Name     string `json:"name"`
			Schedule string `json:"schedule"`
		} `json:"jobs"`
		Prune *struct {
			App string `json:"app"`
		} `json:"prune"`
	}

	if err := json.Unmarshal(body, &b); err != nil {
		return job.Apply{}, err
	}

	var (
		out job.Apply
		p   job.Problems
	)

	for i, j := range b.Jobs {
		if j.Schedule == "wrong" {
			p.Put("jobs["+string(rune('0'+i))+"].schedule", problem.Text{Message: "is wrong"})
		}
		out.Jobs = append(out.Jobs, job.Wanted{Spec: job.Spec{Name: j.Name}})
	}

	if b.Prune != nil {
		out.Prune = &job.Prune{App: b.Prune.App}
	}
	if p != nil {
		return out, p
	}

	return out, nil
}

type follower struct {
	*Folder
	*cluster
	t   *testing.T
	now time.Time
	log strings.Builder
}

func newFollower(t *testing.T) *follower {
	f := &follower{cluster: &cluster{}, t: t, now: time.Unix(0, 0)}
	f.Folder = New(Config{Path: t.TempDir(), Node: "n1", Read: read, Editor: func() Editor {
		if f.away {
			return nil
		}
		return f.cluster
	}, Log: slog.New(slog.NewTextHandler(io.MultiWriter(&f.log), nil))})
	return f
}

// steps runs n steps at the usual interval.
func (f *follower) steps(n int) {
	for range n {
		f.step(f.t.Context(), f.now)
		f.now = f.now.Add(readEvery)
	}
}

func (f *follower) write(name, text string) {
	f.t.Helper()
	path := filepath.Join(f.Path, name)
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
		f.t.Fatal(err)
	}
	if err := os.WriteFile(path, []byte(text), 0o644); err != nil {
		f.t.Fatal(err)
	}
}

func TestAppliesWhatHasSettled(t *testing.T) {
	t.Parallel()

	f := newFollower(t)
	f.Prune = map[string]any{"app": "shop"}
	f.write("a.yaml", "name: one\n")
	f.steps(1)
	if f.got != nil {
		t.Errorf("applied at first sight: %+v", f.got)
	}

	f.write("b.yaml", "name: two\n")
	f.steps(1)
	if f.got != nil {
		t.Errorf("applied while it is being written: %+v", f.got)
	}

	f.steps(1)
	if want := []string{"one", "two"}; !slices.Equal(f.names(), want) || f.got[0].Prune == nil ||
		f.got[0].Prune.App != "shop" {
		t.Errorf("got %+v, want %v, with prune", f.got, want)
	}
	if w := f.got[0].Folder; w == nil || w.Name != f.Path || w.Node != "n1" || len(w.Digest) != job.DigestSize {
		t.Errorf("the folder is not named: %+v", w)
	}
	if n := f.last(t); n.State != job.FolderApplied || n.Digest != f.got[0].Folder.Digest || n.Error != "" {
		t.Errorf("noted %+v", n)
	}

	f.steps(5)
	if len(f.got) != 1 {
		t.Errorf("applied %d times, and nothing has changed", len(f.got))
	}

	f.steps(int(compareEvery / readEvery))
	if len(f.got) != 2 {
		t.Errorf("held against the cluster %d times, want once more after %s", len(f.got), compareEvery)
	}

	f.write("b.yaml", "# another comment\nname: two\n")
	f.steps(3)
	if f.got[len(f.got)-1].Folder.Digest != f.got[0].Folder.Digest {
		t.Error("a comment is a change")
	}
}

// TestKubernetesFolder: files are links through ..data, which is switched atomically to another
// folder.
func TestKubernetesFolder(t *testing.T) {
	t.Parallel()

	f := newFollower(t)
	turn := func(version, text string) {
		f.write("..2027_"+version+"/jobs.yaml", text)
		next := filepath.Join(f.Path, "..data_tmp")
		if err := errors.Join(os.Symlink("..2027_"+version, next),
			os.Rename(next, filepath.Join(f.Path, "..data"))); err != nil {
			t.Fatal(err)
		}
	}

	turn("1", "name: one\n")
	if err := os.Symlink("..data/jobs.yaml", filepath.Join(f.Path, "jobs.yaml")); err != nil {
		t.Fatal(err)
	}

	f.steps(2)
	if !slices.Equal(f.names(), []string{"one"}) {
		t.Fatalf("got %v, log %s", f.names(), f.log.String())
	}

	turn("2", "name: two\n")
	if err := os.RemoveAll(filepath.Join(f.Path, "..2027_1")); err != nil {
		t.Fatal(err)
	}

	f.steps(2)
	if !slices.Equal(f.names(), []string{"two"}) {
		t.Errorf("got %v after the turn, log %s", f.names(), f.log.String())
	}
}

// TestLinkedFolder: the folder itself is a link that is switched to another checkout.
func TestLinkedFolder(t *testing.T) {
	t.Parallel()

	f := newFollower(t)
	dir := f.Path
	f.write("v1/jobs.yaml", "name: one\n")
	f.write("v2/jobs.yaml", "name: two\n")
	f.Path = filepath.Join(dir, "current")

	for i, v := range []string{"v1", "v2"} {
		if err := errors.Join(os.Symlink(v, f.Path+"~"), os.Rename(f.Path+"~", f.Path)); err != nil {
			t.Fatal(err)
		}
		f.steps(2)
		if want := []string{"one", "two"}[i]; !slices.Equal(f.names(), []string{want}) {
			t.Errorf("%s: got %v, want %s", v, f.names(), want)
		}
	}
}

func TestTellsWhatIsWrong(t *testing.T) {
	t.Parallel()

	f := newFollower(t)
	f.Prune = map[string]any{"app": "shop"}
	refused := func(what, want string) {
		t.Helper()
		before := len(f.got)
		f.steps(2)
		if n := f.last(t); n.State != job.FolderRefused || !strings.Contains(n.Error, want) {
			t.Errorf("%s: noted %+v, want it refused because of %q", what, n, want)
		}
		if !strings.Contains(f.log.String(), "the folder has errors") {
			t.Errorf("%s: the log says %q", what, f.log.String())
		}

		if len(f.got) != before {
			t.Errorf("%s: it was applied", what)
		}

		f.log.Reset()
	}

	refused("an empty folder, with prune", "is empty")
	f.write("jobs.yaml", "jobs:\n  - name: a\n  - name: b\n    schedule: wrong\n")
	refused("a definition", "jobs.yaml:4:5: schedule: is wrong")
	f.write("more.yaml", "name: [\n")
	refused("a file", "more.yaml:")
	f.write("more.yaml", "name: a\n")
	refused("a name that is there twice", "default/a is given already, at "+f.Path)
	f.write("more.yaml", "{}\n---\njobs: []\n")
	if err := os.Symlink("/etc/hostname", filepath.Join(f.Path, "out.yaml")); err != nil {
		t.Fatal(err)
	}

	refused("a link that leads out", "out.yaml")
	if err := os.RemoveAll(f.Path); err != nil {
		t.Fatal(err)
	}

	refused("no folder", "no such file")
	f.steps(int(compareEvery/readEvery) + 2)
	if f.log.Len() > 0 {
		t.Errorf("the same is told again: %s", f.log.String())
	}

	f.write("jobs.yaml", "jobs: []\n")
	f.steps(2)
	if n := f.last(t); n.State != job.FolderApplied || len(f.got[len(f.got)-1].Jobs) != 0 {
		t.Errorf("who says that there is no job is believed: got %+v", n)
	}
	if !strings.Contains(f.log.String(), "applied the folder") {
		t.Errorf("that it is well again is not told: %s", f.log.String())
	}
}

func TestTriesAgain(t *testing.T) {
	t.Parallel()

	f := newFollower(t)
	f.write("jobs.yaml", "name: one\n")
	f.away = true
	f.steps(3)
	f.away, f.err = false, errors.New("MySQL is away")
	f.steps(3)
	if len(f.got) != 3 || f.noted != nil || strings.Count(f.log.String(), "trying again") != 1 {
		t.Errorf("tried %d times, noted %+v, log %s; want a try at each look, and one line", len(f.got), f.noted,
			f.log.String())
	}

	f.err = job.ErrBehind
	f.steps(3)
	if n := f.last(t); len(f.got) != 4 || n.State != job.FolderBehind || n.Error != "" {
		t.Errorf("tried %d times, noted %+v; want it behind", len(f.got), n)
	}

	f.err = job.Problems{{Field: "jobs[0].group", Text: problem.Text{Message: "there is no group"}}}
	f.steps(int(compareEvery / readEvery))
	if n := f.last(t); n.State != job.FolderRefused ||
		!strings.HasSuffix(n.Error, "jobs.yaml:1:1: group: there is no group") {
		t.Errorf("noted %+v", n)
	}

	before := len(f.got)
	f.err = job.Conflicts{{Field: "jobs[0].version", Text: problem.Text{Message: "want 3"}}}
	f.steps(int(compareEvery / readEvery))
	if n := f.last(t); n.State != job.FolderRefused || !strings.HasSuffix(n.Error, "jobs.yaml:1:1: version: want 3") ||
		len(f.got) != before+1 {
		t.Errorf("tried %d times, noted %+v; want it refused, since another version is wanted", len(f.got)-before, n)
	}

	f.err = nil
	f.steps(int(compareEvery / readEvery))
	if n := f.last(t); n.State != job.FolderApplied {
		t.Errorf("noted %+v: what was missing is there now", n)
	}
}

// TestSurvivesAPanic: a panic while reading a file does not end the node.
func TestSurvivesAPanic(t *testing.T) {
	t.Parallel()

	f := newFollower(t)
	f.write("jobs.yaml", "name: one\n")
	f.Read = func([]byte) (job.Apply, error) { panic("oh") }
	f.steps(2)
	if !strings.Contains(f.log.String(), "panic=oh") {
		t.Errorf("the log says %q", f.log.String())
	}

	f.Read = read
	f.write("jobs.yaml", "name: two\n")
	f.steps(2)
	if !slices.Equal(f.names(), []string{"two"}) {
		t.Errorf("got %v", f.names())
	}
}

// TestForgetsOtherFolders: a node forgets once the folders that it followed before it was restarted,
// also if it follows none now.
func TestForgetsOtherFolders(t *testing.T) {
	t.Parallel()

	f := newFollower(t)
	f.write("jobs.yaml", "name: one\n")
	f.away, f.lost = true, 1
	f.steps(2)
	f.away = false
	f.steps(4)
	if !slices.Equal(f.remembers, []string{f.Path}) || !slices.Equal(f.names(), []string{"one"}) {
		t.Errorf("forgot all but %q, and applied %q", f.remembers, f.names())
	}

	synctest.Test(t, func(t *testing.T) {
		f := newFollower(t)
		f.Path, f.lost = "", 3
		if err := f.Run(t.Context()); !errors.Is(err, context.Canceled) || !slices.Equal(f.remembers, []string{""}) {
			t.Errorf("without a folder: got %v, and forgot all but %q", err, f.remembers)
		}
	})
}

func TestRunEnds(t *testing.T) {
	t.Parallel()
	f := newFollower(t)
	ctx, cancel := context.WithCancelCause(t.Context())
	why := errors.New("enough")
	cancel(why)
	if err := f.Run(ctx); !errors.Is(err, why) {
		t.Errorf("got %v", err)
	}
}
