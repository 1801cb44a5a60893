package faultproxy

import (
	"context"
	"sync"
)

// watched is a value with notification of changes.
type watched[T any] struct {
	mu      sync.Mutex
	value   T
	changed chan struct{} // closed at the next change; nil without waiters
}

// get returns the value and a channel that is closed when it changes.
func (w *watched[T]) get() (T, <-chan struct{}) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.changed == nil {
		w.changed = make(chan struct{})
	}
	return w.value, w.changed
}

// update changes the value and wakes the waiters.
func (w *watched[T]) update(change func(*T)) {
	w.mu.Lock()
	defer w.mu.Unlock()
	change(&w.value)
	if w.changed != nil {
		close(w.changed)
		w.changed = nil
	}
}

// await blocks until done(value) holds, or ctx ends.
func (w *watched[T]) await(ctx context.Context, done func(T) bool) error {
	for {
		value, changed := w.get()
		if done(value) {
			return nil
		}

		select {
		case <-changed:
		case <-ctx.Done():
			return context.Cause(ctx)
		}
	}
}
