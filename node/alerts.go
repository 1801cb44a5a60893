package node

import (
	"context"

	"go-crontab/execute"
	"go-crontab/internal/alert"
	"go-crontab/internal/secret"
)

// newOutside makes the sender of alert messages. It may call the same addresses as HTTP jobs, signs
// like them, and can read the cluster's secrets.
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
	}), nil
}

// Alerts sends alert messages.
type Alerts struct{ n *Node }

// Alerts returns access to alert messages.
func (n *Node) Alerts() Alerts { return Alerts{n} }

// Test sends a message to a channel now, and returns the result. ErrNotFound means that there is no
// such channel.
func (a Alerts) Test(ctx context.Context, channel string) (alert.Tested, error) {
	return a.n.outside.Test(ctx, a.n.api, channel, a.n.clock.Now())
}
