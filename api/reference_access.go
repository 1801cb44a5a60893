package api

import (
	"net/http"

	"go-crontab/internal/auth"
)

var (
	tokenName = textParam{declared{"name", "Only the token of this name.", "ci"}, 64}
	loginWho  = textParam{
		declared{"who",
			"Only the sign-ins of this one: the name of a token, or of a person as the audit has it. The whole name.",
			"ci"}, 128,
	}
	loginWhose = textParam{
		declared{"who",
			"Whose sign-ins to end: the name of a token, or of a person as the audit has it. The whole name.",
			"ci"}, 128,
	}
	tokenRevokedToo = wordParam{
		declared{"revoked", "Whether revoked tokens are listed as well.", "true"}, []string{"true", "false"},
	}
	// The values that providers add to the address of the page, which reads the first three.
	oidcReturn = []parameter{
		textParam{declared{"state", "What the sign-in began with.", ""}, 4096}, textParam{
			declared{"code", "What the provider gives for it.", ""}, 4096,
		},
		textParam{declared{"error", "Why the provider gives nothing.", ""}, 256},
		textParam{declared{"error_description", "The same in words.", ""}, 4096}, textParam{
			declared{"error_uri", "More about it.", ""}, 4096,
		},
		textParam{declared{"session_state", "The session at the provider.", ""}, 4096}, textParam{
			declared{"iss", "The provider.", ""}, 4096,
		},
		textParam{declared{"scope", "What was allowed.", ""}, 4096}, textParam{
			declared{"authuser", "Which of several accounts.", ""}, 256,
		},
		textParam{declared{"prompt", "How the provider asked.", ""}, 256}, textParam{
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
		Role    auth.Role `json:"role" doc:"The role of the token."`
		Apps    []string  `json:"apps,omitempty" doc:"The only apps in which the role applies. Without it, it applies to all apps and to the whole cluster."`
		Expires string    `json:"expires,omitempty" doc:"When the token expires: a time, a duration such as 720h, or never. Without it, after 90 days."`
	}
)

var (
	meDoc = operation{
		id: "getMe", tag: tagAccess, summary: "Show who asks",
		about:   "Who the token or the login belongs to, and what that may do.",
		replies: found[meView]("Who asks."),
	}
	waysInDoc = operation{
		id: "listWaysIn", tag: tagAccess, summary: "Show how one may sign in",
		about:   "For pages that offer it. Anybody may ask.",
		replies: found[waysView]("The ways."),
	}
	loginDoc = operation{
		id: "login", tag: tagAccess, most: maxLoginBody, summary: "Sign a browser in",
		about: "Exchanges a token for a cookie that no script can read, and a key that the page sends as " +
			"`X-Gocrontab-Login`. Each is worth nothing without the other: browsers send a cookie to every port of a " +
			"host, and let only the page's own origin read the key. " +
			"The login may do what the token may, until it expires, the token is revoked, or somebody signs out. " +
			"Programs send the token with each request instead.",
		body: &requestBody{of: of[loginBody](), about: "The token.", example: `{"token": "gocrontab_…"}`},
		replies: []reply{{status: http.StatusOK, about: "Who is signed in.", of: of[loginView](),
			headers: []string{"Set-Cookie"}}}, problems: []kind{unauthenticated, tooMany, unknownOutcome},
	}
	logoutDoc = operation{
		id: "logout", tag: tagAccess, summary: "Sign a browser out",
		about:    "Ends the login of the request, on all nodes. A token lives on.",
		body:     emptyBody,
		replies:  []reply{{status: http.StatusNoContent, about: "It is signed out.", headers: []string{"Set-Cookie"}}},
		problems: []kind{unknownOutcome},
	}
	beginOIDCDoc = operation{
		id: "beginOIDC", tag: tagAccess, most: maxLoginBody, summary: "Begin a sign-in by the identity provider",
		about:    "For pages: says where to send the browser, and what to keep until the provider sends it back.",
		body:     emptyBody,
		replies:  []reply{{status: http.StatusOK, about: "The sign-in.", of: of[beganView]()}},
		problems: []kind{notFound, tooMany, providerAway},
	}
	returnOIDCDoc = operation{
		id: "returnOIDC", tag: tagAccess, summary: "Come back from the identity provider",
		about: "Where the provider sends browsers back to: the console, which ends the sign-in that it began.",
		query: oidcReturn, cached: true, replies: pageReplies,
	}
	endOIDCDoc = operation{
		id: "endOIDC", tag: tagAccess, most: maxReturnBody, summary: "End a sign-in by the identity provider",
		about: "For pages: what was kept, and what the provider added to the address, become a login as with a token.",
		body: &requestBody{
			of: of[returnBody](), about: "What was kept, and what came back.",
			example: `{"flow": "…", "state": "…", "code": "…"}`,
		},
		replies: []reply{{status: http.StatusOK, about: "Who is signed in.", of: of[loginView](),
			headers: []string{"Set-Cookie"}}}, problems: []kind{
			unauthenticated, notFound, tooMany, providerAway, unknownOutcome,
		},
	}
	listLoginsDoc = operation{
		id: "listLogins", tag: tagAccess, summary: "List who is signed in",
		about: "Browsers that are signed in, by token or by the identity provider, in the order in which they signed " +
			"in. Who is no admin of the cluster gets their own.",
		query: []parameter{loginWho, limitParam, pageParam}, replies: found[page[loginRowView]]("A page of sign-ins."),
	}
	endLoginDoc = operation{
		id: "endLogin", tag: tagAccess, summary: "End a sign-in",
		about: "Once this is answered, the browser changes nothing any more, on any node; its reads and streams " +
			"end within a second. Who is no admin of the cluster may end their own. A token or a person may sign " +
			"in again.",
		replies:  []reply{{status: http.StatusNoContent, about: "It is ended."}},
		problems: []kind{notFound, unknownOutcome},
	}
	endLoginsDoc = operation{
		id: "endLogins", tag: tagAccess, summary: "End all sign-ins of somebody",
		about: "As ending each of them. Without `who` nothing is ended.",
		query: []parameter{loginWhose}, replies: found[endedView]("How many were ended."),
		problems: []kind{notFound, unknownOutcome},
	}
	createTokenDoc = operation{
		id: "createToken", tag: tagAccess, once: true, sealed: true, summary: "Make a token",
		about: "The answer has the token itself, this once: only its hash is kept. With an `Idempotency-Key`, the " +
			"same request with the same credential gets it again for a day.",
		body: &requestBody{of: of[tokenBody](), about: "Who is to hold it, and what it may do.",
			example: `{"name": "ci", "role": "admin", "apps": ["billing"], "expires": "720h"}`},
		replies: []reply{{status: http.StatusCreated, about: "The token.", of: of[newTokenView](),
			headers: []string{"Location"}}}, problems: []kind{exists, unknownOutcome},
	}
	listTokensDoc = operation{
		id: "listTokens", tag: tagAccess, summary: "List tokens",
		about:   "In the order in which they were made; nobody can read their texts.",
		query:   []parameter{tokenName, tokenRevokedToo, limitParam, pageParam},
		replies: found[page[tokenView]]("A page of tokens."),
	}
	getTokenDoc = operation{
		id: "getToken", tag: tagAccess, summary: "Show a token", about: "Also one that was revoked.",
		replies: found[tokenView]("The token."), problems: []kind{notFound},
	}
	revokeTokenDoc = operation{
		id: "revokeToken", tag: tagAccess, summary: "Revoke a token",
		about: "Once this is answered, nothing is changed with the token any more, nor in browsers that signed in " +
			"with it, on any node; reads end within a second.",
		replies:  []reply{{status: http.StatusNoContent, about: "It is revoked, or was already."}},
		problems: []kind{notFound, unknownOutcome},
	}
)
