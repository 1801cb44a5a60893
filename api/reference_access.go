package api

import (
	"net/http"

	"go-crontab/api/view"
)

var (
	tokenName = textParam{declared{"name", "Only the token with this name.", "ci"}, 64}
	loginWho  = textParam{
		declared{"who",
			"Only the sign-ins of this name: the full name of a token, or of a person as in the audit.",
			"ci"}, 128,
	}
	loginWhose = textParam{
		declared{"who",
			"The name whose sign-ins to end: the full name of a token, or of a person as in the audit.",
			"ci"}, 128,
	}
	tokenRevokedToo = wordParam{
		declared{"revoked", "Whether to list revoked tokens as well.", "true"}, []string{"true", "false"},
	}
	// The values that providers add to the page's address. The page reads the first three.
	oidcReturn = []parameter{
		textParam{declared{"state", "The state with which the sign-in began.", ""}, 4096}, textParam{
			declared{"code", "The code that the provider issued.", ""}, 4096,
		},
		textParam{declared{"error", "The error code of the provider.", ""}, 256},
		textParam{declared{"error_description", "The error in words.", ""}, 4096}, textParam{
			declared{"error_uri", "The address of more information about the error.", ""}, 4096,
		},
		textParam{declared{"session_state", "The session at the provider.", ""}, 4096}, textParam{
			declared{"iss", "The issuer, which is the provider.", ""}, 4096,
		},
		textParam{declared{"scope", "The scopes that were granted.", ""}, 4096}, textParam{
			declared{"authuser", "The number of the account, if there are several.", ""}, 256,
		},
		textParam{declared{"prompt", "How the provider asked for consent.", ""}, 256}, textParam{
			declared{"hd", "The domain of the account.", ""}, 256,
		},
	}
)

// loginBody and tokenBody describe bodies: see Server.login and Server.createToken.
type (
	loginBody struct {
		Token string `json:"token" doc:"The token to sign in with."`
	}
	returnBody struct {
		Flow  string `json:"flow" doc:"The value that the page kept since the sign-in began."`
		State string `json:"state" doc:"The value that the provider added to the address under this name."`
		Code  string `json:"code,omitempty" doc:"The value that the provider added under this name."`
		Error string `json:"error,omitempty" doc:"The error that the provider added instead of a code."`
	}
	tokenBody struct {
		Name    string    `json:"name" doc:"The name of its holder, for the audit: up to 64 letters, digits and _ . - /."`
		Role    view.Role `json:"role" doc:"The role of the token."`
		Apps    []string  `json:"apps,omitempty" doc:"The only apps in which the role applies. Without it, it applies to all apps and to the whole cluster."`
		Expires string    `json:"expires,omitempty" doc:"When the token expires: a time, a duration such as 720h, or never. Without it, after 90 days."`
	}
)

