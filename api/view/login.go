package view

import (
	"time"
)

// Me describes the caller.
type Me struct {
	Name    string     `json:"name" doc:"Who asks, as the audit says it."`
	Kind    string     `json:"kind" doc:"How that is known: by a token, or by the word of an identity provider."`
	Role    Role       `json:"role" doc:"The highest role that it has anywhere."`
	Apps    []string   `json:"apps,omitempty" doc:"The only apps of which it may read anything. Absent: all of them."`
	Grants  []Grant    `json:"grants" doc:"Which role it has where."`
	Expires *time.Time `json:"expires,omitempty" doc:"Until when. Absent: until somebody revokes it."`
}

// Ways lists the ways to sign in.
type Ways struct {
	Token bool   `json:"token" doc:"By POST /api/v1/login with a token."`
	OIDC  string `json:"oidc,omitempty" doc:"The origin whose page signs people in by an identity provider, with POST /api/v1/login/oidc: the provider sends browsers back there. Absent: there is none."`
}

// Login is a login that was just made.
type Login struct {
	Me
	Key string `json:"login_key" doc:"What the page keeps, and sends as X-Gocrontab-Login with each request: the cookie counts only with it. It is shown this once."`
}

// Began is a started sign-in.
type Began struct {
	Target string `json:"target" doc:"Where to send the browser: to the provider, which sends it back."`
	Flow   string `json:"flow" doc:"What the page keeps until then. It is shown this once."`
}

// LoginRow is a signed-in browser as clients see it.
type LoginRow struct {
	ID       string     `json:"id" doc:"Its id."`
	Who      string     `json:"who" doc:"Who is signed in, as the audit says it."`
	Kind     string     `json:"kind" enum:"token,oidc" doc:"How that is known: by a token, or by the word of an identity provider."`
	Grants   []Grant    `json:"grants" doc:"Which role it has where."`
	Since    time.Time  `json:"since" doc:"When the browser signed in."`
	From     string     `json:"from,omitempty" doc:"The address from which."`
	Until    time.Time  `json:"until" doc:"When the sign-in ends by itself."`
	Used     *time.Time `json:"last_used,omitempty" doc:"When it was last used, to about a minute. Absent: never."`
	UsedFrom string     `json:"last_used_from,omitempty" doc:"The address from which."`
	Checked  *time.Time `json:"checked,omitempty" doc:"When the identity provider last confirmed it. Absent: not since the sign-in."`
	Next     *time.Time `json:"check_at,omitempty" doc:"When the identity provider is asked again. Absent: it is not, and the role holds until the end."`
	Current  bool       `json:"current" doc:"Whether it is the one with which this request was made."`
}

// Ended counts the ended sign-ins.
type Ended struct {
	Ended int `json:"ended" doc:"How many were ended."`
}

// Token is a token as clients see it: without its text, which is not stored.
type Token struct {
	ID       string     `json:"id" doc:"Its id."`
	Name     string     `json:"name" doc:"Who holds it, as the audit says it."`
	Role     Role       `json:"role" doc:"What it may do."`
	Apps     []string   `json:"apps,omitempty" doc:"The only apps in which it may. Absent: in all of them, and over what belongs to none."`
	State    string     `json:"state" enum:"active,expired,revoked" doc:"Whether it lets anybody in."`
	Created  time.Time  `json:"created" doc:"When it was made."`
	By       string     `json:"created_by" doc:"Who made it."`
	Expires  *time.Time `json:"expires,omitempty" doc:"Until when it lets somebody in. Absent: until it is revoked."`
	Revoked  *time.Time `json:"revoked,omitempty" doc:"When it was revoked."`
	Used     *time.Time `json:"last_used,omitempty" doc:"When it was last used, to about a minute. Absent: never."`
	UsedFrom string     `json:"last_used_from,omitempty" doc:"The address from which."`
}

// NewToken is a token that was just created.
type NewToken struct {
	Token
	Text string `json:"token" doc:"The token itself, to be sent as Authorization: Bearer TOKEN. It is shown this once."`
}

// Role is a level of permissions. Each role includes the lower ones.
type Role string

// The roles.
const (
	Viewer   Role = "viewer"
	Operator Role = "operator"
	Admin    Role = "admin"
)

// Grant is a role, everywhere or in some apps.
type Grant struct {
	Role Role     `json:"role" doc:"What may be done."`
	Apps []string `json:"apps,omitempty" doc:"The only apps in which. Absent: in all of them, and over what belongs to none."`
}
