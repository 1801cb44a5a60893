package job

import "context"

// Actor is who makes a change, and from where.
type Actor struct {
	Who    string // a person, a token, or a node
	Origin string // the address that the request came from, or the name of a node

	Caller string // tells those of the same name apart who ask by the API; it is not kept
}

// Anonymous is who makes a change when nobody said.
const Anonymous = "anonymous"

// Itself is the actor of changes that nobody asked for at that moment, such as the end of a pause that has one.
const Itself = "go-crontab"

type actorKey struct{}

// WithActor returns a context whose changes are made by a.
func WithActor(ctx context.Context, a Actor) context.Context {
	return context.WithValue(ctx, actorKey{}, a)
}

// ActorOf tells who makes the changes of a context.
func ActorOf(ctx context.Context) Actor {
	if a, ok := ctx.Value(actorKey{}).(Actor); ok && a.Who != "" {
		return a
	}
	return Actor{Who: Anonymous}
}
