package search

import (
	"context"
	"time"
)

// Each instance of a network sends as many hits as the page ends with. One hit with several distinct values may displace several hits of
// another instance, so these may be too few: a list ends before the page is full, and the following hits of the other lists may come
// behind some that were not sent. Then the search runs again with longer lists.

// How often a search runs again, and for how many times as many hits.
const (
	maxFurther   = 3
	timesFurther = 8
)

// further searches again with longer lists while one ends before the page is full. If the answer with longer lists lacks something that
// the one before has, the one before is returned.
func (r *FederatedResponse) further(ctx context.Context, spread Spread) (*FederatedResponse, error) {
	ask := r.request.RemoteHits
	for n := 0; n < maxFurther && r.cut && ask != nil; n++ {
		if d := r.deadline(); !d.IsZero() && time.Now().After(d) {
			break
		}
		again := *r.request
		again.Least = timesFurther * r.request.asksFor()
		again.Remotes = func(ctx context.Context) []*RemoteAnswer { return ask(ctx, &again) }
		next, err := federate(ctx, &again, spread, r.start)
		if err != nil {
			return nil, err
		}
		if next.failed() > r.failed() || next.Degraded() && !r.Degraded() {
			break
		}
		r = next
	}
	return r, nil
}

// failed returns how many remotes failed.
func (r *FederatedResponse) failed() (n int) {
	for _, a := range r.remotes {
		if a.Err != nil {
			n++
		}
	}
	return n
}
