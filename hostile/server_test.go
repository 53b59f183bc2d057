package main

import (
	"testing"
	"time"
)

// TestHarm evaluates the searches of an honest client: slow ones, refused ones, and quarters of a second without an answer.
func TestHarm(t *testing.T) {
	const quarter, quick, slow = 250 * time.Millisecond, 5 * time.Millisecond, 600 * time.Millisecond
	at := func(quarters int, took time.Duration) sample { return sample{time.Duration(quarters) * quarter, took} }
	for what, tt := range map[string]struct {
		took        []sample
		worst, slow time.Duration
	}{
		"nothing":                 {nil, 0, 0},
		"quick ones":              {[]sample{at(0, quick), at(1, quick), at(2, quick)}, quick, 0},
		"two quarters without":    {[]sample{at(0, quick), at(3, slow), at(4, quick), at(5, quick)}, slow, 3 * quarter},
		"a refused one":           {[]sample{at(0, quick), at(1, refused), at(2, quick), at(3, quick)}, refused, quarter},
		"the last does not count": {[]sample{at(0, quick), at(1, slow)}, quick, 0},
	} {
		if worst, over := (&client{took: tt.took}).harm(5 * quick); worst != tt.worst || over != tt.slow {
			t.Errorf("%s: worst %v, slow for %v, want %v and %v", what, worst, over, tt.worst, tt.slow)
		}
	}
}
