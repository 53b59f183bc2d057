package segment

import (
	"context"
	"strings"
	"testing"

	"github.com/RoaringBitmap/roaring/v2"

	"svc/internal/vfs"
)

// TestInvariantsAreChecked breaks each invariant once.
func TestInvariantsAreChecked(t *testing.T) {
	fs := vfs.NewMem()
	b := NewBuilder(BuilderOptions{})
	b.StartDoc(7, []byte("a"), []byte("{}"))
	b.EndDoc()
	if _, err := b.Write(context.Background(), fs, "1.seg"); err != nil {
		t.Fatal(err)
	}
	r, err := Open(fs, "1.seg")
	if err != nil {
		t.Fatal(err)
	}
	defer r.Close()
	r.checkOpen()
	rows := func(id FieldID, rows ...uint32) fieldRows { return fieldRows{id: id, rows: rows} }
	next := NewBuilder(BuilderOptions{})
	next.StartDoc(7, []byte("a"), []byte("{}"))
	next.EndDoc()
	next.checkNext(8)
	checkWord([]byte("a"), []byte("b"), []fieldRows{rows(1, 0, 3), rows(2, 0)})
	Live{r, roaring.BitmapOf(0)}.checkDeleted()
	for want, breach := range map[string]func(){
		"document 7 is added behind document 7":                func() { next.checkNext(7) },
		`word "a" is written behind "b"`:                       func() { checkWord([]byte("b"), []byte("a"), nil) },
		`field 1 is written behind field 2`:                    func() { checkWord(nil, []byte("a"), []fieldRows{rows(2, 0), rows(1, 0)}) },
		`row 3 of field 2 is written behind row 3`:             func() { checkWord(nil, []byte("a"), []fieldRows{rows(2, 3, 3)}) },
		"segment 1.seg has 1 rows, and row 1 of it is deleted": func() { Live{r, roaring.BitmapOf(1)}.checkDeleted() },
		"segment 1.seg is read after it was closed": func() {
			r.closed.Store(true)
			defer r.closed.Store(false)
			r.checkOpen()
		},
	} {
		func() {
			defer func() {
				if got, _ := recover().(string); !strings.Contains(got, want) {
					t.Errorf("%q, want %q", got, want)
				}
			}()
			breach()
		}()
	}
}
