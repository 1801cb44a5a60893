package api_test

import (
	"strings"
	"testing"

	"go-crontab/api"
	"go-crontab/job"
)

// TestFolders: callers who may see all apps see the folders as their nodes described them.
func TestFolders(t *testing.T) {
	t.Parallel()
	a := twoApps(t)
	if _, there := a.call("GET", "/api/v1/cluster", nil).want(200).object()["folders"]; there {
		t.Error("nobody follows a folder, and there is one")
	}

	want, err := api.ReadApply(
		[]byte(`{"jobs": [{"app": "theirs", "name": "of a file", "every": "1h", "command": "true"}]}`))
	if err != nil {
		t.Fatal(err)
	}

	digest := strings.Repeat("a", job.DigestSize)
	want.Folder = &job.Folder{Name: "/jobs", Node: "n1", Digest: digest}
	e := a.node.Editor()
	if _, err := e.Apply(job.WithActor(t.Context(), job.Actor{Who: "folder /jobs", Origin: "n1"}), want); err != nil {
		t.Fatal(err)
	}

	if err := e.NoteFolder(t.Context(), "/jobs",
		job.FolderNode{Node: "n2", State: job.FolderRefused,
			Error: "/jobs/x.yaml:3:5: schedule: is wrong"}); err != nil {
		t.Fatal(err)
	}

	folders := a.call("GET", "/api/v1/cluster", nil).want(200).object().items("folders")
	if len(folders) != 1 {
		t.Fatalf("got %v, want one folder", folders)
	}

	f, nodes := folders[0], folders[0].items("nodes")
	if f.text("folder") != "/jobs" || f.text("digest") != digest || f.text("node") != "n1" || f.text("applied") == "" ||
		len(nodes) != 2 {
		t.Fatalf("got %v", f)
	}

	if nodes[0].text("node") != "n1" || nodes[0].text("state") != "applied" || nodes[1].text("state") != "refused" ||
		nodes[1].text("error") != "/jobs/x.yaml:3:5: schedule: is wrong" {
		t.Errorf("got %v", nodes)
	}

	limited := a.as(a.people["limited viewer"].token)
	if _, there := limited.call("GET", "/api/v1/cluster", nil).want(200).object()["folders"]; there {
		t.Error("who is limited to an app reads what is wrong with jobs of others")
	}

	if lines := a.call("GET", "/api/v1/audit?kind=folder", nil).want(200).object().items("items"); len(lines) != 1 ||
		lines[0].text("action") != "apply" || lines[0].text("name") != "/jobs" ||
		lines[0].text("who") != "folder /jobs" {
		t.Errorf("got %v", lines)
	}
}

// TestReadApply: mistakes in a folder's files are reported like those in a request's body.
func TestReadApply(t *testing.T) {
	t.Parallel()
	_, err := api.ReadApply([]byte(`{"jobs": [{"name": "a", "comand": "x"}], "job": []}`))
	if p, ok := err.(job.Problems); !ok || len(p) != 2 || p[0].Field != "jobs[0].comand" {
		t.Errorf("got %#v", err)
	}
	if _, err := api.ReadApply([]byte(`{`)); err == nil {
		t.Error("half an object is taken")
	}
}
