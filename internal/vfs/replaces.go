//go:build !windows && !windowsrules

package vfs

// ReplacesOpen reports whether a file that is open, or mapped, can be removed and replaced, and renamed. Then who
// has it open goes on with the bytes it had.
const ReplacesOpen = true
