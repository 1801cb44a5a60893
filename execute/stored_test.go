package execute

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"strings"
	"testing"
	"time"

	"go-crontab/job"
)

// kept holds secrets of the cluster; reading them may fail.
type kept struct {
	values map[job.Secret]string
	fail   func() error
}

func (k *kept) Values(context.Context, string, []job.Secret) (map[job.Secret]string, error) {
	if k.fail != nil {
		if err := k.fail(); err != nil {
			return nil, err
		}
	}
	return k.values, nil
}

type away struct{}

func (away) Error() string   { return "no database" }
func (away) Temporary() bool { return true }

// told is an executor that records its attempts.
type told struct{ last *Attempt }

func (x *told) Execute(_ context.Context, a Attempt) job.Result {
	x.last = &a
	return job.Result{Outcome: job.Succeeded, Reason: reason("", "said "+a.Options.Stdin)}
}

func TestSecretsOfAnAttempt(t *testing.T) {
	t.Parallel()
	const value = "hunter2-pg"
	looks := 0

	for name, c := range map[string]struct {
		fail    func() error
		may     func() bool
		stdin   string
		outcome job.Outcome
		reason  string
	}{
		"there it is":           {nil, nil, "{{secret.pg}}", job.Succeeded, "said ***"},
		"there it is not":       {nil, nil, "{{secret.gone}}", job.Failed, "stdin: no secret gone exists that the job may use"},
		"it cannot be opened":   {func() error { return errors.New("secret pg: another key") }, nil, "{{secret.pg}}", job.Failed, "secret pg: another key"},
		"away for a moment":     {func() error { looks++; return map[bool]error{true: away{}}[looks < 3] }, func() bool { return true }, "{{secret.pg}}", job.Succeeded, "said ***"},
		"away for too long":     {func() error { return away{} }, func() bool { return false }, "{{secret.pg}}", job.Missed, "its secrets could not be read in time"},
		"no secrets, no looks":  {func() error { return errors.New("nobody asks") }, nil, "{{due}}", job.Succeeded, "said {{due}}"},
		"nobody says how long":  {func() error { return away{} }, nil, "{{secret.pg}}", job.Failed, "no database"},
		"what looks like stars": {nil, nil, "*** {{secret.pg}}", job.Succeeded, "said *** ***"},
	} {
		x := &told{}
		k := &Kinds{Command: x, Stored: &kept{map[job.Secret]string{"pg": value}, c.fail}}
		a := Attempt{Command: "cat", Options: job.CommandOptions{Stdin: c.stdin}, May: c.may}
		if r := k.Execute(t.Context(), a); r.Outcome != c.outcome || r.Reason.Text != c.reason || (x.last != nil) != (c.outcome == job.Succeeded) {
			t.Errorf("%s: got %+v, want %s, %s", name, r, c.outcome, c.reason)
		} else if failed := r.Outcome == job.Failed; failed != (r.Reason.Code == job.ReasonSecretUnreadable) {
			t.Errorf("%s: it ended %s with the code %q", name, r.Outcome, r.Reason.Code)
		}
		if strings.Contains(c.stdin, "secret.pg") && x.last != nil && (!strings.Contains(x.last.Options.Stdin, value) || strings.Contains(fmt.Sprintf("%v %+v %#v", x.last.known, x.last.known, x.last.known), value)) {
			t.Errorf("%s: was told %+v", name, x.last)
		}
	}

	ctx, cancel := context.WithCancelCause(t.Context())
	time.AfterFunc(50*time.Millisecond, func() { cancel(ErrKilled) })
	k := &Kinds{Command: &told{}, Stored: &kept{nil, func() error { return away{} }}}
	if r := k.Execute(ctx, Attempt{Command: "cat", Options: job.CommandOptions{Stdin: "{{secret.pg}}"}, May: func() bool { return true }}); r.Outcome != job.Killed {
		t.Errorf("killed meanwhile: got %+v", r)
	}
}