var (
	meDoc = operation{
		id: "getMe", tag: tagAccess, summary: "Show the caller",
		about:   "The holder of the token or sign-in, and its roles.",
		replies: found[view.Me]("The caller."),
	}
	waysInDoc = operation{
		id: "listWaysIn", tag: tagAccess, summary: "Show the ways to sign in",
		about:   "For sign-in pages. No token is needed.",
		replies: found[view.Ways]("The ways to sign in."),
	}
	loginDoc = operation{
		id: "login", tag: tagAccess, most: maxLoginBody, summary: "Sign a browser in",
		about: "Exchanges a token for a cookie that scripts cannot read, and a key that the page sends as " +
			"`X-Gocrontab-Login`. Each is useless without the other: browsers send a cookie to every port of a " +
			"host, but only the page's own origin can read the key. " +
			"The sign-in has the roles of the token, until it expires, the token is revoked, or the browser signs out. " +
			"Programs send the token with each request instead.",
		body: &requestBody{of: of[loginBody](), about: "The token.", example: `{"token": "gocrontab_…"}`},
		replies: []reply{{status: http.StatusOK, about: "The signed-in caller.", of: of[view.Login](),
			headers: []string{"Set-Cookie"}}}, problems: []kind{unauthenticated, tooMany, unknownOutcome},
	}
	logoutDoc = operation{
		id: "logout", tag: tagAccess, summary: "Sign a browser out",
		about:    "Ends the sign-in of the request on all nodes. The token stays valid.",
		body:     emptyBody,
		replies:  []reply{{status: http.StatusNoContent, about: "The browser is signed out.", headers: []string{"Set-Cookie"}}},
		problems: []kind{unknownOutcome},
	}
	beginOIDCDoc = operation{
		id: "beginOIDC", tag: tagAccess, most: maxLoginBody, summary: "Begin a sign-in with the identity provider",
		about: "For pages. The answer has the address for the browser, and a value to keep until the provider sends " +
			"it back.",
		body:     emptyBody,
		replies:  []reply{{status: http.StatusOK, about: "The sign-in that began.", of: of[view.Began]()}},
		problems: []kind{notFound, tooMany, providerAway},
	}
	returnOIDCDoc = operation{
		id: "returnOIDC", tag: tagAccess, summary: "Return from the identity provider",
		about: "The address to which the provider sends browsers back. The console there finishes the sign-in.",
		query: oidcReturn, cached: true, replies: pageReplies,
	}
	endOIDCDoc = operation{
		id: "endOIDC", tag: tagAccess, most: maxReturnBody, summary: "Finish a sign-in with the identity provider",
		about: "For pages. Exchanges the kept value, and the values that the provider added to the address, for a sign-in.",
		body: &requestBody{
			of: of[returnBody](), about: "The kept value, and the values from the provider.",
			example: `{"flow": "…", "state": "…", "code": "…"}`,
		},
		replies: []reply{{status: http.StatusOK, about: "The signed-in caller.", of: of[view.Login](),
			headers: []string{"Set-Cookie"}}}, problems: []kind{
			unauthenticated, notFound, tooMany, providerAway, unknownOutcome,
		},
	}
	listLoginsDoc = operation{
		id: "listLogins", tag: tagAccess, summary: "List sign-ins",
		about: "Browsers that are signed in, with a token or by the identity provider, in the order of their sign-ins. " +
			"Only admins of the cluster see the sign-ins of others.",
		query:   []parameter{loginWho, limitParam, pageParam},
		replies: found[view.Page[view.LoginRow]]("A page of sign-ins."),
	}
	endLoginDoc = operation{
		id: "endLogin", tag: tagAccess, summary: "End a sign-in",
		about: "After the answer the browser can change nothing on any node; its reads and streams " +
			"end within a second. Only admins of the cluster can end the sign-ins of others. The token or person can sign " +
			"in again.",
		replies:  []reply{{status: http.StatusNoContent, about: "The sign-in has ended."}},
		problems: []kind{notFound, unknownOutcome},
	}
	endLoginsDoc = operation{
		id: "endLogins", tag: tagAccess, summary: "End all sign-ins of a name",
		about: "Like ending each of them. `who` is required.",
		query: []parameter{loginWhose}, replies: found[view.Ended]("The number of ended sign-ins."),
		problems: []kind{notFound, unknownOutcome},
	}
	createTokenDoc = operation{
		id: "createToken", tag: tagAccess, once: true, sealed: true, summary: "Create a token",
		about: "Only this answer contains the token itself: the server keeps its hash. With an `Idempotency-Key`, the " +
			"same request with the same credential gets it again for a day.",
		body: &requestBody{of: of[tokenBody](), about: "The holder and the role.",
			example: `{"name": "ci", "role": "admin", "apps": ["billing"], "expires": "720h"}`},
		replies: []reply{{status: http.StatusCreated, about: "The token.", of: of[view.NewToken](),
			headers: []string{"Location"}}}, problems: []kind{exists, unknownOutcome},
	}
	listTokensDoc = operation{
		id: "listTokens", tag: tagAccess, summary: "List tokens",
		about:   "In the order of their creation. The tokens themselves cannot be read.",
		query:   []parameter{tokenName, tokenRevokedToo, limitParam, pageParam},
		replies: found[view.Page[view.Token]]("A page of tokens."),
	}
	getTokenDoc = operation{
		id: "getToken", tag: tagAccess, summary: "Show a token", about: "Revoked tokens are shown as well.",
		replies: found[view.Token]("The token."), problems: []kind{notFound},
	}
	revokeTokenDoc = operation{
		id: "revokeToken", tag: tagAccess, summary: "Revoke a token",
		about: "After the answer neither the token nor browsers that signed in with it can change anything on any node; " +
			"reads end within a second.",
		replies:  []reply{{status: http.StatusNoContent, about: "The token is revoked."}},
		problems: []kind{notFound, unknownOutcome},
	}
)
