package auth

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"strings"

	"go-crontab/job"
	"go-crontab/job/problem"
)

// Role is a level of permissions. Each role includes the lower ones.
type Role int8

// The roles. None is the zero value, so a field that was never set allows nothing.
const (
	None     Role = iota
	Viewer        // read definitions, runs and their output
	Operator      // pause, resume, run, kill, backfill: use existing jobs
	Admin         // create, change and delete: people who write jobs run code on the nodes
)

var roleNames = [...]string{"none", "viewer", "operator", "admin"}

func (r Role) String() string {
	if r < 0 || int(r) >= len(roleNames) {
		return fmt.Sprintf("Role(%d)", int8(r))
	}
	return roleNames[r]
}

// RoleNames returns the names of the roles that can be granted, the lowest first.
func RoleNames() []string { return slices.Clone(roleNames[1:]) }

// ParseRole parses the name of a role that can be granted.
func ParseRole(s string) (Role, error) {
	if i := slices.Index(roleNames[:], s); i > 0 {
		return Role(i), nil
	}
	return None, problem.Errorf(problem.NotARole, s, strings.Join(roleNames[1:], ", "))
}

// MarshalText writes the role's name.
func (r Role) MarshalText() ([]byte, error) { return []byte(r.String()), nil }

// UnmarshalText parses the name of a role that can be granted.
func (r *Role) UnmarshalText(b []byte) (err error) {
	*r, err = ParseRole(string(b))
	return err
}

// Grant is a role in all apps or in some apps.
type Grant struct {
	Role Role     `json:"role" doc:"The role."`
	Apps []string `json:"apps,omitempty" doc:"The apps to which the role is limited. Absent: the role holds in all apps and for the cluster."`
}

func (g *Grant) covers(app string) bool { return g.Apps == nil || slices.Contains(g.Apps, app) }

func (g Grant) String() string {
	if g.Apps == nil {
		return g.Role.String()
	}
	return g.Role.String() + " of " + strings.Join(g.Apps, ", ")
}

// MaxApps is the most apps that one grant can name.
const MaxApps = 100

// Check checks the apps of a grant. An empty name is not an app.
func (g *Grant) Check() error {
	if g.Apps != nil && len(g.Apps) == 0 {
		return problem.Errorf(problem.NoApps)
	}
	if len(g.Apps) > MaxApps {
		return problem.Errorf(problem.TooManyApps, len(g.Apps), MaxApps)
	}

	for i, app := range g.Apps {
		if app == "" {
			return problem.Errorf(problem.AppsWithEmpty)
		}
		if err := job.ValidateApp(app); err != nil {
			return problem.Errorf(problem.AppsWithInvalid, app)
		}
		if slices.Contains(g.Apps[:i], app) {
			return problem.Errorf(problem.AppsTwice, app)
		}
	}

	return nil
}

// The kinds of principals.
const (
	KindToken = "token" // the holder of an API token
	KindOIDC  = "oidc"  // a person who signed in by an identity provider
)

// Principal is the caller of a request: the holder of a token, or a signed-in person.
type Principal struct {
	Name    string // the name in the audit
	Kind    string
	Grants  []Grant
	Token   int64      // id of the token, also if a login was made with it; 0: none
	Login   int64      // id of the login; 0: none
	Expires job.Micros // zero: never

	Renewal *Renewal // for asking the provider again; only set right after a sign-in
}

// Role returns the highest role that the principal has in any app.
func (p *Principal) Role() Role {
	role := None
	for _, g := range p.Grants {
		role = max(role, g.Role)
	}
	return role
}

// May reports whether the principal has the role need, or a higher one, in all apps.
func (p *Principal) May(need Role) bool {
	return need > None && slices.ContainsFunc(p.Grants, func(g Grant) bool { return g.Role >= need && g.Apps == nil })
}

// MayIn reports whether the principal has the role need, or a higher one, in an app.
func (p *Principal) MayIn(need Role, app string) bool {
	return need > None && slices.ContainsFunc(p.Grants, func(g Grant) bool { return g.Role >= need && g.covers(app) })
}

// Sees lists the apps that the principal may read. nil means all apps. An empty list that is not
// nil means no app.
func (p *Principal) Sees() []string { return p.In(Viewer) }

// In lists the apps where the principal has the role need, or a higher one. nil means all apps, as
// in Sees.
func (p *Principal) In(need Role) []string {
	apps := []string{}
	for _, g := range p.Grants {
		if g.Role < need {
			continue
		}
		if g.Apps == nil {
			return nil
		}
		apps = append(apps, g.Apps...)
	}

	slices.Sort(apps)
	return slices.Compact(apps)
}

// String describes the principal for people: "ci (operator of billing)".
func (p *Principal) String() string {
	grants := make([]string, len(p.Grants))
	for i, g := range p.Grants {
		grants[i] = g.String()
	}
	if len(grants) == 0 {
		grants = []string{"no role"}
	}
	return p.Name + " (" + strings.Join(grants, "; ") + ")"
}

// Key identifies a principal, even if others have the same name. If a browser signed in with a
// token, its key is the same as that of the token's holder.
func (p *Principal) Key() string {
	if p.Token != 0 {
		return fmt.Sprintf("%s %q %d", p.Kind, p.Name, p.Token)
	}
	grants, _ := json.Marshal(p.Grants) // strings never fail
	return fmt.Sprintf("%s %q %s", p.Kind, p.Name, grants)
}

// actor returns the audit's actor for changes of this principal.
func (p *Principal) actor(origin string) job.Actor {
	return job.Actor{Who: p.Name, Origin: origin, Caller: p.Key()}
}

type principalKey struct{}

// With returns the context of a principal's request. Changes in this context are made in the
// principal's name.
func With(ctx context.Context, p *Principal) context.Context {
	return context.WithValue(job.WithActor(ctx, p.actor(job.ActorOf(ctx).Origin)), principalKey{}, p)
}

// Of returns the principal of a request. If there is none, it returns an anonymous one without
// grants.
func Of(ctx context.Context) *Principal {
	if p, ok := ctx.Value(principalKey{}).(*Principal); ok {
		return p
	}
	return &Principal{Name: job.Anonymous}
}
