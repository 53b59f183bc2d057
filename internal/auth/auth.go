// Package auth owns the API keys: their file, their values, what each may do and on which indexes. It also owns the tenant tokens that
// callers derive from them.
//
// The value of a key is the hex text of HMAC-SHA256(master key, uid). It is derived, never stored. So the file has no secret, and clients
// keep their keys when their instance moves with the same master key.
//
// Authorization reads a table in memory, without a lock (caller.go). A change writes the file, syncs it, and then replaces the table: a key
// that was refused, or whose deletion was acknowledged, never works after a restart.
//
// Caveats:
//   - Without a master key every caller has full access, except to keys and chats.
//   - Compare values in constant time, and never log or show one (conceal.go).
//   - A caller that lacks a right must not learn whether an index or a key exists.
package auth
