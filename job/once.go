package job

import (
	"context"
	"errors"
)

// Once is a request that is carried out once, however often it is sent: its key is written down in the transaction of the
// first change that it makes.
type Once struct {
	Key    string // the client's Idempotency-Key
	Digest [32]byte
	Kind   string // what is asked for, at most 32 characters

	// Answer, if it is set, is asked in the transaction, behind all else, what the request is answered: that is kept with
	// the key, and stands or falls with it. Otherwise the answer is kept once it was given.
	Answer func() KeptAnswer

	// Of who makes the change.
	JobID int64 // of the job that was made or changed, if it is one
	Done  bool  // the change, and the key with it, is known to stand
}

// KeptAnswer is what a request was answered.
type KeptAnswer struct {
	Status int
	Header string // as JSON
	Body   []byte
}

// ErrRepeated means that a request was carried out before, under the same key.
var ErrRepeated = errors.New("the request with this Idempotency-Key was carried out before")

type onceKey struct{}

// WithOnce returns a context whose changes are those of a request. It is for one goroutine.
func WithOnce(ctx context.Context, o *Once) context.Context {
	return context.WithValue(ctx, onceKey{}, o)
}

// OnceOf returns the request of a context whose key is still to be written down, or nil.
func OnceOf(ctx context.Context) *Once {
	if o, _ := ctx.Value(onceKey{}).(*Once); o != nil && !o.Done {
		return o
	}
	return nil
}

type versionKey struct{}

// WithVersion returns a context whose changes of a job are refused with ErrChanged unless it is at a version.
func WithVersion(ctx context.Context, version int64) context.Context {
	return context.WithValue(ctx, versionKey{}, version)
}

// VersionOf returns the version at which a job must be to be changed, zero for any.
func VersionOf(ctx context.Context) int64 {
	v, _ := ctx.Value(versionKey{}).(int64)
	return v
}

type preconditionKey struct{}

// WithPrecondition returns a context whose changes of what is put by its name first ask, under its lock, whether it is as who asks
// wants it to be: whether it is there, and at which version, 0 where it has none. What that answers refuses the change.
func WithPrecondition(ctx context.Context, wanted func(there bool, version int64) error) context.Context {
	return context.WithValue(ctx, preconditionKey{}, wanted)
}

// CheckPrecondition tells why what is there, or is not, may not be put, or nil.
func CheckPrecondition(ctx context.Context, there bool, version int64) error {
	if wanted, _ := ctx.Value(preconditionKey{}).(func(bool, int64) error); wanted != nil {
		return wanted(there, version)
	}
	return nil
}
