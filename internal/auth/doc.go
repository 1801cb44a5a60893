// Package auth authenticates requests and decides which requests each caller may make. Package api
// asks it before every request except the few public ones. Package sql has the connection; the rows
// of tokens and logins are read and written here.
//
// # Identity
//
// Programs send an API token with each request. A browser exchanges a token, or an ID token of an
// OpenID Connect provider, for a login: a row that is found by the hash of two secrets. One secret
// is in a cookie that scripts cannot read, but that the browser sends to every port of the host.
// The page keeps the other one, for its own origin alone.
//
// Logins are rows and not signed cookies for two reasons. A login must end everywhere when it or
// its token is revoked. And nodes share nothing but MySQL, so a key for signatures would have to
// be in MySQL. Then a reader of the database could sign in as any user, while hashes let nobody
// in.
//
// # Permissions
//
// A caller has one or several grants. A grant is a [Role] in some apps or in all apps. A request is
// allowed only if a grant allows it, and no caller has a grant by default.
//
// # Revocation
//
// Each request that changes something looks its token or login up in MySQL. So after the answer to
// a revocation, no new request can change anything, on any node. Reads may use a cached result for
// up to a second.
//
// # Failures
//
//   - MySQL out of reach: only readers get in, for the rest of that second. The error says that
//     MySQL is away (sql.IsAway), not that the token is wrong.
//   - The node dies between a change of a token and its answer: the change and its audit line
//     commit or roll back together. If a token was made but never shown, revoke it and make
//     another.
//   - The provider is out of reach, or MySQL's clock was not read yet: nobody can sign in by the
//     provider. Other sign-ins work.
package auth
