package job

import (
	"testing"
	"time"
)

func TestAgain(t *testing.T) {
	t.Parallel()
	exponential := Retry{Attempts: 5, Backoff: Duration(10 * time.Second), Factor: 3, MaxBackoff: Duration(time.Minute)}

	for name, tc := range map[string]struct {
		spec    Spec
		attempt int
		outcome Outcome
		spread  float64
		after   time.Duration
		ok      bool
	}{
		"no retry is the default":           {Spec{}, 1, Failed, 0, 0, false},
		"the first retry waits the backoff": {Spec{Retry: exponential}, 1, Failed, 0, 10 * time.Second, true},
		"each one waits a factor longer": {
			Spec{Retry: exponential}, 2, TimedOut, 0, 30 * time.Second, true,
		},
		"and no longer than the bound":       {Spec{Retry: exponential}, 4, Failed, 0, time.Minute, true},
		"the last attempt is the last":       {Spec{Retry: exponential}, 5, Failed, 0, 0, false},
		"what succeeded is over":             {Spec{Retry: exponential}, 1, Succeeded, 0, 0, false},
		"killed is not retried unless asked": {Spec{Retry: exponential}, 1, Killed, 0, 0, false},
		"killed is retried if asked": {
			Spec{Retry: Retry{Attempts: 2, On: []Outcome{Killed}}}, 1, Killed, 0, 10 * time.Second, true,
		},
		"jitter comes on top": {
			Spec{Retry: Retry{Attempts: 2, Jitter: Duration(4 * time.Second)}}, 1, Failed, 0.5, 12 * time.Second, true,
		},
		"lost fails":                {Spec{Retry: exponential}, 1, Lost, 0, 0, false},
		"lost is run again at once": {Spec{OnLost: LostRerun}, 1, Lost, 0, 0, true},
		"but not for ever":          {Spec{OnLost: LostRerun}, LostAttempts, Lost, 0, 0, false},
		"as often as retries allow if that is more": {
			Spec{OnLost: LostRerun, Retry: exponential}, 4, Lost, 0, 0, true,
		},
		"a huge number of attempts does not overflow": {
			Spec{Retry: Retry{Attempts: MaxAttempts, Factor: 100}}, MaxAttempts - 1, Failed, 0, time.Hour, true,
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			tc.spec.Defaults(time.Unix(0, 0))
			after, ok := tc.spec.Again(tc.attempt, tc.outcome, tc.spread)

			if after != tc.after || ok != tc.ok {
				t.Errorf("got %s, %v, want %s, %v", after, ok, tc.after, tc.ok)
			}
		})
	}
}
