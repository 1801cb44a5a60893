package execute

import (
	"errors"
	"fmt"
)

// Unlimited returns the reasons why this node cannot enforce limits that need a cgroup; nil: it
// can enforce all.
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
