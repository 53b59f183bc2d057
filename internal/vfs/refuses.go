//go:build windows || windowsrules

package vfs

// ReplacesOpen reports whether a file that is open, or mapped, can be removed and replaced, and renamed: here it cannot.
const ReplacesOpen = false
