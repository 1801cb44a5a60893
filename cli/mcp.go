package cli

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"time"

	"go-crontab/api/view"

	"github.com/modelcontextprotocol/go-sdk/mcp"
	"github.com/spf13/cobra"
)

func mcpCommand(c *console) *cobra.Command {
	write := false
	cmd := &cobra.Command{
		Use: "mcp", Short: "Serve the cluster to an agent, by the Model Context Protocol on standard input and output",
		Args: nothing,
		Long: `Serve the cluster to an agent, by the Model Context Protocol on standard input and output. The agent
can list jobs and runs, read output, explain due times and preview schedules. With --write it can
also run, pause, resume and create jobs.

The agent has the rights of the token. Give it a token of its own: the audit names the token with
each change. A token of role viewer changes nothing, even with --write.`,
		Example:           "  go-crontab mcp\n  GOCRONTAB_TOKEN_FILE=agent.token go-crontab mcp --write",
		ValidArgsFunction: cobra.NoFileCompletions,
	}

	r := newConnection(c, cmd)
	cmd.Flags().BoolVar(&write, "write", false, "also offer the tools that change something")
	cmd.RunE = func(cmd *cobra.Command, _ []string) error {
		server := mcp.NewServer(&mcp.Implementation{Name: "go-crontab", Version: readVersion().Version},
			&mcp.ServerOptions{Instructions: agentGuide})
		r.readTools(server)
		if write {
			r.writeTools(server)
		}
		return server.Run(cmd.Context(), &mcp.IOTransport{Reader: io.NopCloser(c.in), Writer: unclosed{c.out}})
	}

	return cmd
}

// unclosed is an output whose Close does nothing. The process's standard output stays open when the
// session ends.
type unclosed struct{ io.Writer }

func (unclosed) Close() error { return nil }

const agentGuide = `go-crontab is a cron cluster. A job has due times; each due time has a run, and each retry another.
A job is named by app/name; a name alone means the app "default". Times are RFC 3339, with an offset. Outcomes of runs:
succeeded, failed, timed_out, killed, lost (its node died), skipped, missed, superseded.
To find out what failed: stats, then list_runs with a job, then run_output. To find out why a job did not run: explain.`

// The arguments of the tools. The API validates their values.
type (
	agentJob struct {
		Job string `json:"job" jsonschema:"the job, as app/name or by its id"`
	}

	agentJobs struct {
		App    string `json:"app,omitempty" jsonschema:"only jobs of this app"`
		Name   string `json:"name,omitempty" jsonschema:"only jobs whose names contain this text"`
		Status string `json:"status,omitempty" jsonschema:"active, paused, finished or error"`
		Label  string `json:"label,omitempty" jsonschema:"only jobs with this label, as key=value"`
		Owner  string `json:"owner,omitempty" jsonschema:"only jobs of this owner"`
		agentPage
	}

	agentRuns struct {
		Job     string `json:"job,omitempty" jsonschema:"only runs of this job, as app/name"`
		App     string `json:"app,omitempty" jsonschema:"only runs of this app"`
		Outcome string `json:"outcome,omitempty" jsonschema:"only runs that ended so, such as failed"`
		State   string `json:"state,omitempty" jsonschema:"running or ended"`
		Node    string `json:"node,omitempty" jsonschema:"only runs on this node"`
		From    string `json:"from,omitempty" jsonschema:"only due times at or after this time"`
		To      string `json:"to,omitempty" jsonschema:"only due times before this time"`
		agentPage
	}

	// agentPage selects a page of a list.
	agentPage struct {
		Limit  int    `json:"limit,omitempty" jsonschema:"most items of the answer, 1 to 200; 50 without it"`
		Cursor string `json:"cursor,omitempty" jsonschema:"the next of the previous answer, for the next page"`
	}

	agentTime struct {
		Job string `json:"job" jsonschema:"the job, as app/name or by its id"`
		At  string `json:"at" jsonschema:"the time to explain"`
	}

	agentRun struct {
		Run string `json:"run" jsonschema:"the id of the run"`
	}

	agentWindow struct {
		Window string `json:"window,omitempty" jsonschema:"the time to look back, such as 12h or 7d; 24h without it"`
		App    string `json:"app,omitempty" jsonschema:"only jobs of this app"`
	}

	agentSchedule struct {
		Schedule map[string]any `json:"schedule" jsonschema:"the fields of a job that determine its due times, such as {\"schedule\": \"0 3 * * *\", \"timezone\": \"Europe/Berlin\"}"`
	}

	agentPause struct {
		Job    string `json:"job" jsonschema:"the job, as app/name or by its id"`
		Reason string `json:"reason" jsonschema:"the reason, in one line, for the people who see the pause"`
		Until  string `json:"until,omitempty" jsonschema:"the end of the pause; without it, until somebody resumes the job"`
	}

	agentCreate struct {
		Definition map[string]any `json:"definition" jsonschema:"the job, with app, name, a schedule, and command or http"`
		Preview    bool           `json:"preview,omitempty" jsonschema:"create nothing: check the definition, and answer with its warnings"`
	}
)

