package schedule

import (
	"errors"
	"fmt"
	"strings"
	"sync"
	"testing"
	"time"

	"go-crontab/internal/faultproxy"
	"go-crontab/job"
)

// copyOf is a node's copy of the folder /jobs that holds one job.
func copyOf(node, version string) job.Apply {
	j := wanted(every("j", time.Hour, time.Hour))
	j.Owner = version
	return job.Apply{Jobs: []job.Wanted{j}, Folder: &job.Folder{Name: "/jobs", Node: node, Digest: strings.Repeat(version, job.DigestSize)}}
}

// follow is what a node does when its copy is another: it applies it and writes down what became of that.
func (f *fixture) follow(node, version string) (job.Applied, error) {
	f.Helper()
	want := copyOf(node, version)
	done, err := f.editor.Apply(f.Context(), want)
	n := job.FolderNode{Node: node, Digest: want.Folder.Digest, State: job.FolderApplied}
	if errors.Is(err, job.ErrBehind) {
		n.State = job.FolderBehind
	}
	if err := f.editor.NoteFolder(f.Context(), "/jobs", n); err != nil {
		f.Fatal(err)
	}
	return done, err
}

func (f *fixture) wantOwner(what, version string) {
	f.Helper()
	f.want(what+": is applied "+version, 1, "SELECT COUNT(*) FROM job WHERE living = 1 AND JSON_VALUE(spec, '$.owner') = ? COLLATE utf8mb4_bin", version)
}

func (f *fixture) joins(node string, n byte) {
	f.Helper()
	f.exec("INSERT INTO session (id, node, started, beat_at) VALUES (?, ?, 0, 0)", append(make([]byte, 15), n), node)
}

func TestFolderOfTwoNodes(t *testing.T) {
	f := setUp(t)
	f.joins("a", 101)
	f.joins("b", 102)
	step := func(node, version string, want string) {
		t.Helper()
		done, err := f.follow(node, version)
		got := said(done)
		if err != nil {
			got = "behind"
			if !errors.Is(err, job.ErrBehind) {
				t.Fatal(err)
			}
		}
		if got, _, _ = strings.Cut(got, " owner"); got != want {
			t.Errorf("%s has %s: got %q, want %q", node, version, got, want)
		}
	}
	step("a", "1", "created j")
	step("b", "1", "") // it is applied
	step("b", "2", "updated j")
	step("a", "1", "behind")
	f.wantOwner("one is behind", "2")
	step("a", "2", "")
	step("a", "1", "updated j") // somebody has gone back
	f.wantOwner("back", "1")
	step("b", "2", "behind")
	step("b", "1", "")
	step("b", "3", "updated j")
	step("c", "1", "behind") // a new node with an old copy
	f.exec("DELETE FROM session WHERE node = 'b'")
	step("a", "2", "behind")
	f.session.set(after(job.BehindFor + time.Second))
	step("a", "2", "updated j") // nobody else holds 3 any more
	f.wantOwner("the newer one has left", "2")
	f.want("lines of the audit", 5, "SELECT COUNT(*) FROM audit WHERE kind = 'folder' AND action = 'apply' AND name = '/jobs'")

	// By hand it is changed until the folder is another.
	byHand := copyOf("", "x")
	byHand.Folder = nil
	f.apply(byHand)
	step("a", "2", "")
	f.wantOwner("by hand", "x")

	f.session.set(after(49 * time.Hour))
	step("a", "4", "updated j")
	folders, err := f.editor.DB.Folders(t.Context(), "")
	if err != nil || len(folders) != 1 || len(folders[0].Nodes) != 1 || folders[0].Nodes[0].State != job.FolderApplied || len(folders[0].Past) != 3 {
		t.Errorf("got %+v, %v; want the nodes that are gone for long left out", folders, err)
	}
	dry := copyOf("a", "5")
	dry.DryRun = true
	f.apply(dry)
	f.wantOwner("a dry run", "4")
}

// TestFolderAppliedOnce has many nodes come with the same new folder at the same moment: one applies it.
func TestFolderAppliedOnce(t *testing.T) {
	f := setUp(t)
	for round := range 5 {
		var all sync.WaitGroup
		for n := range 6 {
			all.Go(func() {
				if _, err := f.editor.Apply(t.Context(), copyOf(fmt.Sprint("node-", n), fmt.Sprint(round))); err != nil {
					t.Error(err)
				}
			})
		}
		all.Wait()
	}
	f.want("times applied", 5, "SELECT COUNT(*) FROM audit WHERE kind = 'folder'")
	f.want("version of the job", 5, "SELECT version FROM job WHERE living = 1")
	f.wantOwner("at last", "4")
}

// TestFolderUnknownCommit: when the answer to the commit is lost, the folder and its jobs stand together or not at all,
// and once.
func TestFolderUnknownCommit(t *testing.T) {
	f := setUp(t)
	for i, fate := range []faultproxy.Action{faultproxy.CutAfter(), faultproxy.CutBefore()} {
		rule := f.proxy.Add(faultproxy.Rule{Match: faultproxy.CommitOf("UPDATE folder"), Action: fate})
		if _, err := f.follow("a", fmt.Sprint(i)); err != nil {
			t.Fatal(err)
		}
		if rule.Fired() != 1 {
			t.Fatalf("injected %d times", rule.Fired())
		}
		f.want("times applied", int64(i+1), "SELECT COUNT(*) FROM audit WHERE kind = 'folder'")
		f.want("version of the job", int64(i+1), "SELECT version FROM job WHERE living = 1")
		f.wantOwner("at last", fmt.Sprint(i))
	}
}

// TestFolderRefused: what is wrong with the files leaves the folder as it was.
func TestFolderRefused(t *testing.T) {
	f := setUp(t)
	if _, err := f.follow("a", "1"); err != nil {
		t.Fatal(err)
	}
	bad := copyOf("a", "2")
	bad.Jobs[0].Group = "nobody's"
	var wrong job.Problems
	if _, err := f.editor.Apply(t.Context(), bad); !errors.As(err, &wrong) || wrong[0].Field != "jobs[0].group" {
		t.Errorf("got %v", err)
	}
	n := job.FolderNode{Node: "a", Digest: bad.Folder.Digest, State: job.FolderRefused, Error: strings.Repeat("nö\n", 600)}
	for range 2 {
		if err := f.editor.NoteFolder(t.Context(), "/jobs", n); err != nil {
			t.Fatal(err)
		}
	}
	folders, err := f.editor.DB.Folders(t.Context(), "/jobs")
	if err != nil || len(folders) != 1 {
		t.Fatalf("got %+v, %v", folders, err)
	}
	got := folders[0].NodeOf("a")
	if got.State != job.FolderRefused || got.Error != n.Error || got.Held == got.Digest || folders[0].Digest != copyOf("a", "1").Folder.Digest {
		t.Errorf("got %+v of %+v", got, folders[0])
	}
	f.wantOwner("refused", "1")
	if _, err := f.follow("a", "1"); err != nil {
		t.Errorf("mended: %v", err)
	}
	if none, err := f.editor.DB.Folders(t.Context(), "/other"); err != nil || none != nil {
		t.Errorf("another folder: got %+v, %v", none, err)
	}
}
