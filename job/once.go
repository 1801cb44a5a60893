package job

import (
	"context"
	"errors"
)

// Once is a request that is carried out at most once, even if the client repeats it. The
// transaction of its first change stores its key.
type Once struct {
	Key    string // the client's Idempotency-Key
	Digest [32]byte
	Kind   string // the kind of request, at most 32 characters

	// Answer is called as the last step of the transaction, if it is set. The transaction then
	// stores the answer with the key. If it is not set, the answer is stored later, once it is
	// known.
	Answer func() KeptAnswer

	// Set by the code that makes the change.
	JobID int64 // the created or changed job, or zero
	Done  bool  // the change and the key are known to be committed
}

// KeptAnswer is the stored answer to a request.
type KeptAnswer struct {
	Status int
	Header string // as JSON
	Body   []byte
}

// ErrRepeated means that a request with the same key was already carried out.
var ErrRepeated = errors.New("the request with this Idempotency-Key was carried out before")

type onceKey struct{}

// WithOnce returns a context whose changes belong to a request. Only one goroutine may use it.
func WithOnce(ctx context.Context, o *Once) context.Context {
	return context.WithValue(ctx, onceKey{}, o)
}

// OnceOf returns the request of a context. It returns nil if the context has no request, or if the
// key of the request is stored already.
func OnceOf(ctx context.Context) *Once {
	if o, _ := ctx.Value(onceKey{}).(*Once); o != nil && !o.Done {
		return o
	}
	return nil
}

type versionKey struct{}

// WithVersion returns a context in which a change of a job fails with ErrChanged unless the job has
// the given version.
func WithVersion(ctx context.Context, version int64) context.Context {
	return context.WithValue(ctx, versionKey{}, version)
}

// VersionOf returns the version that a job must have for a change. Zero means any version.
func VersionOf(ctx context.Context) int64 {
	v, _ := ctx.Value(versionKey{}).(int64)
	return v
}

type forceKey struct{}

// WithForce returns a context in which jobs can be deleted even if other jobs follow them.
func WithForce(ctx context.Context) context.Context { return context.WithValue(ctx, forceKey{}, true) }

// Forced reports whether a context is from WithForce.
func Forced(ctx context.Context) bool { forced, _ := ctx.Value(forceKey{}).(bool); return forced }

type preconditionKey struct{}

// WithPrecondition returns a context with a condition for writes of objects by name. The write
// calls wanted while it holds the object's lock. wanted gets the object's existence and its
// version, or 0 if the object has no version. An error of wanted refuses the write.
func WithPrecondition(ctx context.Context, wanted func(there bool, version int64) error) context.Context {
	return context.WithValue(ctx, preconditionKey{}, wanted)
}

// CheckPrecondition returns the error that refuses the write, or nil.
func CheckPrecondition(ctx context.Context, there bool, version int64) error {
	if wanted, _ := ctx.Value(preconditionKey{}).(func(bool, int64) error); wanted != nil {
		return wanted(there, version)
	}
	return nil
}
