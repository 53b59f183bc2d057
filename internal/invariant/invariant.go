// Package invariant holds checks that are compiled in by the build tag
// "invariants" and cost nothing without it:
//
//	if invariant.Enabled && !sorted(rows) {
//		invariant.Fail("rows of %s are not sorted", name)
//	}
package invariant

import "fmt"

// Fail panics. It is called only under Enabled: a broken invariant is a bug
// in svc, never the answer to bad input.
func Fail(format string, args ...any) {
	panic("invariant broken: " + fmt.Sprintf(format, args...))
}
