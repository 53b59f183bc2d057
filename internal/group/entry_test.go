package group

import (
	"bytes"
	"encoding/binary"
	"encoding/hex"
	"errors"
	"flag"
	"os"
	"path/filepath"
	"reflect"
	"strings"
	"testing"

	"github.com/zeebo/xxh3"

	"svc/internal/commit"
)

var rewrite = flag.Bool("rewrite", false, "write testdata anew")

// examples returns one message of each kind.
func examples() (*Entry, *Batch, *Image) {
	seg := File{"indexes/000003/000007.seg", 300, xxh3.Uint128{Hi: 1, Lo: 2}}
	e := &Entry{
		At:      1_700_000_000_123_456_789,
		Change:  commit.Change{Kind: commit.Manifest, Name: "indexes/000003/MANIFEST", Data: []byte("manifest"), Files: []string{seg.Name}},
		Files:   []File{seg},
		Removed: []string{"tasks/payloads/0a.ndjson"},
	}
	t := &Batch{Run: Position{2, 3, 40}, End: 50, Now: 1_700_000_001_000_000_000, Entries: [][]byte{e.Encode(), {1}}}
	s := &Image{
		Run: Position{2, 3, 40}, Whole: 41,
		Files:    []ImageFile{{File: seg, At: seg.Name, Known: true}, {File: File{Name: "auth.db", Size: 32768}, At: "group/state/ab/auth.db"}},
		Contents: []Content{{"indexes/CATALOG", []byte("catalog")}},
	}
	return e, t, s
}

