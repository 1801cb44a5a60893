package api

// problemDoc is what the reference says of a type of problems.
type problemDoc struct {
	kind
	means  string
	advice string
}

// problemTable has all types of problems.
var problemTable = []problemDoc{
	{unauthenticated, "No token came with the request, or one that lets nobody in: unknown, expired or revoked; or the browser is signed out.",
		"Send `Authorization: Bearer TOKEN`, or sign in."},
	{forbidden, "It is known who asks, and the role of that one does not allow this, or not in this app. What belongs to apps of which one may see nothing is not found instead.",
		"Ask whoever is admin of the cluster for a token with the role that `detail` names."},
	{tooMany, "The token makes more requests than it may, signs in too often, or too many unknown tokens came from this address.",
		"Try again after `Retry-After` seconds."},
	{providerAway, "The identity provider by which people sign in cannot be reached, or is not set up as it should be.",
		"Sign in with a token, and see the node's log."},
	{malformed, "The body is empty where one is wanted, broke off, is not UTF-8, or is not JSON.",
		"Correct the body; `detail` says at which byte it goes wrong."},
	{forbiddenHost, "The `Host` header names a host that this node does not serve. This keeps web pages from reaching it under a name of theirs.",
		"Use localhost, the address on which the node listens, or start it with `--host NAME`."},
	{crossOrigin, "A browser says that a page of another web site asks for the change.",
		"Ask from a page of this node, or from a program that is no browser."},
	{notFound, "There is nothing at this path, or no object of this id or name. Ids of jobs are never used again.",
		"Look it up in its list."},
	{methodNotAllowed, "The path is there, and the method is not.",
		"Use one that the header `Allow` names."},
	{exists, "Another object has this name.",
		"Change that one, or choose another name."},
	{changed, "Others changed the object again and again while this change was tried; nothing of it was made.",
		"Read the object again, and decide."},
	{unreadable, "The stored definition cannot be read, for instance because a newer version wrote it.",
		"Replace the whole definition with PUT."},
	{stale, "`If-Match` or `If-None-Match` says how it is to be, and it is not so; nothing was changed. `version`, and the header `ETag`, say at which version it is, if it has versions.",
		"Read the job again, and decide."},
	{keyReused, "This `Idempotency-Key` came with another request before.",
		"Use a new key for each request that is not a repetition."},
	{inUse, "Jobs refer to the object, so it cannot be deleted.",
		"Change the jobs that `detail` names first."},
	{noSecretKey, "The node was started without a key, so it can seal no secret.",
		"Ask another node, or give this one a key: `--secret-key-file`."},
	{hasEnded, "The run that is to be killed has ended.",
		"Nothing is left to do."},
	{tooLarge, "The body has more bytes than are taken.",
		"Send less: `detail` says how much is taken."},
	{unsupportedMedia, "The `Content-Type` is missing, or names something else than what is taken.",
		"Send `Content-Type: application/json`, or what the operation names."},
	{invalid, "The request can be read, and something in it cannot be right: a field, a query parameter or a header.",
		"Correct what `errors` names: each entry has the `field` and, in `message`, what would be right."},
	{internal, "Something failed that should not.",
		"Look for the `request_id` in the node's log."},
	{noSession, "The node may not change anything now: it is starting, draining, or out of touch with the database.",
		"Try again after `Retry-After` seconds, or ask another node."},
	{unknownOutcome, "The database did not tell whether the change was made, or only a part of it stands.",
		"Look where `detail` says before you ask again. Requests with an `Idempotency-Key`, and those that say how things are to be, can be sent again as they are."},
	{noStream, "The node has as many streams as it may have, or it is about to stop.",
		"Ask another node, or try again after `Retry-After` seconds."},
	{busy, "The node computes as many schedules as it may at once. Nothing was changed.",
		"Try again after `Retry-After` seconds, or ask another node."},
	{unavailable, "The database is out of reach or too busy. Nothing was changed.",
		"Try again after `Retry-After` seconds."},
}
