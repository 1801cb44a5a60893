package execute

import "go-crontab/internal/privilege"

// maySwitch reports whether this process may run a command as another user, and kill it. Root may,
// unless its container has taken the capabilities away. Another user needs these capabilities.
// Commands do not inherit them: see package privilege.
func maySwitch() bool { return privilege.Has(privilege.Switching) }
