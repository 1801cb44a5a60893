package client

import (
	"context"
	"net/http"
	"net/url"

	"go-crontab/api/view"
)

// Types of nodes.
type (
	// Node is a node of the cluster. Reason, By and Since describe its cordon, if any.
	Node = view.Node
	// Handler is a Go function that jobs call by its key.
	Handler = view.Handler
)

const nodesPath = "/api/v1/nodes"

// Nodes lists the nodes by name. The list includes nodes that left in the last 24 hours; their
// state is left. It also includes nodes that vanished in that time; their state is gone.
func (c *Client) Nodes(ctx context.Context) ([]Node, error) {
	p, err := ask[view.Page[Node]](ctx, c, Request{Method: http.MethodGet, Path: nodesPath})
	if err != nil {
		return nil, err
	}
	return p.Items, nil
}

// Cordon makes a node take no new work until it is uncordoned. The reason may be empty.
func (c *Client) Cordon(ctx context.Context, node, reason string) (*Node, error) {
	return c.changeNode(ctx, node, "cordon", reason)
}

// Drain cordons a node. Drained is true in the result once the node has no work left.
func (c *Client) Drain(ctx context.Context, node, reason string) (*Node, error) {
	return c.changeNode(ctx, node, "drain", reason)
}

// Uncordon lets a node take new work again.
func (c *Client) Uncordon(ctx context.Context, node string) (*Node, error) {
	return c.changeNode(ctx, node, "uncordon", "")
}

func (c *Client) changeNode(ctx context.Context, node, verb, reason string) (*Node, error) {
	return ask[Node](ctx, c, Request{
		Method: http.MethodPost,
		Path:   nodesPath + "/" + url.PathEscape(node) + "/" + verb,
		Body:   because(reason),
	})
}

const handlersPath = "/api/v1/handlers"

// Handlers lists the handlers by key.
func (c *Client) Handlers(ctx context.Context) ([]Handler, error) {
	p, err := ask[view.Page[Handler]](ctx, c, Request{Method: http.MethodGet, Path: handlersPath})
	if err != nil {
		return nil, err
	}
	return p.Items, nil
}

// DisableHandler stops all nodes from starting jobs with this handler. The reason may be empty.
func (c *Client) DisableHandler(ctx context.Context, key, reason string) (*Handler, error) {
	return c.changeHandler(ctx, key, "disable", reason)
}

// EnableHandler lets nodes start jobs with this handler again.
func (c *Client) EnableHandler(ctx context.Context, key string) (*Handler, error) {
	return c.changeHandler(ctx, key, "enable", "")
}

func (c *Client) changeHandler(ctx context.Context, key, verb, reason string) (*Handler, error) {
	return ask[Handler](ctx, c, Request{
		Method: http.MethodPost,
		Path:   handlersPath + "/" + url.PathEscape(key) + "/" + verb,
		Body:   because(reason),
	})
}
