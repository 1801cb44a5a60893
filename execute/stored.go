package execute

import (
	"context"
	"errors"
	"fmt"
	"time"

	"go-crontab/job"
)

// Stored reads the cluster's secrets.
type Stored interface {
	// Values returns the named secrets that exist and that jobs of the app may use. It returns at
	// the latest when ctx ends. If an error has a Temporary method that returns true, the database
	// failed, but may work again soon.
	Values(ctx context.Context, app string, names []job.Secret) (map[job.Secret]string, error)
}

// known holds the secrets of an attempt while it runs.
type known struct {
	values map[job.Secret]string
	masker *masker // nil: nothing to hide
}

// String returns stars, so that a print never shows a secret.
func (*known) String() string { return stars }

// GoString returns stars.
func (*known) GoString() string { return stars }

// value returns one of the cluster's secrets, or an error if the job has none of that name.
func (k *known) value(name job.Secret) (string, error) {
	if k != nil {
		if value, ok := k.values[name]; ok {
			return value, nil
		}
	}
	return "", job.Coded(job.ReasonSecretUnreadable, fmt.Errorf("no secret %s exists that the job may use", name))
}

// mask hides the secrets of an attempt in a text.
func (k *known) mask(text string) string {
	if k == nil {
		return text
	}
	return k.masker.text(text)
}

// hiding returns a masking for the attempt's output, nil if there is nothing to hide.
func (k *known) hiding() *masking {
	if k == nil || k.masker == nil {
		return nil
	}
	return &masking{m: k.masker}
}

// uses lists the places in which an attempt names secrets.
func (a *Attempt) uses() []job.SecretUse {
	spec := job.Spec{Command: a.Command, HTTP: a.HTTP, CommandOptions: a.Options}
	for name, secret := range a.secretParams {
		if spec.Params == nil {
			spec.Params = map[string]job.Param{}
		}
		spec.Params[name] = job.Param{Secret: secret}
	}
	return spec.SecretUses()
}

// withSecrets executes an attempt that names secrets.
func (k *Kinds) withSecrets(ctx context.Context, e Executor, a Attempt, uses []job.SecretUse) job.Result {
	values, err := k.values(ctx, &a, job.SecretNames(uses))
	switch {
	case errors.Is(err, errLate):
		return job.Result{Outcome: job.Missed, Reason: reason("", "its secrets could not be read in time")}
	case ctx.Err() != nil:
		return killed(ctx)
	case err != nil:
		return failed(job.ReasonSecretUnreadable, err)
	}

	a.known = &known{values, newMasker(values)}
	if err := a.fillParams(); err != nil {
		return failed(job.ReasonSecretUnreadable, err)
	}
	if a.Command != "" {
		if a.Options, err = a.Options.FillSecrets(a.known.value); err != nil {
			return failed(job.ReasonSecretUnreadable, err)
		}
	}

	res := e.Execute(ctx, a)
	res.Reason.Text = a.known.mask(res.Reason.Text)
	return res
}

// secretPause is the interval between tries to read secrets while the database is unreachable.
const secretPause = 50 * time.Millisecond

// values reads secrets. It retries while the attempt may begin, so that an unreachable database
// does not fail the attempt.
func (k *Kinds) values(ctx context.Context, a *Attempt, names []job.Secret) (map[job.Secret]string, error) {
	if k.Stored == nil {
		return nil, nil
	}

	look := ctx
	if !a.BeginBy.IsZero() { // bounded, because the attempt holds a slot
		var cancel context.CancelFunc
		look, cancel = context.WithDeadline(ctx, a.BeginBy)
		defer cancel()
	}

	for {
		values, err := k.Stored.Values(look, a.App, names)
		var t interface{ Temporary() bool }
		switch {
		case err == nil, !errors.As(err, &t), !t.Temporary():
			return values, err
		case ctx.Err() != nil, a.May == nil:
			return nil, err
		case !a.May():
			return nil, errLate
		}

		select {
		case <-ctx.Done():
		case <-time.After(secretPause):
		}
	}
}

// secret returns a secret for an attempt's signature or key: the cluster's secret if there is one,
// or else the node's own.
func (h *HTTP) secret(a *Attempt, name job.Secret) ([]byte, error) {
	if value, err := a.known.value(name); err == nil {
		return []byte(value), nil
	}
	return h.secrets.Secret(a.App, name)
}
