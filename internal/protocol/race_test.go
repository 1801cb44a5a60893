//go:build race

package protocol

// instrumented tells whether the race detector slows everything down. There is nothing to find for it: a search is one
// goroutine.
const instrumented = true
