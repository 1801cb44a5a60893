// Command client adds a job to a cluster, runs it once, and prints its output. It needs a cluster,
// such as the one that `go-crontab dev` starts:
//
//	GOCRONTAB_TOKEN=$(cat ~/.local/share/go-crontab/dev/token) go run ./examples/client
package main

import (
	"cmp"
	"context"
	"fmt"
	"io"
	"os"
	"time"

	"go-crontab/client"
	"go-crontab/job"
)

func main() {
	server := cmp.Or(os.Getenv("GOCRONTAB_SERVER"), "http://127.0.0.1:8610")
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	defer cancel()
	if err := run(ctx, server, os.Getenv("GOCRONTAB_TOKEN"), os.Stdout); err != nil {
		fmt.Fprintln(os.Stderr, "client:", err)
		os.Exit(1)
	}
}

func run(ctx context.Context, server, token string, out io.Writer) error {
	c, err := client.New(server, client.WithToken(token))
	if err != nil {
		return err
	}

	// Put creates or updates the job, so the program can run repeatedly.
	j, err := c.Put(ctx, job.Spec{
		App: "example", Name: "hello", Schedule: "0 9 * * 1-5", Timezone: "Europe/Berlin",
		Command: `echo "hello from $GOCRONTAB_JOB"`, Owner: "ann", Labels: map[string]string{"team": "data"},
	})
	if err != nil {
		return err
	}

	next, err := c.Next(ctx, j.ID, 3)
	if err != nil {
		return err
	}

	for _, n := range next {
		fmt.Fprintln(out, "due", n.Due.Format(time.RFC3339), n.Mark)
	}

	r, err := c.RunAndWait(ctx, j.ID)
	if err != nil {
		return err
	}

	text, err := c.Output(ctx, r.ID)
	if err != nil {
		return err
	}

	fmt.Fprintf(out, "%s on %s: %s", r.Outcome, r.Node, text)
	for j, err := range c.List(ctx, client.JobFilter{Label: "team=data"}) {
		if err != nil {
			return err
		}
		fmt.Fprintf(out, "%s/%s of %s is %s\n", j.App, j.Name, j.Owner, j.Status)
	}

	return nil
}