func (r *remote) readTools(s *mcp.Server) {
	addTool(r, s, reads, "list_jobs", "List jobs, with their health and next due time.",
		func(ctx context.Context, a agentJobs) ([]byte, error) {
			return r.read(ctx, "/api/v1/jobs", "app", a.App, "name", a.Name, "status", a.Status, "label", a.Label,
				"owner", a.Owner, "limit", a.limit(), "cursor", a.Cursor)
		})
	addTool(r, s, reads, "get_job", "Read a job: its definition, health and next due time.",
		func(ctx context.Context, a agentJob) ([]byte, error) {
			_, raw, err := findJob(ctx, r, a.Job)
			return raw, err
		})
	addTool(r, s, reads, "list_runs", "List runs, the latest first, with their outcomes, nodes and reasons.",
		func(ctx context.Context, a agentRuns) ([]byte, error) {
			return r.read(ctx, "/api/v1/runs", "job", a.Job, "app", a.App, "outcome", a.Outcome, "state", a.State,
				"node", a.Node, "from", a.From, "to", a.To, "limit", a.limit(), "cursor", a.Cursor)
		})
	addTool(r, s, reads, "get_run", "Read a run: its outcome, reason, exit code, node and times.",
		func(ctx context.Context, a agentRun) ([]byte, error) {
			return r.read(ctx, "/api/v1/runs/"+url.PathEscape(a.Run))
		})
	addTool(r, s, reads, "run_output", "Read what a run printed: its beginning, and its end if it is long.",
		func(ctx context.Context, a agentRun) ([]byte, error) {
			text, err := r.read(ctx, "/api/v1/runs/"+url.PathEscape(a.Run)+"/output")
			return shortened(text), err
		})
	addTool(r, s, reads, "explain", "Explain why a job ran, or did not run, at a time.",
		func(ctx context.Context, a agentTime) ([]byte, error) {
			j, _, err := findJob(ctx, r, a.Job)
			if err != nil {
				return nil, err
			}
			return r.read(ctx, j.path()+"/explain", "at", a.At)
		})
	addTool(r, s, reads, "stats", "Count runs and failures by job, the job with the most failures first.",
		func(ctx context.Context, a agentWindow) ([]byte, error) {
			return r.read(ctx, "/api/v1/stats/jobs", "window", a.Window, "app", a.App)
		})
	addTool(r, s, reads, "preview", "Compute the next due times of a schedule. Nothing is saved.",
		func(ctx context.Context, a agentSchedule) ([]byte, error) {
			return r.call(ctx, http.MethodPost, "/api/v1/preview", nil, a.Schedule)
		})
}

