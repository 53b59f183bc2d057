package index

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"reflect"
	"strings"
	"testing"

	"svc/segment"
)

func TestPayloadLines(t *testing.T) {
	type line struct {
		payloadLine
		id string
	}
	rng := rand.New(rand.NewPCG(1, 2))
	for _, n := range []int{0, 1, 3, 50_000} {
		var all payloadLines
		var want []line
		for at := int64(0); len(want) < n; {
			at += rng.Int64N(3)
			if rng.IntN(100) == 0 {
				at += rng.Int64N(1 << 40)
			}
			l := payloadLine{offset: at, bytes: rng.Uint32N(1000), vectors: rng.IntN(2) == 0, lacking: []string{"", "", "a", "other"}[rng.IntN(4)]}
			if rng.IntN(100) == 0 {
				l.bytes = rng.Uint32()
			}
			if l.stood.seg = rng.Int32N(3) - 1; l.stood.seg >= 0 {
				l.stood.row = segment.Row(rng.Uint32())
			}
			at += int64(l.bytes)
			id := strings.Repeat(fmt.Sprint(rng.IntN(1000)), rng.IntN(100))
			all.add(l, []byte(id))
			want = append(want, line{l, id})
		}
		if all.count != n {
			t.Errorf("%d lines of %d", all.count, n)
		}
		for _, forget := range []bool{false, true} {
			var got []line
			if err := all.each(forget, func(l payloadLine, id []byte) error {
				got = append(got, line{l, string(id)})
				return nil
			}); err != nil || !reflect.DeepEqual(got, want) {
				t.Errorf("%d lines of %d, or others: %v", len(got), n, err)
			}
		}
		all.add(payloadLine{}, nil)
		if err := all.each(false, func(payloadLine, []byte) error { return errors.ErrUnsupported }); !errors.Is(err, errors.ErrUnsupported) {
			t.Error(err)
		}
	}
}

func TestListGrowsInPlace(t *testing.T) {
	var l chunked[int]
	for i := range 3*listChunk + 5 {
		if l.len() != i {
			t.Fatalf("%d entries, want %d", l.len(), i)
		}
		l.add(i)
	}
	for i := range l.len() {
		if *l.at(i) != i {
			t.Fatalf("entry %d is %d", i, *l.at(i))
		}
	}
}
