package main

import (
	"bytes"
	"context"
	"encoding/binary"
	"math"
	"os"
	"path/filepath"
	"slices"
	"testing"

	"github.com/RoaringBitmap/roaring/v2"

	"svc/simd"
)

func TestFloat16(t *testing.T) {
	for h, want := range map[uint16]float32{
		0x3c00: 1, 0xc000: -2, 0x3555: 0.33325195, 0x7bff: 65504, 0x0001: 1.0 / (1 << 24), 0x8400: -1.0 / (1 << 14),
		0x7c00: float32(math.Inf(1)), 0xfc00: float32(math.Inf(-1)), 0: 0,
	} {
		if got := float16(h); got != want {
			t.Errorf("%#x: got %v, want %v", h, got, want)
		}
	}
	if x := float16(0x7e00); x == x {
		t.Errorf("got %v, want no number", x)
	}
}

func TestNPYFiles(t *testing.T) {
	dir := t.TempDir()
	name := filepath.Join(dir, "a.npy")
	m := &matrix{2, 3, []float32{1, -2, 0.5, 4, 5, -6}}
	if err := m.writeNPY(name); err != nil {
		t.Fatal(err)
	}
	got, err := readNPY(name)
	if err != nil || got.rows != 2 || got.columns != 3 || !slices.Equal(got.data, m.data) {
		t.Fatalf("%+v, %v", got, err)
	}
	whole, _ := os.ReadFile(name)
	if at := bytes.IndexByte(whole, '\n') + 1; at%64 != 0 {
		t.Errorf("data begins at byte %d", at)
	}
	half := append(bytes.Replace(whole[:128], []byte("<f4"), []byte("<f2"), 1), make([]byte, 12)...)
	binary.LittleEndian.PutUint16(half[128:], 0xbc00)
	for change, b := range map[string][]byte{
		"cut":      whole[:len(whole)-1],
		"no magic": whole[1:],
		"header":   whole[:20],
		"integers": bytes.Replace(whole, []byte("<f4"), []byte("<i4"), 1),
		"empty":    bytes.Replace(whole, []byte("(2, 3)"), []byte("(0, 3)"), 1),
	} {
		os.WriteFile(name, b, 0o600)
		if _, err := readNPY(name); err == nil {
			t.Errorf("%s: no error", change)
		}
	}
	os.WriteFile(name, half, 0o600)
	if got, err := readNPY(name); err != nil || got.data[0] != -1 || got.data[1] != 0 {
		t.Errorf("float16: %+v, %v", got, err)
	}
}

func TestReadVectorSet(t *testing.T) {
	dir := t.TempDir()
	(&matrix{3, 2, []float32{3, 4, 0, 1, 1, 0}}).writeNPY(filepath.Join(dir, "base.npy"))
	if _, err := readVectorSet(dir); err == nil {
		t.Error("no queries, no error")
	}
	(&matrix{1, 2, []float32{0, 2}}).writeNPY(filepath.Join(dir, "queries.npy"))
	os.WriteFile(filepath.Join(dir, "other.npy"), nil, 0o600)
	s, err := readVectorSet(dir)
	if err != nil {
		t.Fatal(err)
	}
	if s.base.rows != 3 || s.queries.rows != 1 || math.Abs(float64(s.queries.data[1])-1) > 1e-6 || math.Abs(float64(s.base.data[1])-0.8) > 1e-6 {
		t.Errorf("%+v %+v", s.base, s.queries)
	}
	if got := s.truth(nil); !slices.Equal(got[0], []uint32{1, 0, 2}) {
		t.Errorf("nearest are %v", got)
	}
	if got := s.truth([]uint32{0, 2}); !slices.Equal(got[0], []uint32{0, 2}) {
		t.Errorf("nearest of two are %v", got)
	}
}

