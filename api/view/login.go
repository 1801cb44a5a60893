package view

import (
	"time"
)

// Me describes the caller.
type Me struct {
	Name    string     `json:"name" doc:"The name of the caller, as in the audit."`
	Kind    string     `json:"kind" doc:"How the caller was authenticated: by a token, or by an identity provider."`
	Role    Role       `json:"role" doc:"The highest role that the caller has anywhere."`
	Apps    []string   `json:"apps,omitempty" doc:"The only apps that the caller can read. Absent: all apps."`
	Grants  []Grant    `json:"grants" doc:"The roles, and where they apply."`
	Expires *time.Time `json:"expires,omitempty" doc:"When the token or sign-in expires. Absent: it is valid until it is revoked."`
}

// Ways lists the ways to sign in.
type Ways struct {
	Token bool   `json:"token" doc:"Whether sign-in with a token is possible, by POST /api/v1/login."`
	OIDC  string `json:"oidc,omitempty" doc:"The origin on which people sign in with the identity provider, by POST /api/v1/login/oidc. The provider sends browsers back there. Absent if there is no provider."`
}

// Login is a login that was just made.
type Login struct {
	Me
	Key string `json:"login_key" doc:"The key that the page keeps and sends as X-Gocrontab-Login with each request. The cookie is only valid together with it. It is shown only this once."`
}

// Began is a started sign-in.
type Began struct {
	Target string `json:"target" doc:"The address of the provider to which the page sends the browser."`
	Flow   string `json:"flow" doc:"The value that the page keeps until the browser comes back. It is shown only this once."`
}

// LoginRow is a signed-in browser as clients see it.
type LoginRow struct {
	ID       string     `json:"id" doc:"Its id."`
	Who      string     `json:"who" doc:"Who is signed in, as in the audit."`
	Kind     string     `json:"kind" enum:"token,oidc" doc:"How the person was authenticated: by a token, or by an identity provider."`
	Grants   []Grant    `json:"grants" doc:"The roles, and where they apply."`
	Since    time.Time  `json:"since" doc:"When the browser signed in."`
	From     string     `json:"from,omitempty" doc:"The address from which the browser signed in."`
	Until    time.Time  `json:"until" doc:"When the sign-in expires."`
	Used     *time.Time `json:"last_used,omitempty" doc:"When it was last used, to about a minute. Absent if it was never used."`
	UsedFrom string     `json:"last_used_from,omitempty" doc:"The address from which it was used."`
	Checked  *time.Time `json:"checked,omitempty" doc:"When the identity provider last confirmed it. Absent if it has not since the sign-in."`
	Next     *time.Time `json:"check_at,omitempty" doc:"When the identity provider is asked again. Absent if it is not, and the role lasts until the sign-in expires."`
	Current  bool       `json:"current" doc:"Whether it is the sign-in of this request."`
}

// Ended counts the ended sign-ins.
type Ended struct {
	Ended int `json:"ended" doc:"How many sign-ins were ended."`
}

// Token is a token as clients see it. It lacks the token's text, which is not stored.
type Token struct {
	ID       string     `json:"id" doc:"Its id."`
	Name     string     `json:"name" doc:"The name of its holder, as in the audit."`
	Role     Role       `json:"role" doc:"The role of the token."`
	Apps     []string   `json:"apps,omitempty" doc:"The only apps in which the role applies. Absent: all apps and the whole cluster."`
	State    string     `json:"state" enum:"active,expired,revoked" doc:"Whether the token is valid."`
	Created  time.Time  `json:"created" doc:"When it was created."`
	By       string     `json:"created_by" doc:"Who created it."`
	Expires  *time.Time `json:"expires,omitempty" doc:"When it expires. Absent: it is valid until it is revoked."`
	Revoked  *time.Time `json:"revoked,omitempty" doc:"When it was revoked."`
	Used     *time.Time `json:"last_used,omitempty" doc:"When it was last used, to about a minute. Absent if it was never used."`
	UsedFrom string     `json:"last_used_from,omitempty" doc:"The address from which it was last used."`
}

// NewToken is a token that was just created.
type NewToken struct {
	Token
	Text string `json:"token" doc:"The token itself, to send as Authorization: Bearer TOKEN. It is shown only this once."`
}

// Role is a level of permissions. Each role includes all lower roles.
type Role string

// The roles.
const (
	Viewer   Role = "viewer"
	Operator Role = "operator"
	Admin    Role = "admin"
)

// Grant is a role, either everywhere or only in some apps.
type Grant struct {
	Role Role     `json:"role" doc:"The role."`
	Apps []string `json:"apps,omitempty" doc:"The apps to which the role is limited. Absent: the role holds in all apps and for the cluster."`
}
