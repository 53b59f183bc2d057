//go:build invariants

package invariant

// Enabled reports whether invariants are checked.
const Enabled = true
