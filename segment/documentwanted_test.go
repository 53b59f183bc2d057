package segment

import (
	"bytes"
	"fmt"
	"strings"
	"testing"

	"svc/internal/jsontext"
	"svc/internal/vfs"
)

// TestWantedMembers reads some members of documents and compares them with those of whole documents, before and after these are cached.
// Reads may stop after the last wanted member.
func TestWantedMembers(t *testing.T) {
	rng := testRand(t)
	fsys := vfs.NewMem()
	value := func() string {
		switch n := rng.IntN(6); n {
		case 0:
			return fmt.Sprint(rng.IntN(1 << 30))
		case 1:
			return `"\"}` + strings.Repeat(`a\\`, rng.IntN(30)) + `,{"`
		case 2:
			return `{"k1":"inner","k2":[1,{"k3":null}]}`
		default:
			return `"` + strings.Repeat(fmt.Sprint("word", rng.IntN(50), " "), rng.IntN(40)) + `"`
		}
	}
	b := NewBuilder(BuilderOptions{})
	const rows = 300
	var want [rows][]byte
	for row := range rows {
		parts := []string{}
		for _, k := range rng.Perm(9)[:rng.IntN(10)] {
			parts = append(parts, fmt.Sprintf(`"k%d":%s`, k, value()))
		}
		want[row] = []byte("{" + strings.Join(parts, ",") + "}")
		b.StartDoc(DocID(row), []byte(fmt.Sprint("id", row)), want[row])
		b.EndDoc()
	}
	if _, err := b.Write(t.Context(), fsys, "s"); err != nil {
		t.Fatal(err)
	}
	s := openSegment(t, fsys, "s")
	members := func(doc []byte, has func([]byte) bool) (found []byte) {
		if err := jsontext.EachMember(doc, func(key, value []byte) error {
			if has(key) {
				found = append(append(append(found, key...), value...), '\n')
			}
			return nil
		}); err != nil {
			t.Fatalf("%s: %v", doc, err)
		}
		return found
	}
	shorter := 0
	for row, doc := range want {
		for range 4 {
			set := rng.Uint32() & rng.Uint32() & rng.Uint32()
			wanted := Wanted{Has: func(key []byte) bool { return set>>(key[2]-'0')&1 != 0 }}
			for k := range 9 {
				wanted.Most += int(set >> k & 1)
			}
			wanted.Most *= min(1, rng.IntN(8)) // rarely unknown
			got, err := s.AppendMembers([]byte("before"), Row(row), wanted, nil)
			if err != nil || !bytes.HasPrefix(got, []byte("before")) {
				t.Fatalf("%q: %v", got, err)
			}
			got = got[len("before"):]
			if !bytes.Equal(members(got, wanted.Has), members(doc, wanted.Has)) || !bytes.HasPrefix(doc, got[:len(got)-1]) {
				t.Fatalf("%09b of %s: %s", set, doc, got)
			}
			if len(got) < len(doc) {
				shorter++
				if wanted.Most == 0 {
					t.Errorf("%d members of %s were left out", wanted.Most, doc)
				}
			}
			if rng.IntN(4) == 0 {
				if whole, err := s.AppendDocument(nil, Row(row)); err != nil || !bytes.Equal(whole, doc) {
					t.Fatalf("%v: %s, want %s", err, whole, doc)
				}
			}
		}
	}
	if shorter == 0 {
		t.Errorf("%d documents were not read to their ends", shorter)
	}
}
