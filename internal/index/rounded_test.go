package index

import (
	"archive/tar"
	"compress/gzip"
	"context"
	"errors"
	"io"
	"os"
	"path"
	"strings"
	"testing"

	"svc/internal/vfs"
)

// roundedBed opens an index of a server whose columns rounded integers: three segments, two of which have large integers and
// columns beside them.
func roundedBed(t *testing.T) (*bed, *Index) {
	t.Helper()
	f, err := os.Open("../../cmd/svc/testdata/format3integers.tar.gz")
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	z, err := gzip.NewReader(f)
	if err != nil {
		t.Fatal(err)
	}
	fs := vfs.NewMem()
	for r := tar.NewReader(z); ; {
		h, err := r.Next()
		if errors.Is(err, io.EOF) {
			break
		}
		if err != nil {
			t.Fatal(err)
		}
		name, ok := strings.CutPrefix(h.Name, "indexes/")
		if !ok || h.Typeflag != tar.TypeReg {
			continue
		}
		content, err := io.ReadAll(r)
		if err != nil {
			t.Fatal(err)
		}
		name = path.Join(catalogDir, name)
		if err := fs.MkdirAll(path.Dir(name)); err != nil {
			t.Fatal(err)
		}
		if err := vfs.WriteFile(fs, name, content); err != nil {
			t.Fatal(err)
		}
	}
	b := newBed(t, fs, Options{})
	b.batch = 1000
	return b, b.c.Get("n")
}

// roundedColumnsOf returns the number of columns of an index that are rounded.
func roundedColumnsOf(t *testing.T, ix *Index) (n int) {
	t.Helper()
	v := held(ix.View())
	defer v.Release()
	for _, l := range v.Segments {
		n += len(roundedColumns(l, v.Fields))
	}
	return n
}

// TestRoundedColumnsAreReadAgain repairs rounded columns in each way in which segments are rewritten.
func TestRoundedColumnsAreReadAgain(t *testing.T) {
	for name, by := range map[string]func(b *bed, ix *Index){
		"reanalysis": func(b *bed, ix *Index) {
			if n := b.compact(ix); n != 0 {
				t.Errorf("%d segments are rewritten after the compactor", n)
			}
			if n := b.reanalyze(ix); n != 3 {
				t.Errorf("%d segments are rewritten, want 3", n)
			}
		},
		"a merge": func(b *bed, ix *Index) {
			b.apply(ix, DeleteDocuments{[]string{"9007199254740997", "9007199254741034"}}, b.payload(`{"id":9007199254740996,"n":9007199254740997}`))
			v := held(ix.View())
			defer v.Release()
			if ok, err := ix.mergeSegments(context.Background(), v, []int{0, 1, 2, 3}, unthrottled); !ok || err != nil {
				t.Fatal(ok, err)
			}
		},
		"Compact": func(b *bed, ix *Index) {
			if _, _, err := ix.Compact(context.Background(), 0, nil); err != nil {
				t.Fatal(err)
			}
		},
		"settings": func(b *bed, ix *Index) {
			b.apply(ix, update(t, `{"prefixSearch":"disabled"}`))
			b.apply(ix, update(t, `{"prefixSearch":"indexingTime","filterableAttributes":["id","n","late","o","t"]}`))
		},
		"settings that drop columns": func(b *bed, ix *Index) {
			b.apply(ix, update(t, `{"filterableAttributes":[],"sortableAttributes":[]}`))
		},
	} {
		t.Run(name, func(t *testing.T) {
			b, ix := roundedBed(t)
			defer func() { b.close() }()
			if n := roundedColumnsOf(t, ix); n != 6 {
				t.Fatalf("%d columns are rounded, want 6", n)
			}
			by(b, ix)
			if n := roundedColumnsOf(t, ix); n != 0 {
				t.Errorf("%d columns are rounded", n)
			}
			b.checkFresh(ix)
			if n := b.compact(ix); n != 0 {
				t.Errorf("%d segments are rewritten needlessly", n)
			}
			b.reopen()
			b.checkFresh(b.c.Get("n"))
			plain := b.c.Get("plain")
			if n := b.compact(plain); n != 0 {
				t.Errorf("%d segments without large integers are rewritten", n)
			}
			b.checkFresh(plain)
		})
	}
}

// TestReadingColumnsAgainCanBeStopped stops the repair of rounded columns, which must leave the index unchanged.
func TestReadingColumnsAgainCanBeStopped(t *testing.T) {
	b, ix := roundedBed(t)
	defer func() { b.close() }()
	asked := 0
	stop := errors.New("stop")
	v := held(ix.View())
	_, err := ix.mergeSegments(context.Background(), v, []int{0, 1, 2}, func(context.Context, int) error {
		asked++
		return stop
	})
	v.Release()
	if !errors.Is(err, stop) || asked != 1 {
		t.Errorf("%v after %d calls of the throttle", err, asked)
	}
	if n := roundedColumnsOf(t, ix); n != 6 {
		t.Errorf("%d columns are rounded, want 6", n)
	}
	b.reanalyze(ix)
	if n := roundedColumnsOf(t, ix); n != 0 {
		t.Errorf("%d columns are rounded", n)
	}
	b.checkFresh(ix)
}
