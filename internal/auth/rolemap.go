package auth

import (
	"fmt"
	"slices"
	"strings"
)

// RoleMap maps the groups of an identity provider to grants.
type RoleMap map[string][]Grant

// Add parses a list of groups and their roles, in all apps or in some, such as
// "admins=admin,devs=operator:app1|app2". For group names with commas or equals signs, a backslash
// makes the next character part of the name. A group may have several entries.
func (m RoleMap) Add(list string) error {
	for _, pair := range split(list, ',') {
		if strings.TrimSpace(pair) == "" {
			continue
		}

		parts := split(pair, '=')
		if len(parts) != 2 {
			return fmt.Errorf(
				"%q: want group=role or group=role:app1|app2, with \\= and \\, for those in the name of a group",
				strings.TrimSpace(pair))
		}

		group, role := strings.TrimSpace(unescape(parts[0])), strings.TrimSpace(parts[1])
		if group == "" {
			return fmt.Errorf("%q: the group has no name", pair)
		}

		name, apps, limited := strings.Cut(role, ":")
		var (
			g   Grant
			err error
		)
		if g.Role, err = ParseRole(name); err != nil {
			return fmt.Errorf("group %s: %w", group, err)
		}

		if limited {
			g.Apps = []string{}
			for _, app := range split(apps, '|') {
				g.Apps = append(g.Apps, unescape(app))
			}
		}

		if err := g.Check(); err != nil {
			return fmt.Errorf("group %s: the apps %w", group, err)
		}
		m[group] = append(m[group], g)
	}

	return nil
}

// grants returns the grants of a person in these groups. It leaves out a grant that another grant
// includes.
func (m RoleMap) grants(groups []string) (out []Grant) {
	var all []Grant
	for _, group := range groups {
		all = append(all, m[group]...)
	}

	for i, g := range all {
		covered := func(j int, by Grant) bool {
			within := by.Apps == nil || g.Apps != nil && !slices.ContainsFunc(g.Apps, func(app string) bool {
				return !by.covers(app)
			})
			same := by.Role == g.Role && (by.Apps == nil) == (g.Apps == nil) && len(by.Apps) == len(g.Apps)
			return within && by.Role >= g.Role && (!same || j < i)
		}

		redundant := false
		for j, by := range all {
			redundant = redundant || j != i && covered(j, by)
		}

		if !redundant {
			out = append(out, g)
		}
	}

	return out
}

// split cuts a text at each `at` that has no backslash before it. The backslashes stay.
func split(s string, at rune) (parts []string) {
	from, escaped := 0, false
	for i, r := range s {
		switch {
		case escaped:
			escaped = false
		case r == '\\':
			escaped = true
		case r == at:
			parts, from = append(parts, s[from:i]), i+len(string(r))
		}
	}

	return append(parts, s[from:])
}

func unescape(s string) string {
	var b strings.Builder
	escaped := false
	for _, r := range s {
		if r == '\\' && !escaped {
			escaped = true
			continue
		}
		b.WriteRune(r)
		escaped = false
	}

	return b.String()
}
