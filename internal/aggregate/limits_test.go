package aggregate

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/RoaringBitmap/roaring/v2"

	"svc/internal/apierr"
	"svc/internal/budget"
	"svc/internal/numeric"
	"svc/internal/settings"
	"svc/internal/turns"
	"svc/segment"
)

const testCode apierr.Code = "invalid_search_aggregations"

func parsed(t *testing.T, body string) *Request {
	t.Helper()
	r, err := Parse([]byte(body), "aggregations", testCode)
	if err != nil {
		t.Fatal(err)
	}
	return r
}

// addBuckets adds a bucket to group 0 for each number in [from, to).
func addBuckets(t *testing.T, b *buckets, from, to int) {
	t.Helper()
	for k := from; k < to; k++ {
		id, err := b.place(&work{}, key{isNumber: true, number: numeric.OfInt(int64(k))})
		if err != nil {
			t.Fatal(err)
		}
		at, err := b.bucket(&work{}, 0, id)
		if err != nil {
			t.Fatal(err)
		}
		b.counts[at]++
	}
}

// TestBucketLimit shows MaxBuckets buckets and refuses one more, whether the buckets have documents or fill gaps.
func TestBucketLimit(t *testing.T) {
	turn := turns.Of(context.Background())
	for body, add := range map[string]func(b *buckets, n int){
		`{"a":{"histogram":"x","interval":1}}`: func(b *buckets, n int) { addBuckets(t, b, 0, n) },
		`{"a":{"histogram":"x","interval":1,"minCount":0}}`: func(b *buckets, n int) {
			addBuckets(t, b, 0, 1)
			addBuckets(t, b, n-1, n)
		},
	} {
		for _, n := range []int{MaxBuckets, MaxBuckets + 1} {
			r := parsed(t, body).New()
			add(r.nodes[0].(*buckets), n)
			answer, err := r.AppendJSON(turn, nil, testCode)
			if n == MaxBuckets {
				if got := strings.Count(string(answer), `"count"`); err != nil || got != n {
					t.Errorf("%s: %d buckets, %v", body, got, err)
				}
				continue
			}
			var e *apierr.Error
			if !errors.As(err, &e) || e.Code != testCode || !strings.Contains(e.Message, "more than 10000 buckets") {
				t.Errorf("%s with %d buckets: %v", body, n, err)
			}
		}
	}
}

// TestGroupLimit merges results that together exceed the limit by one group.
func TestGroupLimit(t *testing.T) {
	defer func(most int) { maxGroups = most }(maxGroups)
	maxGroups = 100
	turn, request := turns.Of(context.Background()), parsed(t, `{"a":{"terms":"x"}}`)
	whole := request.New()
	for i, part := range [][2]int{{0, 60}, {30, 100}, {0, 100}, {100, 101}} {
		one := request.New()
		addBuckets(t, one.nodes[0].(*buckets), part[0], part[1])
		err := whole.Merge(turn, one, testCode)
		var e *apierr.Error
		if last := i == 3; last != (errors.As(err, &e) && e.Code == testCode && strings.Contains(e.Message, "more than 100 groups")) || !last && err != nil {
			t.Errorf("part %d: %v", i, err)
		}
	}
}

// TestMemoryOfGroups merges many groups into the account of a request: the bytes held must grow with them, and the limit
// must end the work.
func TestMemoryOfGroups(t *testing.T) {
	const groups = 20_000
	request := parsed(t, `{"a":{"terms":"x"}}`)
	one := request.New()
	addBuckets(t, one.nodes[0].(*buckets), 0, groups)
	for _, limit := range []int64{1 << 30, 1 << 20} {
		account := budget.New(limit, nil).Open(limit)
		err := request.New().Merge(turns.Of(context.WithValue(context.Background(), budget.Key, account)), one, testCode)
		held := account.Held()
		if enough := limit == 1<<30; enough != (err == nil) || enough && held < groups*(keyBytes+bucketBytes) || held > limit {
			t.Errorf("limit %d: %d held, %v", limit, held, err)
		}
		account.Close()
	}
}

// TestMemoryOfPeerSketches reads sketches of many small groups, which must be charged by their size, not as if each were full.
func TestMemoryOfPeerSketches(t *testing.T) {
	const groups = 1000
	request := parsed(t, `{"a":{"terms":"x","aggregations":{"c":{"cardinality":"x"}}}}`)
	one := request.New()
	b := one.nodes[0].(*buckets)
	addBuckets(t, b, 0, groups)
	for g := range groups {
		s, err := b.nested[0].(*cardinality).group(&work{}, g, groups)
		if err != nil {
			t.Fatal(err)
		}
		s.InsertHash(hashString(fmt.Append(nil, g)))
	}
	m := &message{left: one.AppendPeer(nil)}
	if _, err := request.ReadPeer(m); err != nil || m.bad || m.held < groups*sketchBytes || m.held > groups*4*sketchBytes {
		t.Errorf("%d bytes held for %d groups, bad %v, %v", m.held, groups, m.bad, err)
	}
}

// TestDeadline aggregates 20,000 documents past the deadline: the figures must be those of the first documents, and the result must be
// marked as degraded.
func TestDeadline(t *testing.T) {
	const rows = 20_000
	b := segment.NewBuilder(segment.BuilderOptions{})
	for i := range rows {
		b.StartDoc(segment.DocID(i), fmt.Append(nil, i), []byte("{}"))
		b.Number(0, numeric.OfInt(int64(i)))
		b.Present(0)
		b.EndDoc()
	}
	file := written(t, b)
	all := roaring.Flip(roaring.New(), 0, rows)
	for _, body := range []string{`{"a":{"stats":"x"}}`, `{"a":{"histogram":"x","interval":5,"aggregations":{"b":{"stats":"x"}}}}`} {
		for _, late := range []bool{false, true} {
			source := Source{
				Segments: []segment.Live{{Reader: file}},
				Fields:   settings.Resolve([]string{"x"}, settings.Default(), "id"),
				Count:    func(int) int { return rows },
				Rows:     func(int) *roaring.Bitmap { return all },
				Ordinals: func(_ int, _ segment.FieldID, c *segment.Column, strings bool) Ordinals {
					return CountOrdinals(c, strings, all, rows)
				},
				Deadline: time.Now().Add(time.Hour),
			}
			if late {
				source.Deadline = time.Now().Add(-time.Second)
			}
			result := parsed(t, body).New()
			if err := result.Compute(turns.Of(context.Background()), &source, testCode); err != nil {
				t.Fatal(err)
			}
			seen := uint64(0)
			switch n := result.nodes[0].(type) {
			case *stats:
				seen = n.settled().state("count").(*count).n[0]
			case *buckets:
				for _, c := range n.counts {
					seen += c
				}
			}
			if result.Degraded != late || (seen == rows) == late || seen == 0 {
				t.Errorf("%s, late %v: degraded %v after %d documents", body, late, result.Degraded, seen)
			}
		}
	}
}
