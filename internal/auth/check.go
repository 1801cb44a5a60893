package auth

import (
	"context"
	"errors"
	"log/slog"
	"time"

	"go-crontab/internal/loop"
	"go-crontab/job"
	"go-crontab/sql"
)

// Checker asks the identity provider again about signed-in people. If a person has left a group,
// the person loses the role of that group. If the account was closed, the login ends. Every node
// runs a Checker. A node claims a login when it moves the check_at of the login's row forward, so
// one node checks each login.
//
// Failures:
//
//   - The provider is out of reach, or its answer makes no sense: the login stays valid, at most
//     until it expires, and is checked again a minute later.
//   - This node cannot open the data that was sealed with the login: the login stays valid, and is
//     checked after another period.
//   - We die before we ask the provider: another node asks after a minute.
//   - We die, or MySQL fails, after the provider has answered: another node asks again. If the
//     provider accepts a refresh token only once, it refuses then, and the person must sign in
//     again.
type Checker struct {
	CheckerConfig
	away bool // the provider did not answer the last request
}

// CheckerConfig configures a checker.
type CheckerConfig struct {
	DB   *sql.DB
	OIDC *OIDC
	Keys Sealer
	Now  func() time.Time // MySQL's clock; zero before its first reading
	Log  *slog.Logger
}

// NewChecker returns a checker. The caller runs it.
func NewChecker(cfg CheckerConfig) *Checker { return &Checker{CheckerConfig: cfg} }

const (
	// checkLease is how long a node claims a login. After a request that the provider did not
	// answer, it is also the pause.
	checkLease = job.Micros(time.Minute / time.Microsecond)
	// checksAtOnce is the most logins that one step checks.
	checksAtOnce = 50
	// mostBetweenChecks bounds the wait of a due login for a node's next step.
	mostBetweenChecks = 15 * time.Second
)

// Run checks logins until ctx ends.
func (c *Checker) Run(ctx context.Context) error {
	every := min(c.OIDC.cfg.Recheck/4, mostBetweenChecks)
	return loop.Loop{
		First:  loop.Jitter(every),
		Period: every,
		Log:    c.Log,
		Failed: "cannot check sign-ins with the identity provider, trying again",
	}.Run(ctx, loop.Each(func(ctx context.Context) error {
		now := c.Now()
		if now.IsZero() {
			return loop.ErrSkipped
		}
		return c.Check(ctx, job.MicrosOf(now))
	}))
}

// Check asks the provider about the logins that are due. It stops at the first request that the
// provider does not answer, because further requests would get no answer, either.
func (c *Checker) Check(ctx context.Context, now job.Micros) error {
	due, err := dueLogins(c.DB.Reader(ctx), now, checksAtOnce)
	if err != nil {
		return err
	}

	for i := range due {
		answered, err := c.check(ctx, &due[i], now)
		if err != nil {
			return err
		}
		if !answered {
			return nil
		}
	}

	return nil
}

// check asks the provider about one login. It reports whether Check should go on with other
// logins.
func (c *Checker) check(ctx context.Context, l *LoginRow, now job.Micros) (proceed bool, err error) {
	if mine, err := c.move(ctx, l, now+checkLease); err != nil || !mine {
		return true, err
	}

	renewal, err := openRenewal(c.Keys, l)
	if err != nil {
		c.Log.Warn("cannot check a sign-in: its refresh token cannot be decrypted",
			"login", l.ID, "who", l.Who, "error", err)
		_, err := c.move(ctx, l, now+micros(c.OIDC.cfg.Recheck))
		return true, err
	}

	v, err := c.OIDC.Renew(ctx, renewal)
	var refused *Refused
	switch {
	case errors.As(err, &refused):
		c.answers(true, nil)
		return true, c.end(ctx, l, refused)
	case err != nil:
		c.answers(false, err)
		return false, nil
	}

	c.answers(true, nil)
	return true, c.write(ctx, l, v, now)
}

// move moves the next check of a login. It reports whether the row still had the check time of l.
// If it had not, another node checks the login.
func (c *Checker) move(ctx context.Context, l *LoginRow, to job.Micros) (mine bool, err error) {
	err = c.DB.Tx(ctx, func(tx *sql.Tx) (err error) {
		mine, err = moveCheck(tx, l, to)
		return err
	})
	if mine && err == nil {
		l.CheckAt = to
	}
	return mine, err
}

// end ends the login of a person whom the provider has refused.
func (c *Checker) end(ctx context.Context, l *LoginRow, why *Refused) error {
	c.Log.Info("ended a sign-in", "login", l.ID, "who", l.Who, "reason", why.Why)
	return c.DB.RecordAt(ctx, func(tx *sql.Tx, _ job.Micros) (*job.Entry, error) {
		if existed, err := deleteLogin(tx, l.ID); err != nil || !existed {
			return nil, err
		}
		line := loginLine(ActionRevoke, l)
		line.Reason, line.Actor = why.Why, job.Actor{Who: job.Itself}
		return line, nil
	})
}

// write stores the provider's answer. A changed role gets an audit line.
func (c *Checker) write(ctx context.Context, l *LoginRow, v *Vouched, now job.Micros) error {
	row := *l
	row.Checked = now
	if err := v.Renewal.seal(c.Keys, &row); err != nil {
		return err
	}

	if v.Known {
		grants, err := grantsJSON(v.Grants)
		if err != nil {
			return err
		}
		row.Grants = grants
	}

	next := now + micros(v.Renewal.Within)
	return c.DB.RecordAt(ctx, func(tx *sql.Tx, _ job.Micros) (*job.Entry, error) {
		if mine, err := writeCheck(tx, &row, next); err != nil || !mine || row.Grants == l.Grants {
			return nil, err
		}
		line := loginLine(job.ActionUpdate, l)
		line.Became, line.Reason, line.Actor =
			row.Grants, "the identity provider changed the role", job.Actor{Who: job.Itself}
		return line, nil
	})
}

// answers remembers whether the provider answers, and logs when that changes.
func (c *Checker) answers(ok bool, err error) {
	switch {
	case !ok && !c.away:
		c.Log.Warn("the identity provider does not respond, sign-ins stay valid until they expire",
			"error", err)
	case ok && c.away:
		c.Log.Info("the identity provider responds again, checking sign-ins")
	}
	c.away = !ok
}
