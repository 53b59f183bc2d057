//go:build !windows && !windowsrules

package vfs

// ReplacesOpen reports whether a file that is open or mapped can be removed, replaced and renamed. Readers that have it open then
// continue with the old bytes.
const ReplacesOpen = true
