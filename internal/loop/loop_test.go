package loop

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"strings"
	"testing"
	"testing/synctest"
	"time"
)

// trial is a loop in a bubble with what its steps return.
type trial struct {
	begin time.Time
	log   bytes.Buffer
	steps []string // when each step began, with a "!" if it was woken
}

// run runs a loop for a time.
func (r *trial) run(l Loop, most time.Duration, step Step) error {
	l.Log = slog.New(slog.NewTextHandler(&r.log, &slog.HandlerOptions{
		ReplaceAttr: func(_ []string, a slog.Attr) slog.Attr {
			if a.Key == slog.TimeKey {
				return slog.Attr{}
			}
			return a
		},
	}))

	r.begin = time.Now()
	ctx, end := context.WithTimeoutCause(context.Background(), most, errOver)
	defer end()
	return l.Run(ctx, func(ctx context.Context, woken bool) (time.Duration, error) {
		at := time.Since(r.begin).String()
		if woken {
			at += "!"
		}
		r.steps = append(r.steps, at)
		return step(ctx, woken)
	})
}

var errOver = errors.New("over")

func TestPauses(t *testing.T) {
	const ms, second, hour = time.Millisecond, time.Second, time.Hour
	broken := errors.New("broken")
	for name, c := range map[string]struct {
		loop  Loop
		takes time.Duration // how long each step takes
		pause time.Duration // what each step returns
		err   error
		want  string
	}{
		"a period from the end of a step":       {Loop{Period: second}, 250 * ms, 0, nil, "0s 1.25s 2.5s"},
		"a period from the beginning of a step": {Loop{Period: second, AtRate: true}, 250 * ms, 0, nil, "0s 1s 2s 3s"},
		"steps that take longer than their rate": {
			Loop{Period: second, AtRate: true}, 1500 * ms, 0, nil, "0s 1.5s 3s",
		},
		"a first pause of its own":             {Loop{First: 200 * ms, Period: 2 * second}, 0, 0, nil, "200ms 2.2s"},
		"a step that chooses its pause":        {Loop{Period: hour}, 0, 1500 * ms, nil, "0s 1.5s 3s"},
		"the same pause after an error":        {Loop{Period: 2 * second}, 0, 0, broken, "0s 2s"},
		"another pause after an error":         {Loop{Period: hour, Retry: second}, 0, 0, broken, "0s 1s 2s 3s"},
		"a failed step that chooses its pause": {Loop{Period: hour, Retry: hour}, 0, 2 * second, broken, "0s 2s"},
		"the usual pause after a success":      {Loop{Period: 2 * second, Retry: hour}, 0, 0, nil, "0s 2s"},
		"the usual pause after a skipped step": {Loop{Period: 2 * second, Retry: hour}, 0, 0, ErrSkipped, "0s 2s"},
		"a rate of errors": {
			Loop{Period: hour, Retry: second, AtRate: true}, 250 * ms, 0, broken, "0s 1s 2s 3s",
		},
		"a step that wants the next one at once": {
			Loop{Period: hour}, second, AtOnce, nil, "0s 1.000000001s 2.000000002s 3.000000003s",
		},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				var r trial
				err := r.run(c.loop, 3100*time.Millisecond, func(context.Context, bool) (time.Duration, error) {
					time.Sleep(c.takes)
					return c.pause, c.err
				})
				if got := strings.Join(r.steps, " "); got != c.want || err != errOver {
					t.Errorf("got steps at %s and %v, want %s and %v", got, err, c.want, errOver)
				}
			})
		})
	}
}

// TestWakes: a wake ends one pause, several during a step are one, and the pause after it is a whole
// one again.
func TestWakes(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		wake, steps := NewWake(), 0
		time.AfterFunc(300*time.Millisecond, wake.Up)
		time.AfterFunc(4500*time.Millisecond, wake.Up)

		var r trial
		l := Loop{Period: time.Second, Wake: wake}
		_ = r.run(l, 5600*time.Millisecond, func(context.Context, bool) (time.Duration, error) {
			if steps++; steps == 3 { // the one at 1.3s
				wake.Up()
				wake.Up()
			}
			return 0, nil
		})
		const want = "0s 300ms! 1.3s 1.3s! 2.3s 3.3s 4.3s 4.5s! 5.5s"
		if got := strings.Join(r.steps, " "); got != want {
			t.Errorf("got steps at %s, want %s", got, want)
		}
	})
}

// TestNilWake: nothing wakes a loop without a wake, and its wake can be used.
func TestNilWake(t *testing.T) {
	var w Wake
	w.Up()
	select {
	case <-w:
		t.Error("a nil wake wakes")
	default:
	}
}

// TestEnds: no step begins once the context has ended, even if a wake or a pause is over as well.
func TestEnds(t *testing.T) {
	for range 100 {
		ctx, end := context.WithCancelCause(t.Context())
		wake := NewWake()
		wake.Up()
		end(errOver)
		err := Loop{Wake: wake}.Run(ctx, func(context.Context, bool) (time.Duration, error) {
			t.Fatal("a step after the end")
			return 0, nil
		})
		if err != errOver {
			t.Fatalf("got %v, want %v", err, errOver)
		}
	}
}

// TestErrors: errors are logged when they begin, when they change, and when they end, but not when
// the loop has ended meanwhile.
func TestErrors(t *testing.T) {
	const (
		failed = "cannot look, trying again"
		begins = `level=WARN msg="cannot look, trying again" error=`
		ends   = `level=INFO msg="works again" after=%s warning="cannot look, trying again"`
	)
	errA, errB := errors.New("a"), errors.New("b")
	for name, c := range map[string]struct {
		errs []error // of each step, one second after the other
		want []string
	}{
		"no error":         {[]error{nil, nil}, nil},
		"one that goes on": {[]error{nil, errA, errA, errA}, []string{begins + "a"}},
		"one that ends":    {[]error{errA, errA, nil, nil}, []string{begins + "a", fmt.Sprintf(ends, "2s")}},
		"another one":      {[]error{errA, errB, errB}, []string{begins + "a", begins + "b"}},
		"the same one, a second time": {
			[]error{errA, nil, errA}, []string{begins + "a", fmt.Sprintf(ends, "1s"), begins + "a"},
		},
		"one with skipped steps between": {[]error{ErrSkipped, errA, ErrSkipped, errA, ErrSkipped}, []string{begins + "a"}},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				var r trial
				n := 0
				most := time.Duration(len(c.errs))*time.Second - 1
				_ = r.run(Loop{Period: time.Second, Failed: failed}, most, Each(func(context.Context) error {
					n++
					return c.errs[n-1]
				}))
				if got, want := strings.TrimSpace(r.log.String()), strings.Join(c.want, "\n"); got != want {
					t.Errorf("got\n%s\nwant\n%s", got, want)
				}
			})
		})
	}

	synctest.Test(t, func(t *testing.T) {
		var r trial
		_ = r.run(Loop{Period: time.Second, Failed: failed}, time.Second, Each(func(ctx context.Context) error {
			<-ctx.Done()
			return context.Cause(ctx)
		}))
		if got := r.log.String(); got != "" {
			t.Errorf("got %s, want nothing", got)
		}
	})
}

func TestJitter(t *testing.T) {
	for range 1000 {
		if got := Jitter(time.Millisecond); got < 0 || got >= time.Millisecond {
			t.Fatalf("got %s, want a part of 1ms", got)
		}
	}
	if got := Jitter(0); got != 0 {
		t.Errorf("got %s, want 0s", got)
	}
}
