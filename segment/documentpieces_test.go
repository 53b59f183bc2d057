package segment

import (
	"bytes"
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"

	"svc/internal/apierr"
	"svc/internal/mapped"
)

// largeDoc makes a document with members of all sizes, whose keys and values are hard to skip.
func largeDoc(rng *rand.Rand, members int) []byte {
	var b strings.Builder
	b.WriteByte('{')
	for i := range members {
		if i > 0 {
			b.WriteByte(',')
		}
		fmt.Fprintf(&b, `"%s%d":`, []string{"k", `quo\"te\\`, "é,", "a.b{", "}]"}[rng.IntN(5)], i)
		n := []int{1, 5, 20, 20, 3000, 5000, 40000}[rng.IntN(7)]
		switch rng.IntN(4) {
		case 0:
			fmt.Fprint(&b, rng.IntN(1000))
		case 1:
			b.WriteByte('"')
			for b2 := n; b2 > 0; b2-- {
				b.WriteString([]string{"x", "word ", `\"`, `\\`, ",", "}", "é"}[rng.IntN(7)])
			}
			b.WriteByte('"')
		case 2:
			fmt.Fprintf(&b, `{"deep":{"er":[%s1]}}`, strings.Repeat(`{"a":"]"},`, n/10))
		default:
			fmt.Fprintf(&b, `[%snull]`, strings.Repeat(`1.5,`, n/4))
		}
	}
	b.WriteByte('}')
	return []byte(b.String())
}

// storedPieces returns the stored form of a document.
func storedPieces(doc []byte) []byte {
	table, pieces, _ := compressPieces(doc)
	return append(append([]byte{documentPieces}, table...), bytes.Join(pieces, nil)...)
}

func readerOfDocs(docs [][]byte) *documentReader {
	var data, index []byte
	limit := 0
	for _, doc := range docs {
		index = append(index, byte(len(data)), byte(len(data)>>8), byte(len(data)>>16), byte(len(data)>>24), 0)
		data = append(data, storedPieces(doc)...)
		limit += len(doc)
	}
	index = append(index, byte(len(data)), byte(len(data)>>8), byte(len(data)>>16), byte(len(data)>>24), 0)
	b := new(blocks)
	b.sound.Store(true)
	return &documentReader{blocks: b, index: index, data: data, rows: len(docs), limit: uint64(limit)}
}

func TestLargeDocumentsAreReadByMembers(t *testing.T) {
	rng := testRand(t)
	for range 15 {
		doc := largeDoc(rng, rng.IntN(14))
		if !json.Valid(doc) {
			t.Fatalf("%.200s", doc)
		}
		r := Reader{docs: *readerOfDocs([][]byte{doc})}
		got, err := r.docs.append([]byte("before"), 0)
		if err != nil || string(got) != "before"+string(doc) {
			t.Fatalf("%v: %d bytes, want %d", err, len(got), len(doc)+6)
		}
		members := membersOf(doc)
		for range 10 {
			share := 1 + rng.IntN(4)
			wanted := map[string]bool{}
			var want []string
			for _, m := range members {
				if rng.IntN(share) == 0 {
					wanted[string(m.key)] = true
					want = append(want, string(doc[m.start:m.end]))
				}
			}
			if len(members) == 0 {
				continue
			}
			got, err := r.AppendMembers(nil, 0, Wanted{Has: func(key []byte) bool { return wanted[string(key)] }}, nil)
			if err != nil || string(got) != "{"+strings.Join(want, ",")+"}" {
				t.Fatalf("%v: %.300s", err, got)
			}
		}
	}
}

func TestDocumentsWithoutATable(t *testing.T) {
	many := []byte(`{"k":0` + strings.Repeat(`,"k":1`, 2*maxPieceMembers) + `}`)
	for _, doc := range []string{`[1,2]`, `{}`, string(many), `{"a":1`, `{"a" :1}`, `{"a":"\"}`} {
		r := Reader{docs: *readerOfDocs([][]byte{[]byte(doc)})}
		got, err := r.AppendMembers(nil, 0, Wanted{Has: func([]byte) bool { return false }}, nil)
		if err != nil || string(got) != doc {
			t.Errorf("%.20s: %v, %.20s", doc, err, got)
		}
	}
}

func FuzzPieces(f *testing.F) {
	rng := rand.New(rand.NewPCG(3, 4))
	for n := range 3 {
		f.Add(storedPieces(largeDoc(rng, n)))
	}
	f.Fuzz(func(t *testing.T, stored []byte) {
		if len(stored) == 0 || stored[0] != documentPieces {
			return
		}
		docs := readerOfDocs(nil)
		docs.limit = 1 << 20
		for _, read := range []func(d *pieces) ([]byte, error){
			func(d *pieces) ([]byte, error) { return d.all(nil) },
			func(d *pieces) ([]byte, error) {
				return d.members(nil, func(key []byte) bool { return len(key)%2 == 0 })
			},
			func(d *pieces) ([]byte, error) {
				d.brief = func([]byte) bool { return true }
				if _, err := d.members(nil, d.brief); err != nil {
					return nil, err
				}
				var text []byte
				for i := range d.tails {
					for d.tails[i].More() {
						var err error
						if text, err = d.tails[i].Append(text[:0]); err != nil {
							return nil, err
						}
					}
				}
				return nil, nil
			},
		} {
			if err := mapped.Guard(func() error {
				var d pieces
				if err := d.open(docs, stored, 0); err != nil {
					return err
				}
				_, err := read(&d)
				return err
			}); err != nil && !apierr.IsCorruption(err) {
				t.Fatal(err)
			}
		}
	})
}

func FuzzMembers(f *testing.F) {
	f.Add([]byte(`{"a":1,"b":{"c":["}"]},"d":"\\\""}`))
	f.Add([]byte(`{"a":1,}`))
	f.Fuzz(func(t *testing.T, doc []byte) {
		var compact bytes.Buffer
		if json.Compact(&compact, doc) != nil {
			membersOf(doc) // must not panic
			return
		}
		doc = compact.Bytes()
		members := membersOf(doc)
		if members == nil {
			return
		}
		var all [][]byte
		for _, m := range members {
			all = append(all, doc[m.start:m.end])
		}
		if got := "{" + string(bytes.Join(all, []byte(","))) + "}"; got != string(doc) {
			t.Fatalf("%s became %s", doc, got)
		}
	})
}
