package auth

import (
	"fmt"
	"math"
	"sync"
	"time"

	"github.com/google/uuid"

	"svc/internal/apierr"
)

// RateLimit limits the requests with a key and its tenant tokens. A field of 0 is no limit.
type RateLimit struct {
	Searches   int `json:"searchesPerSecond,omitempty"` // searches, queries of multi-searches, and conversations
	Writes     int `json:"writesPerSecond,omitempty"`   // requests that change data
	Concurrent int `json:"concurrent,omitempty"`        // requests in progress
}

// perSecond returns the limit per second of a kind of requests, or 0.
func (l RateLimit) perSecond(kind LimitKind) int {
	switch kind {
	case Searches:
		return l.Searches
	case Writes:
		return l.Writes
	}
	return 0
}

// Check validates the limits.
func (l RateLimit) Check() error {
	for _, n := range [...]int{l.Searches, l.Writes, l.Concurrent} {
		if n < 0 || n > MaxRate {
			return fmt.Errorf("a rate limit of %d", n)
		}
	}
	return nil
}

// MaxRate is the largest value of a field of RateLimit.
const MaxRate = 1_000_000

// covers reports whether no field of other allows more.
func (l RateLimit) covers(other RateLimit) bool {
	least := func(own, other int) bool { return own == 0 || other > 0 && other <= own }
	return least(l.Searches, other.Searches) && least(l.Writes, other.Writes) && least(l.Concurrent, other.Concurrent)
}

// LimitKind identifies a field of RateLimit.
type LimitKind uint8

const (
	Searches LimitKind = iota
	Writes
	Concurrent
	limitKinds

	unlimited = limitKinds // for requests that only read
)

var limitNames = [limitKinds]string{"searchesPerSecond", "writesPerSecond", "concurrent"}

// String returns the API's name of the field.
func (k LimitKind) String() string { return limitNames[k] }

// limitOf returns the rate limit that applies to requests with an action.
func limitOf(action string) LimitKind {
	switch need := needed[action]; {
	case action == "search" || action == chatting:
		return Searches
	case need == 0 || need&reading != 0:
		return unlimited
	}
	return Writes
}

// limiter counts the requests of one key. A key that is changed keeps its limiter.
type limiter struct {
	mu      sync.Mutex
	perTime [2]bucket // Searches and Writes
	running int
	refused [limitKinds]uint64
}

// bucket is a token bucket that holds the tokens of one second. Its zero value is full. It may go into debt: a request whose cost
// shows only after its body is read is still answered, and later requests wait.
type bucket struct {
	tokens float64
	at     time.Time
}

// take takes a token. If there is none, it returns the time until there is one.
func (b *bucket) take(rate int, now time.Time) (wait time.Duration) {
	b.fill(rate, now)
	if b.tokens < 1 {
		return time.Duration(math.Ceil((1 - b.tokens) / float64(rate) * float64(time.Second)))
	}
	b.tokens--
	return 0
}

func (b *bucket) fill(rate int, now time.Time) {
	full := float64(rate)
	switch passed := now.Sub(b.at); {
	case b.at.IsZero():
		b.tokens, b.at = full, now
	case passed > 0: // requests may be counted out of order
		b.tokens, b.at = b.tokens+passed.Seconds()*full, now
	}
	b.tokens = min(b.tokens, full)
}

// Admit counts a request with an action that arrived at now. Beyond a limit, it returns an error (api_key_rate_limit_exceeded) and
// how long to wait. The caller must End an admitted request.
func (c *Caller) Admit(action string, now time.Time) (wait time.Duration, err error) {
	if c == nil || c.key.RateLimit == (RateLimit{}) {
		return 0, nil
	}
	limit, l := c.key.RateLimit, c.key.limiter
	l.mu.Lock()
	defer l.mu.Unlock()
	if limit.Concurrent > 0 && l.running >= limit.Concurrent {
		l.refused[Concurrent]++
		return time.Second, exceeded(refusals[Concurrent], limit.Concurrent)
	}
	if kind := limitOf(action); limit.perSecond(kind) > 0 {
		if wait = l.perTime[kind].take(limit.perSecond(kind), now); wait > 0 {
			l.refused[kind]++
			return wait, exceeded(refusals[kind], limit.perSecond(kind))
		}
	}
	l.running++
	return 0, nil
}

// refusals has the error message for each limit.
var refusals = [limitKinds]string{
	Searches:   "The API key allows %d searches per second. Wait for the seconds in `Retry-After`.",
	Writes:     "The API key allows %d writes per second. Wait for the seconds in `Retry-After`, or send more documents per request.",
	Concurrent: "The API key allows %d concurrent requests, and as many are running. Wait for one of them to finish.",
}

func exceeded(format string, limit int) error {
	return apierr.New("api_key_rate_limit_exceeded", format, limit)
}

// Charge counts more searches for an admitted request.
func (c *Caller) Charge(searches int, now time.Time) {
	if c == nil || c.key.RateLimit.Searches == 0 || searches <= 0 {
		return
	}
	l := c.key.limiter
	l.mu.Lock()
	defer l.mu.Unlock()
	b := &l.perTime[Searches]
	b.fill(c.key.RateLimit.Searches, now)
	b.tokens -= float64(searches)
}

// End ends an admitted request.
func (c *Caller) End() {
	if c == nil || c.key.RateLimit == (RateLimit{}) {
		return
	}
	c.key.limiter.mu.Lock()
	c.key.limiter.running--
	c.key.limiter.mu.Unlock()
}

// Refusals calls f for each limit of each key with the number of requests it refused. It omits keys without limits.
func (k *Keys) Refusals(f func(key uuid.UUID, limit LimitKind, refused uint64)) {
	for uid, e := range k.table.Load().byUID {
		if e.RateLimit == (RateLimit{}) {
			continue
		}
		e.limiter.mu.Lock()
		refused := e.limiter.refused
		e.limiter.mu.Unlock()
		for limit, n := range refused {
			f(uid, LimitKind(limit), n)
		}
	}
}
