package execute

import (
	"context"
	"os/exec"
	"testing"

	"go-crontab/job"
)

// The two belong together: what a command costs here, and what the same command with the same environment costs with
// the bare standard library.
//
//	go test ./execute -run '^$' -bench 'Bash|BareExec' -count 10

func BenchmarkBash(b *testing.B) {
	s := shell(b)
	b.RunParallel(func(pb *testing.PB) {
		for pb.Next() {
			if res := s.Execute(context.Background(), attempt("echo hello")); res.Outcome != job.Succeeded || res.Output.Bytes != 6 {
				b.Errorf("got %v %q", res.Outcome, res.Reason)
			}
		}
	})
}

func BenchmarkBareExec(b *testing.B) {
	s := shell(b)
	env := about(attempt(""), s.env)
	b.RunParallel(func(pb *testing.PB) {
		for pb.Next() {
			cmd := exec.Command("bash", "-c", "echo hello")
			cmd.Dir, cmd.Env = s.cfg.Dir, env
			if out, err := cmd.CombinedOutput(); err != nil || len(out) != 6 {
				b.Errorf("got %q, %v", out, err)
			}
		}
	})
}

func BenchmarkNoop(b *testing.B) {
	a := attempt("")
	for b.Loop() {
		Noop{}.Execute(context.Background(), a)
	}
}
