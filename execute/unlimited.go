package execute

import (
	"errors"
	"fmt"
)

// Unlimited says why limits that need a cgroup cannot be held here; nil when all of them can.
func (s *Shell) Unlimited() error {
	if s.cgroups == nil {
		return s.noCgroups
	}
	var errs []error
	for _, c := range controllers {
		if err := s.cgroups.lack[c]; err != nil {
			errs = append(errs, fmt.Errorf("%s: %w", c, err))
		}
	}
	return errors.Join(errs...)
}
