package rank

import (
	"encoding/binary"
	"math"

	"svc/internal/settings"
)

// Scoring is what the rule score adds up.
type Scoring struct {
	Functions *settings.ScoreFunctions
	Filters   []Filter // by function; nil: it selects nothing, or the function is not a filter
	Now       int64    // seconds since 1970 that `now` stands for
}

// The share of a date is recomputed, and answers expire, after this part of the scale.
const (
	nowSteps    = 100
	longestStep = 3600 // seconds
)

// step is for how many seconds `now` stays the same.
func step(f *settings.ScoreFunction) int64 {
	return int64(min(max(f.Scale/nowSteps, 1), longestStep))
}

// Lasts returns the range of seconds since 1970 in which the scores stay the same: from the first on, and before the second.
func (s *Scoring) Lasts() (from, until int64) {
	from, until = math.MinInt64, math.MaxInt64
	for i := range s.Functions.Functions {
		if f := &s.Functions.Functions[i]; f.Origin.Now {
			begin := s.now(f)
			from, until = max(from, begin), min(until, begin+step(f))
		}
	}
	return from, until
}

// shortestStep is the least number of seconds for which scores stay the same if their levels are cached by row.
const shortestStep = 600

// perRow reports whether levels depend only on the functions and the segment for some time, and fit into bytes.
func (s *Scoring) perRow() bool {
	for i := range s.Functions.Functions {
		f := &s.Functions.Functions[i]
		if f.Kind == settings.FilterScore || f.Origin.Now && step(f) < shortestStep {
			return false
		}
	}
	return s.Functions.Levels <= 1<<8
}

func (s *Scoring) now(f *settings.ScoreFunction) int64 { return s.Now - s.Now%step(f) }

// appendScoring appends what scores depend on besides the segments. It returns false if they depend on more.
func appendScoring(key []byte, s *Scoring) ([]byte, bool) {
	if s == nil {
		return append(key, 0), true
	}
	key = appendString(append(key, 1), string(s.Functions.JSON()))
	for i := range s.Functions.Functions {
		f := &s.Functions.Functions[i]
		if f.Origin.Now {
			key = binary.AppendVarint(key, s.now(f))
		}
		if f.Kind == settings.FilterScore && s.Filters[i] != nil {
			of := s.Filters[i].Key()
			if of == nil {
				return nil, false
			}
			key = appendString(key, string(of))
		}
	}
	return key, true
}