// hanging never answers, as if all database connections were taken.
type hanging struct{}

func (hanging) Values(ctx context.Context, _ string, _ []job.Secret) (map[job.Secret]string, error) {
	<-ctx.Done()
	return nil, away{}
}

// TestSecretsAreNotWaitedForForEver: an attempt waits for its secrets as long as it may begin, and then gives its
// slot back.
func TestSecretsAreNotWaitedForForEver(t *testing.T) {
	x := &told{}
	inBubble(t, (&Kinds{Command: x, Stored: hanging{}}).Execute, func(b *bubble) {
		s := b.attempt(1, 0)
		s.Spec.Stdin = "{{secret.pg}}"
		b.Add([]job.Started{s})
		time.Sleep(job.SpawnWindow*time.Microsecond - 1)
		if got := b.look(); got.freed != 0 || b.Free() != 2 {
			t.Errorf("while it may begin: given back %d times, %d free; want it to wait", got.freed, b.Free())
		}
		time.Sleep(2 * secretPause)
		if got := b.look(); got.freed != 1 || b.Free() != 3 || len(got.runs) != 0 || x.last != nil {
			t.Errorf("given back %d times, %d free, runs %+v; want it given back", got.freed, b.Free(), got.runs)
		}
	})
}

// TestSecretsGoToOneServer: after a redirect to another server, no header with a secret goes there.
func TestSecretsGoToOneServer(t *testing.T) {
	t.Parallel()
	const value = "hunter2-pg"
	elsewhere := newSite(t, func(http.ResponseWriter, *http.Request) {})
	first := newSite(t, func(w http.ResponseWriter, r *http.Request) {
		http.Redirect(w, r, elsewhere.URL+"/", http.StatusTemporaryRedirect)
	})
	k := &Kinds{HTTP: requests(t), Stored: &kept{map[job.Secret]string{"pg": value}, nil}}
	a := request(first.URL, func(r *job.HTTP) {
		r.Redirects = 1
		r.Headers = map[string]string{"User-Agent": "{{secret.pg}}", "Accept": "a {{secret.pg}}", "X-Key": "{{secret.pg}}", "Content-Type": "text/x"}
		r.Sign = &job.HTTPSign{Secret: "pg"}
	})
	is(t, "the call", k.Execute(t.Context(), a), job.Succeeded)
	if got := first.asked(); len(got) != 1 || got[0].header.Get("User-Agent") != value || got[0].header.Get("X-Gocrontab-Signature") == "" {
		t.Errorf("the server got %+v", got)
	}
	if got := elsewhere.asked(); len(got) != 1 || strings.Contains(fmt.Sprint(got), value) || got[0].header.Get("X-Gocrontab-Signature") != "" {
		t.Errorf("the other one got %+v", got)
	}
	a.HTTP.Body, a.HTTP.Method = "{{secret.pg}}", "POST"
	is(t, "with a body", k.Execute(t.Context(), a), job.Failed, "the body has secrets, and this is another server")
	if n := len(elsewhere.asked()); n != 1 {
		t.Errorf("it was asked %d times", n)
	}
}

// TestKeysAreNoSecrets: a job cannot sign with the variable that holds the cluster's keys.
func TestKeysAreNoSecrets(t *testing.T) {
	t.Setenv("GOCRONTAB_SECRET_KEY", "master")
	t.Setenv("GOCRONTAB_SECRET_KEY_FILE", "/master")
	for _, name := range []job.Secret{"key", "KEY", "key-file", "Key.File"} {
		if value, err := (NodeSecrets{Grants: Grants{"KEY": {everyApp}, "KEY_FILE": {everyApp}}}).Secret("default", name); err == nil || value != nil || strings.Contains(err.Error(), "master") {
			t.Errorf("%s: got %q, %v", name, value, err)
		}
	}
}
