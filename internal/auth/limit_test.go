package auth

import (
	"fmt"
	"math/rand/v2"
	"testing"
	"time"

	"github.com/google/uuid"

	"svc/internal/apierr"
)

// limited returns a store, and a caller whose key has limits.
func limited(t *testing.T, limit RateLimit, actions ...string) (*Keys, *Caller) {
	t.Helper()
	k, _ := newStore(t)
	key, err := k.Create(Key{UID: uuid.MustParse(someUID), Actions: actions, Indexes: []string{"*"}, RateLimit: limit})
	if err != nil {
		t.Fatal(err)
	}
	return k, call(t, k, key, actions[0])
}

func call(t *testing.T, k *Keys, key *Key, action string) *Caller {
	t.Helper()
	c, err := k.Authorize(k.Value(key), action, "")
	if err != nil {
		t.Fatal(err)
	}
	return c
}

func TestRateLimits(t *testing.T) {
	_, c := limited(t, RateLimit{Searches: 4, Writes: 2}, "*")
	at := time.Unix(100, 0)
	for _, tt := range []struct {
		action string
		after  time.Duration // after the previous request
		more   int           // extra searches that the request turns out to have
		wait   time.Duration
	}{
		{action: "search"}, {action: "search"}, {action: "search"}, {action: "search"},
		{action: "search", wait: 250 * time.Millisecond},
		{action: "search", after: 100 * time.Millisecond, wait: 150 * time.Millisecond},
		{action: "chatCompletions", after: 150 * time.Millisecond},
		{action: "search", wait: 250 * time.Millisecond},
		{action: "documents.add"}, {action: "keys.create"},
		{action: "settings.update", wait: 500 * time.Millisecond},
		{action: "documents.get"}, {action: "keys.get"}, {action: "stats.get"}, {action: "metrics.get"}, {action: "fields.post"}, // no rate limit
		{action: "indexes.create", after: 500 * time.Millisecond},
		{action: "search"}, // one of two that half a second allows
		{action: "search", more: 9},
		{action: "search", after: 2 * time.Second, wait: 500 * time.Millisecond}, // 9 are owed, 2 s allow only 8
		{action: "search", after: 500 * time.Millisecond},
		{action: "search", after: time.Hour, more: 3}, // one second's searches accumulate
		{action: "search", wait: 250 * time.Millisecond},
	} {
		at = at.Add(tt.after)
		wait, err := c.Admit(tt.action, at)
		if wait != tt.wait || (err != nil) != (tt.wait > 0) || err != nil && apierr.From(err).Code != "api_key_rate_limit_exceeded" {
			t.Errorf("%s at %v: wait for %v, want %v: %v", tt.action, at, wait, tt.wait, err)
		}
		if err == nil {
			c.Charge(tt.more, at)
			c.End()
		}
	}
}

// TestConcurrentLimit changes the limits of a key while its requests are running.
func TestConcurrentLimit(t *testing.T) {
	k, c := limited(t, RateLimit{Concurrent: 2}, "search")
	now := time.Unix(100, 0)
	admits := func(c *Caller, want bool) {
		t.Helper()
		if _, err := c.Admit("search", now); (err == nil) != want {
			t.Errorf("a request was admitted: %v", err == nil)
		}
	}
	admits(c, true)
	admits(c, true)
	admits(c, false)
	key, err := k.Update(someUID, Change{RateLimit: &RateLimit{Concurrent: 3}})
	if err != nil {
		t.Fatal(err)
	}
	later := call(t, k, key, "search")
	admits(later, true)
	admits(later, false)
	c.End()
	admits(later, true)
	for range 3 {
		later.End()
	}
	refused := map[string]uint64{}
	k.Refusals(func(key uuid.UUID, limit LimitKind, n uint64) { refused[key.String()+" "+limit.String()] = n })
	if want := (map[string]uint64{someUID + " searchesPerSecond": 0, someUID + " writesPerSecond": 0, someUID + " concurrent": 2}); fmt.Sprint(refused) != fmt.Sprint(want) {
		t.Errorf("refused: %v, want %v", refused, want)
	}
	if n := later.key.limiter.running; n != 0 {
		t.Errorf("%d requests are running", n)
	}
	if key, err = k.Update(someUID, Change{RateLimit: new(RateLimit)}); err != nil {
		t.Fatal(err)
	}
	for range 9 {
		admits(call(t, k, key, "search"), true)
	}
}

// TestRateLimitsHoldForRandomRequests counts the requests admitted within a minute.
func TestRateLimitsHoldForRandomRequests(t *testing.T) {
	seed := rand.Uint64()
	t.Logf("seed %d", seed)
	r := rand.New(rand.NewPCG(seed, 0))
	for range 50 {
		limit := 1 + r.IntN(20)
		_, c := limited(t, RateLimit{Searches: limit}, "search")
		at, admitted, refused := time.Unix(0, 1), 0, 0
		const seconds = 60
		for end := at.Add(seconds * time.Second); at.Before(end); at = at.Add(time.Duration(r.IntN(1e9 / limit))) {
			if wait, err := c.Admit("search", at); err == nil {
				admitted++
				c.End()
			} else if refused++; r.IntN(2) == 0 {
				at = at.Add(wait)
				if again, err := c.Admit("search", at); err != nil && again > time.Nanosecond {
					t.Fatalf("%d per second: after waiting %v another wait of %v: %v", limit, wait, again, err)
				} else if err == nil {
					admitted++
					c.End()
				}
			}
		}
		// The test sends twice as many requests as the limit allows, and one second's worth has accumulated at the start. With a limit of
		// 1 nothing more accumulates while no requests come.
		if most := limit*(seconds+1) + 1; admitted > most || admitted < limit*seconds/2 || refused == 0 {
			t.Errorf("%d per second: %d of %d were admitted", limit, admitted, admitted+refused)
		}
	}
}

func TestCoveredLimits(t *testing.T) {
	for _, tt := range []struct {
		own, other RateLimit
		want       bool
	}{
		{RateLimit{}, RateLimit{}, true},
		{RateLimit{}, RateLimit{1, 2, 3}, true},
		{RateLimit{1, 2, 3}, RateLimit{}, false},
		{RateLimit{1, 2, 3}, RateLimit{1, 2, 3}, true},
		{RateLimit{5, 5, 5}, RateLimit{5, 5, 6}, false},
		{RateLimit{5, 5, 5}, RateLimit{0, 5, 5}, false},
		{RateLimit{0, 5, 0}, RateLimit{9, 4, 0}, true},
	} {
		if got := tt.own.covers(tt.other); got != tt.want {
			t.Errorf("%+v covers %+v: %v", tt.own, tt.other, got)
		}
	}
}
