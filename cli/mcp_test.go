package cli

import (
	"context"
	"encoding/json"
	"io"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/modelcontextprotocol/go-sdk/mcp"
)

// agent is a session with `go-crontab mcp`.
type agent struct {
	t       *testing.T
	session *mcp.ClientSession
}

func (s *server) agent(token string, args ...string) *agent {
	s.t.Helper()
	ctx, stop := context.WithTimeout(context.Background(), time.Minute)
	toServer, fromAgent := io.Pipe()
	toAgent, fromServer := io.Pipe()

	ended := make(chan int, 1)
	args = append([]string{"mcp", "--server", s.url, "--token", token}, args...)
	go func() { ended <- Main(args, toServer, fromServer, io.Discard) }()

	client := mcp.NewClient(&mcp.Implementation{Name: "test", Version: "1"}, nil)
	session, err := client.Connect(ctx, &mcp.IOTransport{Reader: toAgent, Writer: fromAgent}, nil)
	if err != nil {
		s.t.Fatal(err)
	}

	s.t.Cleanup(func() {
		defer stop()
		_ = session.Close()
		_ = fromAgent.Close()
		select {
		case code := <-ended:
			if code != exitOK {
				s.t.Errorf("mcp exits with %d after the agent has gone, want %d", code, exitOK)
			}
		case <-ctx.Done():
			s.t.Error("mcp does not end after the agent has gone")
		}
	})
	return &agent{s.t, session}
}

// call calls a tool, and returns its text. refused says whether the tool must answer with an error.
func (a *agent) call(refused bool, tool string, args map[string]any) string {
	a.t.Helper()
	got, err := a.session.CallTool(a.t.Context(), &mcp.CallToolParams{Name: tool, Arguments: args})
	if err != nil {
		a.t.Fatalf("%s: %v", tool, err)
	}

	text := got.Content[0].(*mcp.TextContent).Text
	if got.IsError != refused {
		a.t.Errorf("%s %v: got an error: %v, want: %v\n%s", tool, args, got.IsError, refused, text)
	}
	return text
}

func (a *agent) tools() (names []string) {
	a.t.Helper()
	for tool, err := range a.session.Tools(a.t.Context(), nil) {
		if err != nil {
			a.t.Fatal(err)
		}
		names = append(names, tool.Name)
	}
	return names
}

// TestAgents serves a cluster to agents: one that may only read, one that may write, and one whose
// token may not.
func TestAgents(t *testing.T) {
	t.Parallel()

	s := serve(t, migrated(t), "one").ready()
	s.wants(0, "job add shop/close --schedule @yearly -- true")

	reader := s.agent(s.token())
	if tools := reader.tools(); slices.Contains(tools, "run_job") || !slices.Contains(tools, "list_jobs") {
		t.Errorf("without --write: got the tools %q", tools)
	}
	if text := reader.call(false, "list_jobs", map[string]any{"app": "shop"}); !strings.Contains(text, `"name":"close"`) {
		t.Errorf("list_jobs: got %s", text)
	}
	if text := reader.call(true, "get_job", map[string]any{"job": "shop/clsoe"}); !strings.Contains(text, "did you mean") {
		t.Errorf("a mistyped job: got %s", text)
	}
	if text := reader.call(true, "list_runs", map[string]any{"outcom": "failed"}); !strings.Contains(text, "outcom") {
		t.Errorf("a mistyped argument: got %s", text)
	}
	if text := reader.call(true, "preview", map[string]any{"schedule": map[string]any{"schedule": "61 * * * *"}}); !strings.Contains(text, "schedule") {
		t.Errorf("a bad schedule: got %s", text)
	}

	// An agent with a token of its own, whose name the audit has.
	var made struct{ Token string }
	text := s.wants(0, "token create robot --role admin --app shop -o json").out
	if err := json.Unmarshal([]byte(text), &made); err != nil {
		t.Fatal(err, text)
	}

	writer := s.agent(made.Token, "--write")
	definition := map[string]any{"app": "shop", "name": "count", "schedule": "@yearly", "command": "echo counted"}
	if text := writer.call(false, "create_job", map[string]any{"definition": definition, "preview": true}); !strings.Contains(text, `"dry_run":true`) {
		t.Errorf("the preview of a job: got %s", text)
	}
	s.wants(exitNotFound, "job show shop/count")
	writer.call(false, "create_job", map[string]any{"definition": definition})
	writer.call(false, "run_job", map[string]any{"job": "shop/count"})
	writer.call(false, "pause_job", map[string]any{"job": "shop/count", "reason": "the shop is closed"})
	writer.call(false, "resume_job", map[string]any{"job": "shop/count"})
	s.wants(0, "audit --job shop/count", "robot", "the shop is closed")
	elsewhere := map[string]any{"app": "ops", "name": "x", "schedule": "@yearly", "command": "true"}
	writer.call(true, "create_job", map[string]any{"definition": elsewhere})

	await(t, "the run of shop/count", 20*time.Second, func() bool {
		return strings.Contains(writer.call(false, "list_runs", map[string]any{"job": "shop/count", "outcome": "succeeded"}), `"succeeded"`)
	})
	var runs struct{ Items []struct{ ID string } }
	text = writer.call(false, "list_runs", map[string]any{"job": "shop/count", "outcome": "succeeded"})
	if err := json.Unmarshal([]byte(text), &runs); err != nil || len(runs.Items) == 0 {
		t.Fatalf("%v: %s", err, text)
	}
	if text := writer.call(false, "run_output", map[string]any{"run": runs.Items[0].ID}); text != "counted\n" {
		t.Errorf("run_output: got %q", text)
	}

	text = s.wants(0, "token create watcher --role viewer -o json").out
	if err := json.Unmarshal([]byte(text), &made); err != nil {
		t.Fatal(err, text)
	}
	viewer := s.agent(made.Token, "--write")
	if text := viewer.call(true, "run_job", map[string]any{"job": "shop/count"}); !strings.Contains(text, "operator") {
		t.Errorf("a viewer runs a job: got %s", text)
	}
}

func TestShortened(t *testing.T) {
	t.Parallel()

	short := []byte("all of it")
	if got := shortened(short); string(got) != string(short) {
		t.Errorf("got %q", got)
	}

	long := []byte("BEGIN" + strings.Repeat("x", agentOutput) + "END")
	got := string(shortened(long))
	if !strings.HasPrefix(got, "BEGIN") || !strings.HasSuffix(got, "END") || !strings.Contains(got, "\n… 8 bytes left out …\n") {
		t.Errorf("got %d bytes: %.40s … %s", len(got), got, got[len(got)-40:])
	}
}
