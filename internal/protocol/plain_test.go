//go:build !race

package protocol

// instrumented tells whether the race detector slows everything down.
const instrumented = false
