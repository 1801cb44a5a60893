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

// Role is what somebody may do. Each includes those before it.
type Role int8

// The roles. None is the zero value, so that what nobody filled in may nothing.
const (
	None     Role = iota
	Viewer        // read definitions, runs and their output
	Operator      // pause, resume, run, kill, backfill: what exists already
	Admin         // create, change and delete: whoever writes a job runs code on the nodes
)

var roleNames = [...]string{"none", "viewer", "operator", "admin"}

func (r Role) String() string {
	if r < 0 || int(r) >= len(roleNames) {
		return fmt.Sprintf("Role(%d)", int8(r))
	}
	return roleNames[r]
}

// RoleNames are those that somebody can be given, the least first.
func RoleNames() []string { return slices.Clone(roleNames[1:]) }

// ParseRole reads the name of a role that somebody can be given.
func ParseRole(s string) (Role, error) {
	if i := slices.Index(roleNames[:], s); i > 0 {
		return Role(i), nil
	}
	return None, problem.Errorf(problem.NotARole, s, strings.Join(roleNames[1:], ", "))
}

// MarshalText writes the role's name.
func (r Role) MarshalText() ([]byte, error) { return []byte(r.String()), nil }

// UnmarshalText reads the name of a role that somebody can be given.
func (r *Role) UnmarshalText(b []byte) (err error) {
	*r, err = ParseRole(string(b))
	return err
}

// Grant is a role, everywhere or in some apps.
type Grant struct {
	Role Role     `json:"role" doc:"What may be done."`
	Apps []string `json:"apps,omitempty" doc:"The only apps in which. Absent: in all of them, and over what belongs to none."`
}

func (g *Grant) covers(app string) bool { return g.Apps == nil || slices.Contains(g.Apps, app) }

func (g Grant) String() string {
	if g.Apps == nil {
		return g.Role.String()
	}
	return g.Role.String() + " of " + strings.Join(g.Apps, ", ")
}

// MaxApps is in how many apps one grant can be given.
const MaxApps = 100

// Check looks at the apps of a grant, "" being none.
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
	KindToken = "token" // of whoever holds an API token
	KindOIDC  = "oidc"  // of somebody for whom an identity provider vouched
)

// Principal is who asks: the holder of a token, or somebody who signed in.
type Principal struct {
	Name    string // as the audit has it
	Kind    string
	Grants  []Grant
	Token   int64      // its id, also of a login that was made with one; 0: none
	Login   int64      // id of the signed-in browser; 0: none
	Expires job.Micros // zero: never

	Renewal *Renewal // how to ask the provider again; nil but for one who has just come from it
}

// Role is the highest one that the principal has anywhere.
func (p *Principal) Role() Role {
	role := None
	for _, g := range p.Grants {
		role = max(role, g.Role)
	}
	return role
}

// May tells whether the principal has a role, or a higher one, everywhere.
func (p *Principal) May(need Role) bool {
	return need > None && slices.ContainsFunc(p.Grants, func(g Grant) bool { return g.Role >= need && g.Apps == nil })
}

// MayIn tells whether the principal has a role, or a higher one, in an app.
func (p *Principal) MayIn(need Role, app string) bool {
	return need > None && slices.ContainsFunc(p.Grants, func(g Grant) bool { return g.Role >= need && g.covers(app) })
}

// Sees lists the apps of which the principal may read, nil being all of them. One who may read nothing gets a list
// that is empty and not nil.
func (p *Principal) Sees() []string { return p.In(Viewer) }

// In lists the apps where the principal has a role, or a higher one, as Sees does.
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

// String says what the principal is, for people: "ci (operator of billing)".
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

// Key tells principals apart, also those of the same name. A browser that signed in with a token is whoever holds that.
func (p *Principal) Key() string {
	if p.Token != 0 {
		return fmt.Sprintf("%s %q %d", p.Kind, p.Name, p.Token)
	}
	grants, _ := json.Marshal(p.Grants) // texts cannot fail
	return fmt.Sprintf("%s %q %s", p.Kind, p.Name, grants)
}

// actor is the name under which a principal changes things.
func (p *Principal) actor(origin string) job.Actor {
	return job.Actor{Who: p.Name, Origin: origin, Caller: p.Key()}
}

type principalKey struct{}

// With returns the context of a request that a principal makes: what it changes is changed in its name.
func With(ctx context.Context, p *Principal) context.Context {
	return context.WithValue(job.WithActor(ctx, p.actor(job.ActorOf(ctx).Origin)), principalKey{}, p)
}

// Of tells who makes a request; nobody, who may nothing, if that is not known.
func Of(ctx context.Context) *Principal {
	if p, ok := ctx.Value(principalKey{}).(*Principal); ok {
		return p
	}
	return &Principal{Name: job.Anonymous}
}
