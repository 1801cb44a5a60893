package cli

import (
	"net/http"
	"strings"
	"testing"
	"time"

	"go-crontab/job"
)

// TestNodesEndToEnd labels nodes, places jobs, and drains a node with the commands.
func TestNodesEndToEnd(t *testing.T) {
	t.Parallel()

	dsn := migrated(t)
	a := serve(t, dsn, "node-a", "--label", "zone=a,gpu").ready()
	b := serve(t, dsn, "node-b", "--label", "zone=b", "--label", "disk=ssd").ready()
	got := a.ask("node", "ls")
	for _, want := range []string{"node-a", "gpu, zone=a", "node-b", "disk=ssd, zone=b", "ready"} {
		if got.code != 0 || !strings.Contains(got.out, want) {
			t.Errorf("node ls: got %+v, want %q", got, want)
		}
	}

	if got := a.ask("node", "ls", "-o", "name"); got.out != "node-a\nnode-b\n" {
		t.Errorf("names: got %q", got.out)
	}
	if got := a.ask("job", "add", "there", "--at", "+1s", "--selector", "zone=b", "--",
		"sleep 3; echo done"); got.code != 0 || strings.Contains(got.err, "warning") {
		t.Fatalf("got %+v", got)
	}
	if got := a.ask("job", "add", "nowhere", "--at", "+1s", "--selector", "zone in (d, c)", "--",
		"true"); got.code != 0 || !strings.Contains(got.err, "warning: no node matches zone in (c,d) now") {
		t.Errorf("got %+v, want a warning", got)
	}

	await(t, "it runs on node-b", 10*time.Second, func() bool {
		out := a.ask("run", "ls", "--job", "there", "--state", "running").out
		return strings.Contains(out, "running") && strings.Contains(out, "node-b")
	})

	if got := a.ask("node", "drain", "node-b", "--wait", "--wait-timeout", "1s"); got.code != exitTimedOut ||
		!strings.Contains(got.err, "1 executing") {
		t.Errorf("a drain that gives up: got %+v", got)
	}
	if got := a.ask("node", "drain", "node-b", "--wait", "--reason", "new disk"); got.code != 0 ||
		got.out != "node-b is drained\n" {
		t.Errorf("drain: got %+v", got)
	}
	if runs := a.runs("there"); len(runs) != 1 || runs[0].Outcome != job.Succeeded {
		t.Errorf("after the drain: runs %+v", runs)
	}

	if got := b.ask("node", "ls"); !strings.Contains(got.out, "new disk, by ") {
		t.Errorf("node ls: got %+v", got)
	}

	await(t, "what no node may run waits", 15*time.Second, func() bool {
		return strings.Contains(a.ask("job", "show", "nowhere").out, "no node matches zone in (c,d)")
	})
	if got := a.ask("node", "uncordon", "node-b"); got.code != 0 || !strings.Contains(got.out, "node-b is") {
		t.Errorf("uncordon: got %+v", got)
	}

	for _, line := range []string{"node cordon nodea", "node drain nodea --wait", "node uncordon nodea"} {
		if got := a.ask(strings.Fields(line)...); got.code != exitNotFound ||
			!strings.Contains(got.err, `did you mean "node-a"?`) || !strings.Contains(got.err, "--absent-ok") {
			t.Errorf("%s: got %+v", line, got)
		}
	}

	if got := a.ask("node", "cordon", "node-z", "--absent-ok"); got.code != 0 ||
		!strings.Contains(got.err, "The cluster has no node of this name") {
		t.Errorf("a node that is not there: got %+v", got)
	}
	if got := a.ask("job", "add", "mail", "--every", "1h", "--handler", "mail/send", "--payload", "{}", "--owner",
		"ann", "-l", "team=data"); got.code != 0 {
		t.Errorf("got %+v", got)
	}
	if got := a.ask("handler", "disable", "mail/send", "--reason", "spam"); got.code != 0 ||
		got.out != "disabled handler mail/send, used by 1 job\n" {
		t.Errorf("disable: got %+v", got)
	}

	if got := a.ask("handler", "ls"); !strings.Contains(got.out, "disabled") ||
		!strings.Contains(got.out, "spam, by ") {
		t.Errorf("handler ls: got %+v", got)
	}
	if got := a.ask("handler", "enable", "mail/send"); got.code != 0 {
		t.Errorf("enable: got %+v", got)
	}

	for _, args := range [][]string{
		{"--owner", "ann"}, {"--label", "team=data"}, {"--owner", "ann", "--label", "team=data"},
	} {
		if got := a.ask(append([]string{"job", "ls", "-o", "name"}, args...)...); got.out != "default/mail\n" {
			t.Errorf("%v: got %+v", args, got)
		}
	}

	if got := a.ask("job", "ls", "--owner", "eve"); !strings.Contains(got.err, "No jobs match") {
		t.Errorf("got %+v", got)
	}
	if got := a.ask("job", "show", "mail"); !strings.Contains(got.out, "handler") ||
		!strings.Contains(got.out, "mail/send") {
		t.Errorf("got %+v", got)
	}
}

func TestLabelsOfServe(t *testing.T) {
	t.Parallel()

	for name, c := range map[string]struct {
		given []string
		want  string // of the error
	}{
		"good ones":     {[]string{"zone=a", "gpu", "x=y=z"}, ""},
		"twice":         {[]string{"zone=a", "zone=b"}, "--label zone is given twice"},
		"the node's":    {[]string{"os=minix"}, "--label: os is set by the node itself"},
		"a bad name":    {[]string{"a b=c"}, `--label: the name "a b" contains other characters`},
		"an empty name": {[]string{"=c"}, "--label: the name is empty"},
	} {
		labels, err := labelsOf(c.given)
		if (err == nil) != (c.want == "") ||
			err != nil && (!strings.Contains(err.Error(), c.want) || codeOf(err) != exitUsage) {
			t.Errorf("%s: got %v, %v, want %q", name, labels, err, c.want)
		}
		if err == nil && (labels["x"] != "y=z" || len(labels) != 3) {
			t.Errorf("%s: got %v", name, labels)
		}
	}

	if envName("label") != "GOCRONTAB_LABELS" || envName("node") != "GOCRONTAB_NODE" {
		t.Errorf("got variables %s and %s", envName("label"), envName("node"))
	}
}

// TestDrainWhileSomebodyUncordons: a waiting drain ends with an error when the node is uncordoned.
func TestDrainWhileSomebodyUncordons(t *testing.T) {
	t.Parallel()

	f := newFakeAPI(t, map[string]func(*http.Request) (int, string){
		"POST /api/v1/nodes/one%2Ftwo/drain": always(200,
			`{"name":"one/two","state":"draining","cordoned":true,"draining":true,"executing":3}`),
		"GET /api/v1/nodes/one%2Ftwo": always(200, `{"name":"one/two","state":"ready"}`),
	})

	got := command("node", "drain", "one/two", "--wait", "--server", f.URL)
	if got.code != exitFailed || !strings.Contains(got.err, "one/two was uncordoned meanwhile") ||
		!strings.Contains(got.err, "3 executing") {
		t.Errorf("got %+v", got)
	}

	if got := command("node", "drain", "x", "--wait-timeout", "1s", "--server", f.URL); got.code != exitUsage {
		t.Errorf("a timeout without --wait: got %+v", got)
	}
}
