package execute

import "go-crontab/internal/privilege"

// maySwitch reports whether this process may run a command as another user, and kill it. Root may, unless its
// container has taken the capabilities away. Another user may with the capabilities, which commands do not inherit: see
// package privilege.
func maySwitch() bool { return privilege.Has(privilege.Switching) }
