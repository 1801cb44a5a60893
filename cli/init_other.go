//go:build !linux

package cli

import "io"

// beInit does nothing: only on Linux can this be process 1 in a container.
func beInit([]string, io.Reader, io.Writer, io.Writer) (int, bool) { return 0, false }