func (r *remote) writeTools(s *mcp.Server) {
	addTool(r, s, changes, "run_job", "Run a job now, in addition to its schedule.",
		func(ctx context.Context, a agentJob) ([]byte, error) {
			j, _, err := findJob(ctx, r, a.Job)
			if err != nil {
				return nil, err
			}
			_, raw, err := once[view.Requested](ctx, r, j.path()+"/run", nil, struct{}{})
			return raw, err
		})
	addTool(r, s, changes, "pause_job", "Pause a job: its due times are not run.",
		func(ctx context.Context, a agentPause) ([]byte, error) {
			return r.changeJob(ctx, a.Job, "/pause", present("reason", a.Reason, "until", a.Until))
		})
	addTool(r, s, changes, "resume_job", "End the pause of a job.",
		func(ctx context.Context, a agentJob) ([]byte, error) {
			return r.changeJob(ctx, a.Job, "/resume", nil)
		})
	addTool(r, s, changes, "create_job", "Create a job. Preview it first.",
		func(ctx context.Context, a agentCreate) ([]byte, error) {
			if a.Preview {
				return r.call(ctx, http.MethodPost, "/api/v1/apply", nil,
					map[string]any{"jobs": []any{a.Definition}, "dry_run": true})
			}
			return r.call(ctx, http.MethodPost, "/api/v1/jobs", nil, a.Definition)
		})
}

// Whether a tool changes something. The agent's program may ask its user before a change.
const (
	reads   = true
	changes = false
)

// addTool adds a tool that answers with the API's answer. A refusal by the API is an answer, too:
// the agent reads it and corrects its request.
func addTool[Args any](
	r *remote, s *mcp.Server, readOnly bool, name, about string, do func(context.Context, Args) ([]byte, error),
) {
	tool := &mcp.Tool{
		Name: name, Description: about,
		Annotations: &mcp.ToolAnnotations{ReadOnlyHint: readOnly, OpenWorldHint: new(bool)},
	}

	mcp.AddTool(s, tool, func(ctx context.Context, _ *mcp.CallToolRequest, a Args) (*mcp.CallToolResult, any, error) {
		ctx, cancel := context.WithTimeout(ctx, time.Minute)
		defer cancel()

		answer, err := do(ctx, a)
		if err == nil {
			return &mcp.CallToolResult{Content: []mcp.Content{&mcp.TextContent{Text: string(answer)}}}, nil, nil
		}
		if hint := hintOf(err); hint != "" {
			err = fmt.Errorf("%w\n%s", err, hint)
		}
		return nil, nil, err
	})
}

// read gets a path with the given parameters. Empty parameters are left out.
func (r *remote) read(ctx context.Context, path string, parameters ...string) ([]byte, error) {
	query := url.Values{}
	for name, value := range present(parameters...) {
		query.Set(name, value)
	}
	return r.call(ctx, http.MethodGet, path, query, nil)
}

// changeJob posts a change of a job.
func (r *remote) changeJob(ctx context.Context, name, verb string, body map[string]string) (json.RawMessage, error) {
	j, _, err := findJob(ctx, r, name)
	if err != nil {
		return nil, err
	}
	if body == nil {
		body = map[string]string{}
	}
	return r.call(ctx, http.MethodPost, j.path()+verb, nil, body)
}

// present returns the pairs of name and value whose value is not empty.
func present(pairs ...string) map[string]string {
	all := map[string]string{}
	for i := 0; i < len(pairs); i += 2 {
		if pairs[i+1] != "" {
			all[pairs[i]] = pairs[i+1]
		}
	}
	return all
}

func (p *agentPage) limit() string {
	if p.Limit == 0 {
		return ""
	}
	return fmt.Sprint(p.Limit)
}

// agentOutput limits the output in one answer, in bytes.
const agentOutput = 48 << 10

// shortened returns the beginning and the end of a long output.
func shortened(text []byte) []byte {
	if len(text) <= agentOutput {
		return text
	}

	half := agentOutput / 2
	gap := fmt.Sprintf("\n… %d bytes left out …\n", len(text)-2*half)
	return append(append(append([]byte{}, text[:half]...), gap...), text[len(text)-half:]...)
}
