//go:build !linux

package guard

import (
	"errors"
	"os"
	"syscall"
)

// Supported reports whether this system has guards.
const Supported = false

func share(int) (*os.File, []byte, error)  { return nil, nil, errors.ErrUnsupported }
func socketPair() (_, _ *os.File, _ error) { return nil, nil, errors.ErrUnsupported }
func mayKill(*syscall.SysProcAttr)         {}
func unshare([]byte)                       {}

// Conceal does nothing: there is no /proc.
func Conceal() {}

// OnBury does nothing: there are no guards.
func OnBury(func(Dead) error) {}
