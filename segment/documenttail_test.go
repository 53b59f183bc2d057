package segment

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"

	"svc/internal/jsontext"
)

// TestBeginningsAndTails checks that beginnings and tails of cut strings add up to the strings.
func TestBeginningsAndTails(t *testing.T) {
	rng := testRand(t)
	string2 := func() string {
		words := [][]string{{"x", "word ", `\"`, `\\`, ",", "}", "é", `\ud83d\ude00`, `\n`, `\u00e9 `}, {"x", "東", `\\`}, {"ab "}, {" "}}[rng.IntN(4)]
		var b strings.Builder
		for n := []int{0, 100, 5000, 60_000, 200_000, 400_000}[rng.IntN(6)]; b.Len() < n; {
			b.WriteString(words[rng.IntN(len(words))])
		}
		return `"` + b.String() + `"`
	}
	cuts := 0
	for round := 0; round < 60 || round < 1200 && cuts == 0; round++ {
		values := make([]string, 1+rng.IntN(5))
		var parts []string
		for i := range values {
			switch values[i] = string2(); rng.IntN(5) {
			case 0:
				values[i] = "[" + values[i] + "]"
			case 1:
				values[i] = fmt.Sprint(rng.IntN(100))
			}
			parts = append(parts, fmt.Sprintf(`"k%d":%s`, i, values[i]))
		}
		doc := []byte("{" + strings.Join(parts, ",") + "}")
		if len(doc) < largeDocument {
			continue
		}
		r := Reader{docs: *readerOfDocs([][]byte{doc})}
		wanted, brief := rng.Uint32(), rng.Uint32()
		in := func(set uint32) func(key []byte) bool {
			return func(key []byte) bool { return set>>(key[2]-'0')&1 != 0 }
		}
		got, tails, err := r.AppendBeginnings(nil, 0, Wanted{Has: in(wanted)}, in(brief), nil, nil)
		if err != nil || !json.Valid(got) {
			t.Fatalf("round %d: %v, %.300s", round, err, got)
		}
		if err := jsontext.EachMember(got, func(key, value []byte) error {
			i := key[2] - '0'
			if wanted>>i&1 == 0 {
				t.Errorf("round %d: %s was not requested", round, key)
			}
			wanted &^= 1 << i
			if len(tails) == 0 || string(tails[0].Key()) != string(key) {
				if string(value) != values[i] {
					t.Errorf("round %d: %s has %d bytes, want %d", round, key, len(value), len(values[i]))
				}
				return nil
			}
			cuts++
			tail := &tails[0]
			tails = tails[1:]
			if brief>>i&1 == 0 || len(value) > 2*pieceBytes || !strings.HasSuffix(string(value), ` "`) {
				t.Errorf("round %d: %s is cut after %d bytes: %.20s", round, key, len(value), value[len(value)-10:])
			}
			text := jsontext.AppendUnquoted(nil, value)
			for tail.More() {
				n := len(text)
				if text, err = tail.Append(text); err != nil {
					t.Fatal(err)
				}
				if len(text) == n || tail.More() && text[len(text)-1] != ' ' {
					t.Errorf("round %d: a part of %s has %d bytes", round, key, len(text)-n)
				}
			}
			if string(text) != string(jsontext.AppendUnquoted(nil, []byte(values[i]))) {
				t.Errorf("round %d: %s differs", round, key)
			}
			return nil
		}); err != nil {
			t.Fatal(err)
		}
		if wanted&(1<<len(values)-1) != 0 || len(tails) > 0 {
			t.Errorf("round %d: members %b are missing, %d tails belong to no member", round, wanted, len(tails))
		}
	}
	if cuts == 0 {
		t.Error("no string was cut")
	}
}

// TestTailOfADamagedDocument reads a tail whose pieces are truncated.
func TestTailOfADamagedDocument(t *testing.T) {
	doc := []byte(`{"a":"` + strings.Repeat("some words ", 50_000) + `"}`)
	r := Reader{docs: *readerOfDocs([][]byte{doc})}
	all := func([]byte) bool { return true }
	_, tails, err := r.AppendBeginnings(nil, 0, Wanted{Has: all}, all, nil, nil)
	if err != nil || len(tails) != 1 {
		t.Fatalf("%v, %d tails", err, len(tails))
	}
	tails[0].pieces.count = 1
	for tails[0].More() {
		if _, err = tails[0].Append(nil); err != nil {
			return
		}
	}
	t.Error("a truncated tail was read without an error")
}
