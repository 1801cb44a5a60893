package result

import (
	"bytes"
	"context"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"slices"
	"strings"
	"syscall"
	"time"
	"unicode/utf8"

	"go-crontab/internal/privilege"
	"go-crontab/job"
	"go-crontab/sql/read"
)

// ArchiveTimeout is the default time limit of the archive command for one batch of records.
const ArchiveTimeout = time.Minute

// archived is a record as the archive command gets it: a line of JSON.
type archived struct {
	ID         string     `json:"id"`
	JobID      int64      `json:"job_id"`
	App        string     `json:"app"`
	Job        string     `json:"job"`
	Due        string     `json:"due"`
	Until      string     `json:"until,omitempty"` // only with count: the last due time of the record
	Count      int64      `json:"count,omitempty"`
	Kind       string     `json:"kind"`
	Request    int64      `json:"request,omitempty"` // id of the request
	Given      *job.Given `json:"given,omitempty"`
	Attempt    int        `json:"attempt"`
	Final      bool       `json:"final"`
	Outcome    string     `json:"outcome"`
	ReasonCode string     `json:"reason_code,omitempty"`
	Reason     string     `json:"reason,omitempty"`
	ExitCode   *int       `json:"exit_code,omitempty"`
	Signal     string     `json:"signal,omitempty"`
	Started    string     `json:"started,omitempty"`
	Ended      string     `json:"ended"`
	LatenessMS float64    `json:"lateness_ms"`
	Node       string     `json:"node,omitempty"`
	Bytes      int64      `json:"output_bytes"`
	Head       string     `json:"head,omitempty"`
	HeadBase64 string     `json:"head_base64,omitempty"` // instead of head, if head is not UTF-8
	Tail       string     `json:"tail,omitempty"`
	TailBase64 string     `json:"tail_base64,omitempty"`
}

func archivedOf(r *read.Run) archived {
	a := archived{
		ID: job.RunID(r.ID), JobID: r.JobID, App: r.App, Job: r.Job,
		Due: r.Due.String(), Kind: string(r.Kind), Request: max(0, r.Request), Given: r.Given, Attempt: r.Attempt, Final: r.Final,
		Outcome: r.Outcome.String(), ReasonCode: string(r.Reason.Code), Reason: r.Reason.Text,
		ExitCode: r.ExitCode, Signal: r.Signal,
		Ended: r.Ended.String(), LatenessMS: float64(r.Lateness) / 1000, Node: r.Node, Bytes: r.Output.Bytes,
	}

	if r.Count > 1 {
		a.Count, a.Until = r.Count, r.Until.String()
	}

	if r.Started != 0 {
		a.Started = r.Started.String()
	}

	a.Head, a.HeadBase64 = textOrBase64(r.Output.Head)
	a.Tail, a.TailBase64 = textOrBase64(r.Output.Tail)
	return a
}

func textOrBase64(b []byte) (text, base string) {
	if utf8.Valid(b) {
		return string(b), ""
	}
	return "", base64.StdEncoding.EncodeToString(b)
}

// ArchiveCommand hands records to a command on its standard input. bash runs the command. Exit
// status 0 means that the command has taken all records. A command that exits without reading some
// of them fails, if these do not fit into a pipe. After the timeout the command is killed together
// with its child processes.
//
// The command gets the node's environment without the node's settings, because these include the
// database's password and the cluster's secrets.
func ArchiveCommand(command string, timeout time.Duration) Archive {
	return func(ctx context.Context, runs []read.Run) error {
		var lines bytes.Buffer
		e := json.NewEncoder(&lines)
		e.SetEscapeHTML(false)
		for i := range runs {
			if err := e.Encode(archivedOf(&runs[i])); err != nil {
				return err
			}
		}

		bounded, cancel := context.WithTimeout(ctx, timeout)
		defer cancel()

		cmd := exec.CommandContext(bounded, "bash", "-c", command)
		var said tailBuffer
		cmd.Stdin, cmd.Stdout, cmd.Stderr = &lines, &said, &said
		cmd.Env = append(
			slices.DeleteFunc(os.Environ(), isSetting), fmt.Sprintf(job.ReservedEnv+"RECORDS=%d", len(runs)))
		cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
		cmd.Cancel = func() error { return syscall.Kill(-cmd.Process.Pid, syscall.SIGKILL) }
		cmd.WaitDelay = time.Second // a child process may hold the output open

		var err error
		privilege.Start(func() { err = cmd.Start() })
		if err == nil {
			err = cmd.Wait()
		}
		switch {
		case bounded.Err() != nil && ctx.Err() == nil:
			return fmt.Errorf("the command took longer than %s and was killed%s", timeout, said.words())
		case err != nil:
			return fmt.Errorf("%w%s", err, said.words())
		case lines.Len() > 0:
			return fmt.Errorf("the command exited with status 0 without reading the last %d bytes%s",
				lines.Len(), said.words())
		}
		return nil
	}
}

func isSetting(variable string) bool { return strings.HasPrefix(variable, job.ReservedEnv) }

// tailBuffer keeps the last tailMost bytes written to it.
type tailBuffer struct{ b []byte }

const tailMost = 300

func (t *tailBuffer) Write(p []byte) (int, error) {
	t.b = append(t.b, p...)
	if len(t.b) > tailMost {
		t.b = append(t.b[:0], t.b[len(t.b)-tailMost:]...)
	}
	return len(p), nil
}

func (t *tailBuffer) words() string {
	if text := strings.TrimSpace(strings.ToValidUTF8(string(t.b), "\uFFFD")); text != "" {
		return ": " + text
	}
	return ""
}
