package faultproxy

import (
	"context"
	"sync"
)

// watched is a value whose changes can be waited for.
type watched[T any] struct {
	mu      sync.Mutex
	value   T
	changed chan struct{} // closed at the next change; nil while nobody waits
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

// update changes the value and wakes those who wait.
func (w *watched[T]) update(change func(*T)) {
	w.mu.Lock()
	defer w.mu.Unlock()
	change(&w.value)
	if w.changed != nil {
		close(w.changed)
		w.changed = nil
	}
}

// await blocks until the value pleases, or ctx ends.
func (w *watched[T]) await(ctx context.Context, pleases func(T) bool) error {
	for {
		value, changed := w.get()
		if pleases(value) {
			return nil
		}
		select {
		case <-changed:
		case <-ctx.Done():
			return context.Cause(ctx)
		}
	}
}
