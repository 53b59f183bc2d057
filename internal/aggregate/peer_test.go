package aggregate

import (
	"context"
	"encoding/json"
	"testing"

	"svc/internal/numeric"
	"svc/internal/turns"
)

const everyKind = `{"t":{"terms":"x","aggregations":{"s":{"stats":"x"},"p":{"percentiles":"x"},"c":{"cardinality":"x"}}},` +
	`"h":{"histogram":"x","interval":0.1,"minCount":0},"d":{"dateHistogram":"x","interval":"month","timeZone":"Europe/Paris","minCount":0},` +
	`"r":{"range":"x","bands":[{"to":1},{"from":0}],"aggregations":{"s":{"stats":"x"}}},"s":{"stats":"x"}}`

// someState returns the state of a few values in each kind, as a peer sends it.
func someState(t testing.TB, r *Request) []byte {
	result, w := r.New(), &work{}
	for i, n := range result.nodes {
		b, ok := n.(*buckets)
		if !ok {
			continue
		}
		for k := range 2 {
			id, err := b.place(w, key{isNumber: true, number: numeric.Of(float64(k))})
			if err != nil {
				t.Fatal(err)
			}
			at, err := b.bucket(w, 0, id)
			if err != nil {
				t.Fatal(err)
			}
			b.counts[at]++
			for _, inner := range b.nested {
				switch inner := inner.(type) {
				case *stats:
					err = inner.fold(w, []uint32{at}, []numeric.Value{numeric.Of(3)}, nil, int(at)+1)
				case *percentiles:
					err = inner.fold(w, []uint32{at, at}, []numeric.Value{numeric.Of(3), numeric.Of(4)}, nil, int(at)+1)
				case *cardinality:
					var s *sketch
					if s, err = inner.group(w, int(at), 0); err == nil {
						s.InsertHash(hashNumber(numeric.Of(float64(i))))
					}
				}
				if err != nil {
					t.Fatal(err)
				}
			}
		}
	}
	return result.AppendPeer(nil)
}

// FuzzReadPeer reads states that a peer may have forged: nothing may panic, and an accepted state must merge and print as JSON.
func FuzzReadPeer(f *testing.F) {
	r, err := Parse([]byte(everyKind), "aggregations", "invalid_search_aggregations")
	if err != nil {
		f.Fatal(err)
	}
	f.Add(r.New().AppendPeer(nil))
	f.Add(someState(f, r))
	turn := turns.Of(context.Background())
	f.Fuzz(func(t *testing.T, text []byte) {
		m := &message{left: text}
		read, err := r.ReadPeer(m)
		if err != nil {
			t.Fatal(err)
		}
		if m.bad {
			return
		}
		whole := r.New()
		if err := whole.Merge(turn, read, "invalid_search_aggregations"); err != nil {
			return
		}
		body, err := whole.AppendJSON(turn, nil, "invalid_search_aggregations")
		if err == nil && !json.Valid(body) {
			t.Errorf("%x is shown as %s", text, body)
		}
	})
}

// TestPeerState sends states to a peer and back.
func TestPeerState(t *testing.T) {
	r, err := Parse([]byte(everyKind), "aggregations", "invalid_search_aggregations")
	if err != nil {
		t.Fatal(err)
	}
	turn, whole := turns.Of(context.Background()), r.New()
	for range 2 {
		m := &message{left: someState(t, r)}
		read, err := r.ReadPeer(m)
		if err != nil || m.bad || len(m.left) > 0 {
			t.Fatalf("%v, bad %v, %d bytes left", err, m.bad, len(m.left))
		}
		if err := whole.Merge(turn, read, "invalid_search_aggregations"); err != nil {
			t.Fatal(err)
		}
	}
	body, err := whole.AppendJSON(turn, nil, "invalid_search_aggregations")
	const bucket = `"aggregations":{"s":{"count":2,"min":3.0,"max":3.0,"sum":6.0,"avg":3.0,"stdDev":0.0},"p":{"values":{"1":3.0,"5":3.0,"25":3.0,"50":3.5,"75":4.0,"95":4.0,"99":4.0}},"c":{"value":1}}}`
	const want = `{"t":{"buckets":[{"key":0,"count":2,` + bucket + `,{"key":1,"count":2,` + bucket + `],"otherCount":0},`
	if err != nil || string(body[:min(len(body), len(want))]) != want {
		t.Errorf("%v, %s\nwant %s", err, body, want)
	}
	if truncated := someState(t, r); true {
		for i := range truncated {
			m := &message{left: truncated[:i]}
			if _, err := r.ReadPeer(m); err == nil && !m.bad {
				t.Errorf("%d of %d bytes are accepted as a state", i, len(truncated))
			}
		}
	}
}
