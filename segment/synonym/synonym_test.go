package synonym

import (
	"bytes"
	"encoding/hex"
	"fmt"
	"math"
	"math/rand/v2"
	"reflect"
	"strings"
	"testing"
)

var small = map[string][][]string{"red": {{"blue"}, {"light", "blue"}}, "new\x00york": {{"nyc"}}, "": {{}}}

// TestFormat fixes the encoding, which is stored in directories: it may change only with a new file version.
func TestFormat(t *testing.T) {
	table := Make(small)
	got := hex.EncodeToString(table.bytes())
	if got != goldenTable {
		t.Errorf("a table is %s, want %s", got, goldenTable)
	}
}

// goldenTable is the encoded table of small: number of entries, their ends, the entries.
const goldenTable = "03000000" + "0300000000000000" + "1200000000000000" + "2900000000000000" +
	"00" + "0100" +
	"086e657700796f726b" + "01" + "01036e7963" +
	"03726564" + "02" + "0104626c7565" + "02056c6967687404626c7565"

func TestLookup(t *testing.T) {
	r := rand.New(rand.NewPCG(1, 2))
	for n := range 60 {
		want := map[string][][]string{}
		for range n {
			key := fmt.Sprintf("%x", r.IntN(40))
			var values [][]string
			for range 1 + r.IntN(4) {
				values = append(values, strings.Fields(strings.Repeat("word ", 1+r.IntN(3))))
			}
			want[key] = values
		}
		made := Make(want)
		read, err := parsed(made.bytes())
		if err != nil {
			t.Fatal(err)
		}
		for _, table := range []*Table{made, read} {
			if table.Len() != len(want) {
				t.Fatalf("%d keys, want %d", table.Len(), len(want))
			}
			for i := range 41 {
				key := fmt.Sprintf("%x", i)
				if got := table.Lookup(key, math.MaxInt); !reflect.DeepEqual(got, want[key]) {
					t.Fatalf("%s: %q, want %q", key, got, want[key])
				}
				if got := table.Lookup(key, 1); len(got) != min(1, len(want[key])) {
					t.Fatalf("%s: %d values, want one at most", key, len(got))
				}
			}
		}
	}
}

// parsed parses and checks a table.
func parsed(b []byte) (*Table, error) {
	t, err := parse(b)
	if err == nil {
		err = t.check()
	}
	return t, err
}

// FuzzTable parses arbitrary bytes: they are rejected, or lookups work.
func FuzzTable(f *testing.F) {
	table := Make(small)
	f.Add(table.bytes())
	f.Add([]byte{0, 0, 0, 0})
	f.Fuzz(func(t *testing.T, b []byte) {
		table, err := parse(bytes.Clone(b))
		if err != nil {
			return
		}
		table.Lookup("red", 1)
		if table == nil || table.check() != nil {
			return
		}
		for i := range table.Len() {
			d := decoder{b: table.entry(i)}
			key := string(d.string())
			if values := table.Lookup(key, math.MaxInt); !reflect.DeepEqual(values, d.values(math.MaxInt)) {
				t.Errorf("entry %d is not found by its key", i)
			}
		}
		table.Lookup("missing", math.MaxInt)
	})
}

// TestDamagedTables checks that truncated tables and extra bytes are rejected.
func TestDamagedTables(t *testing.T) {
	table := Make(small)
	good := table.bytes()
	for n := 1; n < len(good); n++ {
		if _, err := parsed(good[:n]); err == nil {
			t.Errorf("the first %d of %d bytes are accepted as a table", n, len(good))
		}
	}
	if _, err := parsed(append(bytes.Clone(good), 0)); err == nil {
		t.Error("a byte after a table is accepted")
	}
}
