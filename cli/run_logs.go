package cli

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"strconv"
	"time"

	"go-crontab/api/view"
	"go-crontab/client"
	"go-crontab/internal/sse"

	"github.com/spf13/cobra"
)

func runLogs(c *console) *cobra.Command {
	raw := false
	var f logsFlags
	cmd := &cobra.Command{
		Use: "logs RUN", Short: "Print the output of a run", Args: wants(1, 1, runArgument),
		Example: "  go-crontab run logs backup\n  go-crontab run logs backup --follow\n  go-crontab run logs backup --raw > output\n" +
			"  go-crontab run logs backup -n 50 --timestamps",
		ValidArgsFunction: completeJobs(c),
	}

	r := newRemote(c, cmd, "table")
	_ = cmd.Flags().MarkHidden("output") // output is printed unchanged
	cmd.Flags().BoolVarP(&f.follow, "follow", "f", false, "keep printing new output until the run has ended")
	cmd.Flags().BoolVar(&raw, "raw", false,
		"print all stored bytes, with control characters and without notes about dropped output")
	cmd.Flags().IntVarP(&f.last, "limit", "n", 0, "print only the last lines, this many (default all)")
	cmd.Flags().BoolVar(&f.stderr, "stderr", false,
		"print only lines from stderr, of an ended run of a job with output.mark_stderr")
	cmd.Flags().BoolVarP(&f.timestamps, "timestamps", "t", false, "print when each line of an ended run came")
	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		switch {
		case f.last < 0:
			return usageError("-n %d: want the number of lines", f.last)
		case raw && f.any():
			return usageError("--raw cannot be combined with -n, --stderr or --timestamps")
		case f.follow && (f.stderr || f.timestamps):
			return usageError("--follow cannot be combined with --stderr or --timestamps: " +
				"lines are marked once the run has ended")
		}

		run, _, err := findRun(cmd.Context(), r, args[0])
		if err != nil {
			return err
		}
		from := int64(0)
		if f.any() {
			if from, err = r.printLines(cmd.Context(), &run, f, c.now().Location()); err != nil || !f.follow {
				return err
			}
		}
		if f.follow {
			return r.follow(cmd.Context(), run.ID, raw, from)
		}
		return r.printOutput(cmd.Context(), &run, raw)
	}

	return cmd
}

func outputPath(run string) string { return "/api/v1/runs/" + url.PathEscape(run) + "/output" }

// printOutput prints the output of a run so far.
func (r *remote) printOutput(ctx context.Context, run *view.Run, raw bool) error {
	q := url.Values{}
	if raw {
		q.Set("raw", "1")
	}

	header, b, err := r.send(ctx, client.Request{Method: http.MethodGet, Path: outputPath(run.ID), Query: q})
	if err != nil {
		return err
	}

	if !raw {
		b = []byte(visible(string(b)))
	}
	if header.Get("Output-Pending") != "" {
		r.notePending()
	}

	_, err = r.out.Write(b)
	return err
}

// notePending says that the middle of a printed output may be missing for now.
func (r *remote) notePending() {
	r.notef("The node is still storing the middle of this output; print it again in a moment to see all of it.\n")
}

const (
	followEvery    = 500 * time.Millisecond
	followPatience = 30 * time.Second // with a node that does not answer
)

// follow prints the output of a run from a byte offset on, until the run has ended and everything
// is printed. It prints each byte once, even if the connection breaks and another node continues.
func (r *remote) follow(ctx context.Context, run string, raw bool, from int64) error {
	q := url.Values{}
	if from > 0 {
		q.Set("from", strconv.FormatInt(from, 10))
	}
	if raw {
		q.Set("raw", "1")
	}

	held := "" // an unfinished colour sequence at the end of the last message
	f := r.follower(outputPath(run), q)
	f.Patience = followPatience
	f.On = func(m sse.Message) error {
		switch m.Event {
		case "output":
			var part view.OutputEvent
			if err := json.Unmarshal([]byte(m.Data), &part); err != nil {
				return fmt.Errorf("cannot read the output of run %s: %w", run, err)
			}

			from = part.Next
			b := part.Bytes
			if part.Text != nil {
				var text string
				text, held = cutSequence(held + *part.Text)
				b = []byte(visible(text))
			}

			_, err := r.out.Write(b)
			return err
		case "end":
			return io.EOF
		}
		return nil
	}

	err := f.Run(ctx)
	if _, failed := io.WriteString(r.out, visible(held)); failed != nil {
		return failed
	}
	if !errors.Is(err, sse.ErrNoStream) {
		return err
	}

	return r.followByAsking(ctx, run, raw, from)
}

// followByAsking polls the output of older nodes, which have no streams. If a node cannot answer
// for a moment, it is asked again.
func (r *remote) followByAsking(ctx context.Context, run string, raw bool, from int64) error {
	read := r.textFrom
	if raw {
		read = r.bytesFrom
	}

	var p patience
	for {
		b, next, ended, err := read(ctx, run, from)
		if !p.lasts(err) {
			return err
		}
		if err == nil {
			if _, err := r.out.Write(b); err != nil {
				return err
			}
			if ended && next == from {
				return nil
			}
			if from = next; ended {
				continue // there may be more
			}
		}

		select {
		case <-ctx.Done():
			return context.Cause(ctx)
		case <-time.After(followEvery):
		}
	}
}

// mayPass reports whether a request may succeed if it is sent again soon. It may if there was no
// response, or if the node is starting, stopping or overloaded.
func mayPass(err error) bool {
	var p *apiProblem
	return !errors.As(err, &p) || p.Status == http.StatusServiceUnavailable || p.Status == http.StatusTooManyRequests ||
		p.OfProxy()
}

func (r *remote) textFrom(
	ctx context.Context, run string, from int64,
) (text []byte, next int64, ended bool, err error) {
	v, _, err := get[view.Output](ctx, r, outputPath(run), url.Values{"from": {strconv.FormatInt(from, 10)}})
	return []byte(visible(v.Text)), v.Next, v.State == "ended", err
}

func (r *remote) bytesFrom(
	ctx context.Context, run string, from int64,
) (b []byte, next int64, ended bool, err error) {
	header, b, err := r.send(ctx, client.Request{
		Method: http.MethodGet, Path: outputPath(run),
		Query: url.Values{"raw": {"1"}, "from": {strconv.FormatInt(from, 10)}},
	})
	if err != nil {
		return nil, 0, false, err
	}

	next, err = strconv.ParseInt(header.Get("Output-Next"), 10, 64)
	if err != nil {
		return nil, 0, false, fmt.Errorf("cannot follow the output: the node %s is older than this program", r.server)
	}
	return b, next, header.Get("Output-State") == "ended", nil
}
