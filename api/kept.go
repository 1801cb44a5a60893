package api

import (
	"context"
	"maps"
	"sync"
	"sync/atomic"
	"time"
)

// A node uses counts and statistics that it has computed for ten times as long as that took, at most
// keptFor. So people see what has just happened, unless it is costly to find out.
const keptFor = 5 * time.Second

// kept computes a result for all callers of this node: one caller computes, the others wait, and
// the result is used for a while.
type kept[T any] struct {
	last atomic.Pointer[dated[T]]
	turn chan struct{} // held by the caller that computes
}

type dated[T any] struct {
	value T
	until time.Time
}

func newKept[T any]() *kept[T] { return &kept[T]{turn: make(chan struct{}, 1)} }

// fresh returns the last result, or nil if it is too old.
func (k *kept[T]) fresh() *dated[T] {
	if last := k.last.Load(); last != nil && time.Now().Before(last.until) {
		return last
	}
	return nil
}

// get returns the last result. If that is too old, get computes a new one.
func (k *kept[T]) get(ctx context.Context, compute func(context.Context) (T, error)) (T, error) {
	if last := k.fresh(); last != nil {
		return last.value, nil
	}

	var none T
	select {
	case k.turn <- struct{}{}:
		defer func() { <-k.turn }()
	case <-ctx.Done():
		return none, context.Cause(ctx)
	}
	if last := k.fresh(); last != nil { // another caller has just computed it
		return last.value, nil
	}

	began := time.Now()
	value, err := compute(ctx)
	if err != nil {
		return none, err
	}
	took := time.Since(began)
	k.last.Store(&dated[T]{value, began.Add(took + min(10*took, keptFor))})
	return value, nil
}

// keptBy keeps a result for each question.
type keptBy[T any] struct {
	mu   sync.Mutex
	each map[string]*kept[T]
}

// of returns the kept result of a question. It forgets results of other questions that are too old.
func (k *keptBy[T]) of(question string) *kept[T] {
	k.mu.Lock()
	defer k.mu.Unlock()

	maps.DeleteFunc(k.each, func(other string, one *kept[T]) bool {
		return other != question && len(one.turn) == 0 && one.fresh() == nil
	})
	if k.each[question] == nil {
		if k.each == nil {
			k.each = map[string]*kept[T]{}
		}
		k.each[question] = newKept[T]()
	}
	return k.each[question]
}
