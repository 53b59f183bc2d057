package client

import (
	"bytes"
	"math/rand/v2"
	"strings"
	"testing"

	"svc/internal/document"
)

// converted returns the documents that a server makes of CSV.
func converted(text string, delimiter byte) (documents string, n int, err error) {
	var b bytes.Buffer
	n, err = document.Convert(&b, strings.NewReader(text), document.CSV, delimiter)
	return b.String(), n, err
}

// TestRecordsAreThoseOfTheServer cuts random CSV into records, with quotes in all places. A server must make the same documents of the
// records, each sent alone behind the header, as of the whole text.
func TestRecordsAreThoseOfTheServer(t *testing.T) {
	rng := rand.New(rand.NewPCG(1, 2))
	many, inside := 0, 0 // texts with several records, and with a quote inside of a cell
	for range 20_000 {
		delimiter := ",;"[rng.IntN(2)]
		text := []byte("a" + string(delimiter) + "b\n")
		for range rng.IntN(30) {
			text = append(text, []byte{'"', '"', delimiter, '\n', '\n', '\r', 'x', ' '}[rng.IntN(8)])
		}
		want, n, err := converted(string(text), delimiter)
		if err != nil {
			continue
		}
		d, err := Open(bytes.NewReader(text), CSV, string(delimiter))
		if err != nil {
			t.Fatalf("%q: %v", text, err)
		}
		records, err := read(d)
		if err != nil || len(records) != n {
			t.Fatalf("%q: %d records %q, want %d: %v", text, len(records), records, n, err)
		}
		got := ""
		for _, record := range records {
			one, n, err := converted(string(d.head)+record, delimiter)
			if err != nil || n != 1 {
				t.Fatalf("%q: the record %q has %d documents: %v", text, record, n, err)
			}
			got += one
		}
		if got != want {
			t.Fatalf("%q: documents %s, want %s", text, got, want)
		}
		if n > 1 {
			many++
		}
		if bytes.Contains(text, []byte(`x"`)) {
			inside++
		}
	}
	if many < 100 || inside < 100 {
		t.Errorf("%d texts had several records, and %d a quote inside of a cell", many, inside)
	}
}

// TestALongRecord reads a cell of two million lines. If each line were to look at the lines before it, this test would not end.
func TestALongRecord(t *testing.T) {
	const lines = 2 << 20
	d, err := Open(strings.NewReader("a\n\""+strings.Repeat("\n", lines)+"\"\nx\n"), CSV, "")
	if err != nil {
		t.Fatal(err)
	}
	if got, err := read(d); err != nil || len(got) != 2 || len(got[0]) != lines+3 {
		t.Errorf("%d records: %v", len(got), err)
	}
}
