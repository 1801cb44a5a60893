//go:build unix

package cli

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"time"

	"go-crontab/job"
)

// samples are jobs that show the main features, including runs that fail or are skipped.
func samples(now time.Time) []job.Spec {
	first, once := now.Add(5*time.Second).Truncate(5*time.Second), now.Add(time.Minute).Truncate(time.Second)
	return []job.Spec{
		{
			Name: "hello", Every: job.Duration(5 * time.Second), Start: &first,
			Description: "Says hello, every 5 seconds",
			Command:     `echo "Hello, I was due at $GOCRONTAB_DUE"`,
		},
		{Name: "disk", Schedule: "* * * * *", Description: "Disk usage, each minute", Command: "df -h /"},
		{
			Name: "flaky", Every: job.Duration(20 * time.Second), Start: &first,
			Description: "Fails about one time in three",
			Command:     "if (( RANDOM % 3 )); then echo fine; else echo 'out of luck' >&2; exit 3; fi",
		},
		{
			Name: "slow", Every: job.Duration(15 * time.Second), Start: &first, Overlap: job.OverlapSkip,
			Description: "Takes 20 seconds, so every other due time is skipped",
			Command:     "for i in {1..20}; do echo \"step $i of 20\"; sleep 1; done",
		},
		{
			Name: "once", At: &once, Description: "Runs once, a minute after the first start",
			Command: "echo 'This was my only run.'",
		},
	}
}

// addSamples adds the samples to a new data folder, once. A deleted sample does not come back.
func (d *dev) addSamples(ctx context.Context) (int, error) {
	mark := filepath.Join(d.data, "samples-added")
	if _, err := os.Stat(mark); err == nil || d.noSamples {
		return 0, nil
	} else if !errors.Is(err, fs.ErrNotExist) {
		return 0, err
	}

	r := d.api(d.members[0])
	jobs := samples(time.Now())
	for _, j := range jobs {
		j.App = "default"
		j.Labels = map[string]string{"sample": "true"}
		// If we die in this loop, the next start continues. A job that already exists is no error.
		if _, err := r.call(ctx, http.MethodPost, "/api/v1/jobs", nil, j); err != nil &&
			!isStatus(err, http.StatusConflict) {
			return 0, fmt.Errorf("add sample job %s: %w", j.Name, err)
		}
	}

	return len(jobs), os.WriteFile(mark, nil, 0o600)
}

func (d *dev) api(m *member) *remote {
	r := &remote{console: d.console, server: m.url(), token: d.token}
	if err := r.connect(10 * time.Second); err != nil {
		panic(err) // the URL is our own
	}
	return r
}

// awaitReady waits until a node can change jobs. It returns false if ctx ends first.
func (d *dev) awaitReady(ctx context.Context, m *member) bool {
	for {
		if _, err := d.api(m).call(ctx, http.MethodGet, "/readyz", nil, nil); err == nil {
			return true
		}
		select {
		case <-ctx.Done():
			return false
		case <-time.After(50 * time.Millisecond):
		}
	}
}

// welcome waits until the cluster is ready, adds the samples, and prints the guide.
func (d *dev) welcome(ctx context.Context) {
	bounded, cancel := context.WithTimeout(ctx, 30*time.Second)
	defer cancel()

	for i, m := range d.members {
		if !d.awaitReady(bounded, m) {
			if ctx.Err() == nil {
				d.say("%s is not ready yet; see its log lines above", m.name)
			}
			if i == 0 {
				return
			}
		}
	}

	added, err := d.addSamples(ctx)
	if err != nil && ctx.Err() == nil {
		d.say("%v%s", err, strings.TrimRight("\n"+hintOf(err), "\n"))
	}

	if ctx.Err() == nil {
		d.lines.raw(d.guide(added))
	}
}

// guide returns the introduction that dev prints.
func (d *dev) guide(added int) string {
	paint := painter(d.lines.coloured)
	var b strings.Builder
	fmt.Fprintf(&b, "\n%s\n\n",
		paint(bold, fmt.Sprintf("%s on %s; data in %s", counted(d.count, "node"), product(d.db.Program()), d.data)))
	for _, m := range d.members {
		fmt.Fprintf(&b, "  %s  pid %-7d  %s\n", paint(m.colour, m.name), m.lastPID(), m.url())
	}

	fmt.Fprintf(&b,
		"\nOpen %s/ in a browser and sign in with the token in\n%s\n"+
			"Or try commands in another terminal; they find the token themselves:\n\n",
		d.members[0].url(), d.tokenFile())
	const width = 48
	try := func(command, what string) {
		if len(command) > width { // print the explanation on the next line
			fmt.Fprintf(&b, "  %s\n", paint(bold, command))
			command = ""
		}
		fmt.Fprintf(&b, "  %s  %s\n", paint(bold, fmt.Sprintf("%-*s", width, command)), what)
	}

	me, first := program(), d.members[0]
	if first.url() != defaultServer {
		try("export GOCRONTAB_SERVER="+first.url(), "by default, commands use port 8610")
	}

	jobs := "list the jobs"
	if added > 0 {
		jobs = fmt.Sprintf("list the jobs; %d samples were added", added)
	}

	try(me+" job ls", jobs)
	try(me+" job history slow", "the outcome of each due time")
	try(me+" job run flaky --wait", "run a job now and see its output")
	try(me+" job add hi --every 2s -- echo hi", "add a job")
	try(me+" cluster", "the nodes and their load")
	try(fmt.Sprintf(`curl -sH "Authorization: Bearer $(cat %s)" %s/api/v1/jobs`, quote(d.tokenFile()), first.url()),
		"the same over HTTP")
	if d.count > 1 {
		victim := d.members[1]
		try(fmt.Sprintf("kill -9 %d", victim.lastPID()),
			fmt.Sprintf("%s dies: its runs end lost, the others take over", victim.name))
		fmt.Fprintf(&b, "  %-*s  within about %s; it restarts after %s\n", width, "", d.takeover(), d.away)
	}

	fmt.Fprintf(&b, "\nCtrl-C stops everything; the jobs and their history stay for the next start.\n\n")
	return b.String()
}
