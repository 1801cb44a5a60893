// Package secret keeps what jobs use and nobody may read. A secret is a row whose value is sealed with a key that only
// nodes have: who reads the database, its backups or its log has nothing.
//
// Ring seals and opens: AES-256-GCM with a random nonce for each sealing. The name, the app and the version of the
// secret are authenticated with it, so a row whose value was put there from another one, or whose app was changed by
// hand, does not open. What remains to somebody who may write to the database is to put back a whole row as it once was.
//
// Store writes and reads. Values are in memory while they are put in or used, and nowhere else: not in logs, errors,
// answers, the audit or caches, which have sealed rows only.
//
// Rotation: a ring may have several keys. The first one seals, all of them open. To change keys, every node first learns
// the new key as its second, then as its first; then [Store.Rotate] seals all rows with it, and the old one can go.
package secret
