//go:build !unix

package doctor

// Nodes do not run on these systems, so these functions are never called.

func ulimits() (files, processes uint64) { return 0, 0 }

func writable(string) error { return nil }

func room(string) (free uint64, ok bool) { return 0, false }
