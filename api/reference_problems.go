package api

// problemDoc describes a type of problems for the reference.
type problemDoc struct {
	kind
	means  string
	advice string
}

// problemTable lists all types of problems.
var problemTable = []problemDoc{
	{unauthenticated,
		"The request has no valid token: it is missing, unknown, expired or revoked; or the browser is signed out.",
		"Send `Authorization: Bearer TOKEN`, or sign in."},
	{forbidden,
		"The token is valid, but its role does not allow this request, or not in this app. Objects of apps that the " +
			"token cannot read at all are reported as not found.",
		"Ask an admin of the cluster for a token with the role that `detail` names."},
	{tooMany,
		"The token sends too many requests or signs in too often, or too many invalid tokens were sent from this address.",
		"Try again after `Retry-After` seconds."},
	{appLimit,
		"The change would exceed a limit that an admin of the cluster has set for the app: its jobs, its runs in a " +
			"minute, or its waiting due times. `detail` names the limit and the current number. Nothing was changed.",
		"If the header `Retry-After` is present, try again after that many seconds. Otherwise delete jobs, or ask for a " +
			"higher limit."},
	{providerAway, "The identity provider for sign-ins cannot be reached, or is not configured correctly.",
		"Sign in with a token, and look into the node's log."},
	{malformed, "The body is empty although one is required, ended early, is not UTF-8, or is not JSON.",
		"Correct the body; `detail` names the byte where the error is."},
	{forbiddenHost,
		"The `Host` header names a host that this node does not serve. This check stops web pages from reaching the " +
			"node through a name of their own.",
		"Use localhost or the address on which the node listens, or start the node with `--host NAME`."},
	{crossOrigin, "The browser reports that a page of another web site sent the change.",
		"Send the request from a page of this node, or from a program other than a browser."},
	{notFound, "There is nothing at this path, or no object with this id or name. Job ids are never used again.",
		"Look for it in the list of such objects."},
	{methodNotAllowed, "The path exists, but does not support this method.",
		"Use a method that the header `Allow` names."},
	{exists, "Another object already has this name.",
		"Change that object, or choose another name."},
	{changed, "Others changed the object during this request. Nothing was changed.",
		"Read the object again, then decide."},
	{unreadable, "The stored definition cannot be read, for instance because a newer version wrote it.",
		"Replace the whole definition with PUT."},
	{stale,
		"The condition in `If-Match` or `If-None-Match` does not hold. Nothing was changed. If the object has versions, " +
			"`version` and the header `ETag` give its current one.",
		"Read the object again, then decide."},
	{keyReused, "This `Idempotency-Key` was already sent with a different request.",
		"Use a new key for each new request."},
	{inUse, "The object cannot be deleted, because jobs or rules use it.",
		"First change the jobs or rules that `detail` names."},
	{noSecretKey, "The node was started without a key, so it cannot encrypt secrets.",
		"Ask another node, or give this one a key with `--secret-key-file`."},
	{hasEnded, "The run cannot be killed, because it has already ended.",
		"There is nothing to do."},
	{tooLarge, "The body is larger than allowed.",
		"Send less; `detail` names the limit."},
	{unsupportedMedia, "The `Content-Type` is missing or not supported.",
		"Send `Content-Type: application/json`, or the type that the operation names."},
	{invalid, "The request can be read, but a field, a query parameter or a header is wrong.",
		"Correct the entries of `errors`: each names a `field`, and `message` says what is wrong and what would be right."},
	{internal, "The request failed unexpectedly.",
		"Search the node's log for the `request_id`."},
	{noSession, "The node cannot make changes now, because it is starting, draining, or cut off from the database.",
		"Try again after `Retry-After` seconds, or ask another node."},
	{unknownOutcome, "It is unknown whether the change was made, because the database did not confirm it, or only a " +
		"part of it was made.",
		"First check what `detail` names. Requests with an `Idempotency-Key`, and requests that set an object to a " +
			"given state, can be repeated safely."},
	{noStream, "The node has reached its maximum of open streams, or is shutting down.",
		"Ask another node, or try again after `Retry-After` seconds."},
	{busy, "The node is already computing its maximum of schedules at once. Nothing was changed.",
		"Try again after `Retry-After` seconds, or ask another node."},
	{unavailable, "The database is unreachable or too busy. Nothing was changed.",
		"Try again after `Retry-After` seconds."},
}
