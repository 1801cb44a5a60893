package node

import (
	"context"

	"go-crontab/execute"
	"go-crontab/internal/alert"
	"go-crontab/internal/secret"
)

// newOutside makes the sender of alert messages. The sender may call the same addresses as HTTP
// jobs, signs in the same way, and can read the cluster's secrets.
func newOutside(cfg *Config, secrets *secret.Reader) (*alert.Outside, error) {
	dial, err := execute.NewDial(execute.HTTPConfig{Allow: cfg.HTTPAllow})
	if err != nil {
		return nil, err
	}

	return alert.NewOutside(alert.OutsideConfig{
		Dial:    dial,
		Sign:    execute.Sign,
		Mask:    execute.Mask,
		Secrets: secrets,
		Version: cfg.Version,
		Node:    cfg.Name,

		PublicURL: cfg.PublicURL,
	}), nil
}

// Alerts sends alert messages.
type Alerts struct{ n *Node }

// Alerts returns access to alert messages.
func (n *Node) Alerts() Alerts { return Alerts{n} }

// Test sends test messages now, and returns the results in the same order.
func (a Alerts) Test(ctx context.Context, samples []alert.Sample) ([]alert.Tested, error) {
	return a.n.outside.TestAll(ctx, samples, a.n.clock.Now())
}
