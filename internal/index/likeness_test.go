package index

import (
	"crypto/sha256"
	"errors"
	"fmt"
	"testing"

	"svc/internal/vfs"
)

// TestAlikeIndexesShareSettings opens indexes with several goroutines. Most of the indexes are alike, and must share what is derived from
// their settings.
func TestAlikeIndexesShareSettings(t *testing.T) {
	b := newBed(t, vfs.NewMem(), Options{})
	const indexes = 3 * openedAtOnce
	name := func(i int) string { return fmt.Sprintf("i%02d", i) }
	for i := range indexes {
		ix := b.create(name(i))
		if i%8 == 5 {
			b.apply(ix, update(t, `{"stopWords":["the"]}`))
		}
		if i%8 == 6 {
			b.apply(ix, b.payload(`{"id":1,"title":"the one"}`))
		}
	}
	b.close()
	broken := catalogDir + "/000003/MANIFEST"
	if err := vfs.WriteFile(b.fs, broken, []byte("no manifest")); err != nil {
		t.Fatal(err)
	}
	b.open()
	defer b.close()
	plain := b.c.Get(name(0)).current.Load()
	for i := range indexes {
		ix := b.c.Get(name(i))
		if i == 3 {
			if ix != nil || !b.c.Damaged(name(i)) {
				t.Errorf("%s is open although its manifest is invalid", name(i))
			}
			continue
		}
		v := ix.current.Load()
		if v.UID != name(i) {
			t.Errorf("%s is %s", name(i), v.UID)
		}
		stops, documents := 0, 0
		switch i % 8 {
		case 5:
			stops = 1
		case 6:
			documents = 1
		}
		if len(v.Settings.StopWords) != stops || v.Documents() != documents {
			t.Errorf("%s has stop words %v and %d documents", name(i), v.Settings.StopWords, v.Documents())
		}
		if same := v.Settings == plain.Settings && v.Analyzer == plain.Analyzer; same != (stops == 0) {
			t.Errorf("%s shares the settings of an index without stop words: %v", name(i), same)
		}
		if same := v.Fields == plain.Fields; same != (stops == 0 && documents == 0) {
			t.Errorf("%s shares the fields of an empty index: %v", name(i), same)
		}
	}
	// A change of one index does not change the others.
	b.apply(b.c.Get(name(0)), update(t, `{"stopWords":["a"]}`))
	if got := b.c.Get(name(1)).current.Load().Settings.StopWords; len(got) > 0 {
		t.Errorf("stop words %v came from another index", got)
	}
	if got := b.c.Get(name(0)).current.Load().Settings.StopWords; len(got) != 1 || got[0] != "a" {
		t.Errorf("stop words %v", got)
	}
}

func TestSharedValues(t *testing.T) {
	var s shared[string]
	made := 0
	get := func(content string, err error) *string {
		v, got := s.of(sha256.Sum256([]byte(content)), func() (*string, error) {
			made++
			value := "made of " + content
			return &value, err
		})
		if !errors.Is(got, err) {
			t.Fatal(got)
		}
		return v
	}
	a := get("a", nil)
	if b := get("a", nil); a != b || made != 1 {
		t.Errorf("made %d times", made)
	}
	if b := get("b", nil); *b != "made of b" || made != 2 {
		t.Errorf("%s, made %d times", *b, made)
	}
	failed := errors.New("failed")
	get("c", failed)
	if c := get("c", nil); *c != "made of c" || made != 4 {
		t.Errorf("%s, made %d times: an error is kept", *c, made)
	}
	s.forget(sha256.Sum256([]byte("a"))) // still in use
	if b := get("a", nil); a != b {
		t.Error("a value in use was forgotten")
	}
}
