//go:build !linux

// Package privilege keeps the rights of a node from the programs that it starts, on Linux.
// Elsewhere it does nothing.
package privilege

// Start calls start.
func Start(start func()) { start() }

// StartConfined calls start: there is no no_new_privs on this system.
func StartConfined(start func()) { start() }