// TestFormats compares encoded messages with testdata/formats, which must not change, and decodes them again.
func TestFormats(t *testing.T) {
	e, b, s := examples()
	got := "entry\n" + hex.Dump(e.Encode()) + "batch\n" + hex.Dump(b.Encode()) + "state\n" + hex.Dump(s.Encode())
	name := filepath.Join("testdata", "formats")
	if *rewrite {
		if err := os.MkdirAll("testdata", 0o700); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(name, []byte(got), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile(name)
	if err != nil {
		t.Fatal(err)
	}
	if got != string(want) {
		t.Errorf("the formats are\n%s\nwant\n%s", got, want)
	}
	if again, err := DecodeEntry(e.Encode()); err != nil || !reflect.DeepEqual(again, e) {
		t.Errorf("%+v, %v, want %+v", again, err, e)
	}
	if again, err := DecodeBatch(b.Encode()); err != nil || !reflect.DeepEqual(again, b) {
		t.Errorf("%+v, %v, want %+v", again, err, b)
	}
	if again, err := DecodeImage(s.Encode()); err != nil || !reflect.DeepEqual(again, s) {
		t.Errorf("%+v, %v, want %+v", again, err, s)
	}
}

// TestDamagedMessagesAreRefused changes each byte of a batch and of a state, and truncates them at each length.
func TestDamagedMessagesAreRefused(t *testing.T) {
	_, b, s := examples()
	for what, m := range map[string]struct {
		whole  []byte
		decode func([]byte) error
	}{
		"batch": {b.Encode(), func(b []byte) error { _, err := DecodeBatch(b); return err }},
		"state": {s.Encode(), func(b []byte) error { _, err := DecodeImage(b); return err }},
	} {
		if err := m.decode(m.whole); err != nil {
			t.Fatal(err)
		}
		for i := range m.whole {
			flipped := bytes.Clone(m.whole)
			flipped[i] ^= 1 << (i % 8)
			if m.decode(flipped) == nil {
				t.Errorf("%s: a change of byte %d is not detected", what, i)
			}
			if m.decode(m.whole[:i]) == nil {
				t.Errorf("%s: %d of %d bytes are accepted as a whole message", what, i, len(m.whole))
			}
		}
	}
}

// TestMessagesOfALaterVersion checks that the error says which side must be updated.
func TestMessagesOfALaterVersion(t *testing.T) {
	e, b, s := examples()
	for _, tt := range []struct {
		b       []byte
		version int // offset of the version
		decode  func([]byte) error
	}{
		{e.Encode(), 0, func(b []byte) error { _, err := DecodeEntry(b); return err }},
		{b.Encode(), len(batchMagic), func(b []byte) error { _, err := DecodeBatch(b); return err }},
		{s.Encode(), len(stateMagic), func(b []byte) error { _, err := DecodeImage(b); return err }},
	} {
		tt.b[tt.version]++
		err := tt.decode(tt.b)
		if newer := new(newerError); !errors.As(err, &newer) || !strings.Contains(err.Error(), "update this svc first") {
			t.Errorf("%v", err)
		}
	}
}

// TestStatesThatReachOutside checks that a state cannot name a file outside the data directory, or one file twice.
func TestStatesThatReachOutside(t *testing.T) {
	for _, names := range [][]string{{"../x"}, {"/x"}, {"."}, {""}, {"a/../x"}, {"a", "a"}, {"a", "a/b"}} {
		s := &Image{}
		for _, name := range names {
			s.Contents = append(s.Contents, Content{name, nil})
		}
		if _, err := DecodeImage(s.Encode()); !errors.Is(err, errImage) {
			t.Errorf("%q: %v", names, err)
		}
	}
	e := &Entry{Change: commit.Change{Kind: commit.Sealed, Name: "a.json"}, Removed: []string{"a.json"}}
	if _, err := DecodeEntry(e.Encode()); !errors.Is(err, errEntry) {
		t.Errorf("an entry removes a file that is no payload: %v", err)
	}
}

// FuzzDecode decodes bytes as each message. Encoding the result must give the same bytes.
func FuzzDecode(f *testing.F) {
	e, b, s := examples()
	f.Add(e.Encode())
	f.Add(b.Encode())
	f.Add(s.Encode())
	f.Add(encodePosition(Position{1, 2, 3}))
	f.Fuzz(func(t *testing.T, in []byte) {
		if e, err := DecodeEntry(in); err == nil && !bytes.Equal(e.Encode(), in) {
			t.Errorf("the entry %x is read as %x", in, e.Encode())
		}
		sealed := in
		if len(in) >= 8 { // as if its checksum were right
			sealed = binary.LittleEndian.AppendUint64(bytes.Clone(in[:len(in)-8]), xxh3.Hash(in[:len(in)-8]))
		}
		if b, err := DecodeBatch(sealed); err == nil && !bytes.Equal(b.Encode(), sealed) {
			t.Errorf("the batch %x is read as %x", sealed, b.Encode())
		}
		if s, err := DecodeImage(sealed); err == nil && !bytes.Equal(s.Encode(), sealed) {
			t.Errorf("the state %x is read as %x", sealed, s.Encode())
		}
		lastPosition(in)
	})
}

func TestPositions(t *testing.T) {
	p := Position{1, 20, 300}
	if again, err := ParsePosition(p.String()); err != nil || again != p {
		t.Errorf("%v, %v", again, err)
	}
	for _, text := range []string{"", "1", "1.2", "1.2.3.4", "1.2.x", "-1.2.3", "4294967296.1.1", "1.2.18446744073709551616"} {
		if p, err := ParsePosition(text); err == nil {
			t.Errorf("%q is %v", text, p)
		}
	}
	ascending := []Position{{}, {1, 1, 0}, {1, 1, 9}, {1, 2, 0}, {1, 10, 1}, {2, 0, 0}}
	for i := range ascending {
		for j := range ascending {
			if got := ascending[i].Compare(ascending[j]); got < 0 != (i < j) || got > 0 != (i > j) {
				t.Errorf("%v against %v is %d", ascending[i], ascending[j], got)
			}
		}
	}
}

// TestLastPosition reads files of positions whose last records are cut off or damaged.
func TestLastPosition(t *testing.T) {
	var b []byte
	for i := range uint64(3) {
		b = append(b, encodePosition(Position{1, 2, i})...)
	}
	for n := range len(b) + 1 {
		p, ok := lastPosition(b[:n])
		if whole := n / positionBytes; ok != (whole > 0) || ok && p.Index != uint64(whole-1) {
			t.Errorf("%d bytes are %v, %v", n, p, ok)
		}
	}
	for i := range b {
		flipped := bytes.Clone(b)
		flipped[i] ^= 1
		p, ok := lastPosition(flipped)
		if before := i / positionBytes; ok != (before > 0) || ok && p.Index != uint64(before-1) {
			t.Errorf("with byte %d changed: %v, %v", i, p, ok)
		}
	}
}