func TestVectorsAreMeasured(t *testing.T) {
	dir := t.TempDir()
	s := generateVectors(300, 10, 64)
	truth := s.truth(nil)
	name := filepath.Join(dir, "s.seg")
	if _, err := s.writeSegment(context.Background(), name, 1, 1); err != nil {
		t.Fatal(err)
	}
	f := &vectorFigures{set: s}
	if err := f.cold(name); err != nil {
		t.Fatal(err)
	}
	r, err := openSegment(name, false)
	if err != nil {
		t.Fatal(err)
	}
	defer r.Close()
	filters := s.filters()
	for _, filter := range filters {
		if filter.allowed.IsEmpty() {
			continue
		}
		x := f.restricted(r.Vectors(1), filter)
		if x.recall != 1 || x.filter != filter.name || x.candidates != int(filter.allowed.GetCardinality()) || x.each <= 0 || x.scan <= 0 {
			t.Errorf("%+v", x)
		}
	}
	if near, far := filters[len(filters)-8].allowed, filters[len(filters)-7].allowed; near.GetCardinality() != 150 || !roaring.Flip(near, 0, 300).Equals(far) {
		t.Errorf("%v and %v are not halves", near, far)
	}
	if len(truth) != 10 || len(truth[0]) != neighbours || f.firstCold <= 0 || f.firstRead <= 0 || f.firstHeld <= 0 {
		t.Errorf("%v, %v, %v, %v", truth, f.firstCold, f.firstRead, f.firstHeld)
	}
	if err := f.deletions(context.Background(), dir); err != nil {
		t.Fatal(err)
	}
	if len(f.deleted) != 2 || f.deleted[1].vectors != 3 || f.deleted[1].whole.seconds <= 0 || f.deleted[1].some.seconds <= 0 {
		t.Errorf("%+v", f.deleted)
	}
	all := make([]uint32, s.base.rows)
	for i := range all {
		all[i] = uint32(i)
	}
	for i, rows := range truth {
		if got := s.nearest(s.queries.row(i), all); !slices.Equal(got, rows) {
			t.Errorf("nearest of query %d: %v, by the other method %v", i, got, rows)
		}
	}
}

// TestSegmentsAreReused checks that a run uses the segments that an earlier run wrote to a kept directory.
func TestSegmentsAreReused(t *testing.T) {
	s := generateVectors(50, 1, 64)
	name := filepath.Join(t.TempDir(), "s.seg")
	w, err := s.keepSegment(context.Background(), name, 1)
	if err != nil || w.Bytes <= 0 || w.Wall <= 0 {
		t.Fatalf("%+v, %v", w, err)
	}
	before, err := os.Stat(name)
	if err != nil {
		t.Fatal(err)
	}
	again, err := s.keepSegment(context.Background(), name, 1)
	if err != nil || again != w {
		t.Errorf("%+v, want %+v (%v)", again, w, err)
	}
	if after, err := os.Stat(name); err != nil || !os.SameFile(before, after) || !after.ModTime().Equal(before.ModTime()) {
		t.Errorf("the segment was rewritten (%v)", err)
	}
}

func TestGeneratedVectors(t *testing.T) {
	few, many := generateVectors(1500, 3, 64), generateVectors(3000, 3, 64)
	if !slices.Equal(few.base.data, many.base.data[:len(few.base.data)]) || !slices.Equal(few.queries.data, many.queries.data) {
		t.Error("the first of many are not those of few")
	}
	for i := range few.base.rows {
		if n := simd.Dot(few.base.row(i), few.base.row(i)); math.Abs(float64(n)-1) > 1e-5 {
			t.Fatalf("row %d has the squared length %v", i, n)
		}
	}
	if slices.Equal(few.base.row(0), few.base.row(1024)) || slices.Equal(few.base.row(0), few.queries.row(0)) {
		t.Error("rows repeat")
	}
}

func TestQPSBetweenEfforts(t *testing.T) {
	l := &library{points: []*point{{10, 0.9, 1}, {20, 0.95, 2}, {40, 0.97, 4}}}
	for recall, want := range map[float64]float64{0.8: 100, 0.9: 100, 0.925: 75, 0.95: 50, 0.96: 37.5} {
		if got, ok := l.qpsAt(recall, 100); !ok || math.Abs(got-want) > 1e-6 {
			t.Errorf("at %v: %v, want %v", recall, got, want)
		}
	}
	if _, ok := l.qpsAt(0.98, 100); ok {
		t.Error("0.98 was not reached")
	}
	if got := l.cell(0.98, 100); got != "– (0.970 at best)" {
		t.Error(got)
	}
}
