package job

import "context"

// Actor is the author of a change.
type Actor struct {
	Who    string // a person, a token or a node
	Origin string // the address of the client, or the name of a node

	Caller string // separates API clients with the same name; it is not stored
}

// Anonymous is the author of changes without a name.
const Anonymous = "anonymous"

// Itself is the author of automatic changes, for example when a pause ends.
const Itself = "go-crontab"

type actorKey struct{}

// WithActor returns a context whose changes have the author a.
func WithActor(ctx context.Context, a Actor) context.Context {
	return context.WithValue(ctx, actorKey{}, a)
}

// ActorOf returns the author of a context's changes.
func ActorOf(ctx context.Context) Actor {
	if a, ok := ctx.Value(actorKey{}).(Actor); ok && a.Who != "" {
		return a
	}
	return Actor{Who: Anonymous}
}
