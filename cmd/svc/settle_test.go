package main

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"
	"time"
)

// settler is a server whose requests take some time.
type settler time.Duration

func (s settler) Settle(ctx context.Context) {
	select {
	case <-time.After(time.Duration(s)):
	case <-ctx.Done():
	}
}

// TestALeaderThatStopsSettlesInTime checks how long a leader that hands over waits for running requests; the wait is shorter once it is
// asked to stop.
func TestALeaderThatStopsSettlesInTime(t *testing.T) {
	if settleTime+lastSearches+lastBodies >= stopTime {
		t.Error("a stop leaves no time to close the data")
	}
	const never = time.Hour
	for name, tt := range map[string]struct {
		runs, stops, lost time.Duration // duration of requests; time until the stop, and until the lead is lost
		want              time.Duration
	}{
		"all end":              {runs: time.Second, stops: never, lost: never, want: time.Second},
		"some run long":        {runs: never, stops: never, lost: never, want: stopTime},
		"a stop":               {runs: never, lost: never, want: settleTime},
		"a stop meanwhile":     {runs: never, stops: time.Second, lost: never, want: time.Second + settleTime},
		"a late stop":          {runs: never, stops: 4 * time.Second, lost: never, want: stopTime},
		"all end after a stop": {runs: 2 * time.Second, stops: time.Second, lost: never, want: 2 * time.Second},
		"the lead is lost":     {runs: never, stops: never, lost: time.Second, want: time.Second},
		"lost after a stop":    {runs: never, stops: time.Second, lost: 2 * time.Second, want: 2 * time.Second},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				stops, led, lost := make(chan struct{}), make(chan error, 1), errors.New("lost")
				stop := time.AfterFunc(tt.stops, func() { close(stops) })
				defer stop.Stop()
				lose := time.AfterFunc(tt.lost, func() { led <- lost })
				defer lose.Stop()
				began := time.Now()
				err, over := settle(settler(tt.runs), led, stops)
				if took := time.Since(began); took != tt.want || over != (tt.lost < never) || over && !errors.Is(err, lost) {
					t.Errorf("settled after %v (lead lost: %v, %v), want %v", took, over, err, tt.want)
				}
			})
		})
	}
}
