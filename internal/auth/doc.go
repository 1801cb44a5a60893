// Package auth says who asks and what they may do. Package api asks it before each request but the few that are open to
// all; package sql has the rows.
//
// # Who
//
// Programs send an API token with each request. A browser exchanges a token, or the word of an OpenID Connect provider,
// for a login: a row, found by the hash of two secrets. One is in a cookie that no script can read, but that the browser
// sends to every port of the host; the other is kept by the page, for its own origin alone. Rows and not signed cookies, because a
// login must end everywhere when it, or the token behind it, is revoked, and because nodes share nothing but MySQL: a
// key to sign with would lie there, and who can read it could make himself anybody, while hashes let nobody in.
//
// # May what
//
// A [Role] in some apps or in all of them; several of those for one whose provider says so. Nothing is allowed that no
// grant allows, and nobody has a grant by default.
//
// # How soon
//
// A token or login is looked up for each request that changes something, so from the answer to a revocation on, no
// request that begins later changes anything, on any node. For reads what was found is believed for a second.
//
// # What each failure does
//
//   - MySQL out of reach: nobody is let in but readers for the rest of that second; the error says so (sql.IsAway),
//     and it is not that the token is wrong.
//   - The node dies between a change of a token and its answer: the change and its line of the audit stand or fall
//     together. A token that was made and never shown is of no use to anybody; revoke it and make another.
//   - The provider is out of reach, or MySQL's clock was not read yet: no new logins by it; the others go on.
package auth
