// Package secret keeps secrets that jobs use and people cannot read. A secret is a row whose value
// is sealed with a key that only nodes have. A reader of the database, its backups or its log
// learns nothing.
//
// Ring seals and opens: AES-256-GCM with a random nonce for each sealing. The name, the app and
// the version of the secret are authenticated with the value. So a row does not open if its value
// was copied from another row, or if its app was changed outside the program. An attacker with
// write access to the database can still put back an earlier version of a whole row.
//
// Store writes secrets, and Reader reads them. Plain values are in memory only while they are
// stored or used. Logs, errors, answers and the audit never have plain values. Caches have only
// sealed rows.
//
// Rotation: a ring may have several keys. The first key seals, and all keys open. To change keys,
// first give every node the new key as its second key, and then as its first. Then [Store.Rotate]
// seals all rows with the new key, and the old key can be removed.
package secret
