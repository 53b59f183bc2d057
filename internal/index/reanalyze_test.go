package index

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"svc/internal/logs/logstest"
	"svc/internal/text"
	"svc/internal/vfs"
)

// before returns a function that makes an analyzer use an earlier version of a pipeline.
func before(t testing.TB, p text.Pipeline, version uint16) func(*text.Analyzer) *text.Analyzer {
	return func(a *text.Analyzer) *text.Analyzer {
		v, lost := text.VersionsOf([]text.Part{{Pipeline: uint16(p), Version: version}})
		if lost != nil {
			t.Errorf("there is no version %d of pipeline %d any more", version, p)
		}
		return a.At(v)
	}
}

// reanalyze rebuilds all stale words of an index, and returns the number of segments.
func (b *bed) reanalyze(ix *Index) (segments int) {
	b.t.Helper()
	for {
		left, err := ix.reanalyzeOne(context.Background(), func(stale) {}, func(int) {})
		if err != nil {
			b.t.Fatal(err)
		}
		if !left {
			return segments
		}
		segments++
	}
}

// stale returns the number of documents of an index with stale words.
func (b *bed) stale(ix *Index) int {
	v := held(ix.View())
	defer v.Release()
	return v.Stale().Documents
}

const inGerman = `{"localizedAttributes":[{"attributePatterns":["de"],"locales":["deu"]}]}`

// TestStaleWordsAreIndexedAgain checks that words from an older analysis are rebuilt without loss of other data, and that words of
// unchanged pipelines stay.
func TestStaleWordsAreIndexedAgain(t *testing.T) {
	b := newBed(t, vfs.NewMem(), Options{})
	defer func() { b.close() }()
	ix := b.create("m")
	b.apply(ix, update(t, inGerman), update(t, `{"filterableAttributes":["n"]}`))
	b.c.older = before(t, text.German, 1)
	b.apply(ix, b.payload(`{"id":1,"de":"Schifffahrtskalender","n":1}`, `{"id":2,"de":"epsilon","n":2}`, `{"id":3,"de":"Straße125"}`))
	b.apply(ix, b.payload(`{"id":4,"en":"epsilon"}`))
	b.c.older = nil
	b.apply(ix, b.payload(`{"id":5,"de":"Schifffahrtskalender"}`), DeleteDocuments{[]string{"3"}})
	if n := b.stale(ix); n != 2 {
		t.Errorf("words of %d documents are stale, want 2", n)
	}
	if n := b.reanalyze(ix); n != 1 || b.stale(ix) != 0 {
		t.Errorf("%d segments were reanalysed, words of %d documents are still stale", n, b.stale(ix))
	}
	b.checkFresh(ix)
	// Merging keeps stale words stale.
	b.c.older = before(t, text.German, 1)
	b.apply(ix, b.payload(`{"id":6,"de":"epsilon"}`))
	b.c.older = nil
	b.batch++
	if _, _, err := ix.Compact(t.Context(), b.batch, nil); err != nil {
		t.Fatal(err)
	}
	if n := b.stale(ix); n != 5 {
		t.Errorf("after a compaction words of %d documents are stale, want 5", n)
	}
	b.reanalyze(ix)
	b.checkFresh(ix)
}

// TestVectorsOutliveReanalysis checks that documents keep their vectors when their words are rebuilt.
func TestVectorsOutliveReanalysis(t *testing.T) {
	b := newBed(t, vfs.NewMem(), Options{})
	defer func() { b.close() }()
	ix := b.create("m")
	b.c.older = before(t, text.German, 1)
	b.apply(ix, update(t, inGerman), update(t, `{"embedders":{"m":{"source":"userProvided","dimensions":2}}}`),
		b.payload(`{"id":1,"de":"epsilon","_vectors":{"m":[1,2]}}`, `{"id":2,"de":"Straße125","_vectors":{"m":null}}`, `{"id":3,"_vectors":{"m":[[3,4],[5,6]]}}`))
	b.c.older = nil
	count := func() [2]int {
		v := held(ix.View())
		defer v.Release()
		vectors, documents := v.Embeddings()
		return [2]int{vectors, documents}
	}
	if n, want := count(), [2]int{3, 2}; n != want {
		t.Fatalf("%d vectors and documents with one, want %d", n, want)
	}
	if b.reanalyze(ix) == 0 {
		t.Error("no words were rebuilt")
	}
	if n, want := count(), [2]int{3, 2}; n != want {
		t.Errorf("%d vectors and documents with one after the rebuild, want %d", n, want)
	}
}

// TestUnrecordedWords checks that a segment without recorded versions is reanalysed if its words may come from another version. German
// words are possible only with a locale.
func TestUnrecordedWords(t *testing.T) {
	for _, test := range []struct {
		settings string
		stale    bool
	}{
		{`{}`, false},
		{`{"localizedAttributes":[{"attributePatterns":["*"],"locales":["eng"]}]}`, false},
		{`{"localizedAttributes":[{"attributePatterns":["t"],"locales":["eng","de"]}]}`, true},
		{`{"localizedAttributes":[{"attributePatterns":["t"],"locales":["deu"]}],"searchableAttributes":["u"]}`, false},
	} {
		b := newBed(t, vfs.NewMem(), Options{})
		ix := b.create("m")
		b.c.older = before(t, text.German, 1)
		b.c.unrecorded = true
		b.apply(ix, update(t, test.settings))
		b.apply(ix, b.payload(`{"id":1,"t":"epsilon","u":"one"}`))
		b.c.older, b.c.unrecorded = nil, false
		// Words of other pipelines may be stale as well.
		v := held(ix.View())
		german := false
		for _, part := range v.Stale().Parts {
			german = german || part.Pipeline == uint16(text.German)
		}
		v.Release()
		if german != test.stale {
			t.Errorf("%s: German words stale: %t, want %t", test.settings, german, test.stale)
		}
		b.reanalyze(ix)
		b.checkFresh(ix)
		b.close()
	}
}

// TestStaleWordsAreFoundAtTheStart checks that the catalog finds stale words when it opens, and logs its work.
func TestStaleWordsAreFoundAtTheStart(t *testing.T) {
	for _, closed := range []bool{false, true} { // whether the start leaves the index closed
		var log logstest.Buffer
		b := newBed(t, vfs.NewMem(), Options{Logger: slog.New(slog.NewTextHandler(&log, nil)), keptLoaded: 2})
		uids := []string{"m"}
		if closed {
			uids = []string{"a", "b", "c", "d"}
		}
		for _, uid := range uids {
			ix := b.create(uid)
			b.c.older = before(t, text.German, 1)
			b.apply(ix, update(t, inGerman), b.payload(`{"id":1,"de":"Schifffahrtskalender"}`))
		}
		b.reopen()
		b.c.compactor.start()
		for _, uid := range uids {
			ix := b.c.Get(uid)
			for deadline := time.Now().Add(time.Minute); ; time.Sleep(time.Millisecond) {
				if strings.Count(log.String(), "all words are indexed by this version") == len(uids) {
					break
				}
				if time.Now().After(deadline) {
					t.Fatalf("closed %t: the words of %s are still stale: %s", closed, uid, log.String())
				}
			}
			if b.stale(ix) != 0 {
				t.Errorf("the words of %s are still stale", uid)
			}
			b.checkFresh(ix)
		}
		b.close()
	}
}

// TestBatchesBesideReanalysis checks that documents changed or deleted while the words of their segment are rebuilt stay
// changed or deleted.
func TestBatchesBesideReanalysis(t *testing.T) {
	b := newBed(t, vfs.NewMem(), Options{})
	defer func() { b.close() }()
	ix := b.create("m")
	b.c.older = before(t, text.German, 1)
	b.apply(ix, update(t, inGerman))
	for i := range 5 {
		b.apply(ix, b.payload(fmt.Sprintf(`{"id":%d,"de":"epsilon"}`, i), fmt.Sprintf(`{"id":%d,"de":"Straße125"}`, i+10)))
	}
	b.c.older = nil
	b.compact(ix)
	changed := 0
	for left := true; left; {
		var err error
		left, err = ix.reanalyzeOne(t.Context(), func(stale) {}, func(n int) {
			if n > 0 && changed < 2 {
				changed++
				b.apply(ix, b.payload(fmt.Sprintf(`{"id":%d,"de":"neu"}`, changed)), DeleteDocuments{[]string{fmt.Sprint(changed + 11)}})
			}
		})
		if err != nil {
			t.Fatal(err)
		}
	}
	if changed == 0 {
		t.Error("no document was changed during the rebuild")
	}
	v := held(ix.View())
	if n := v.Documents(); n != 10-changed {
		t.Errorf("%d documents, want %d", n, 10-changed)
	}
	v.Release()
	b.checkFresh(ix)
}

// TestReanalysisStopsForSettings checks that a change of settings, which needs all segments, does not wait for the end of a reanalysis.
func TestReanalysisStopsForSettings(t *testing.T) {
	b := newBed(t, vfs.NewMem(), Options{})
	defer func() { b.close() }()
	ix := b.create("m")
	b.c.older = before(t, text.German, 1)
	b.apply(ix, update(t, inGerman), b.payload(`{"id":1,"de":"epsilon"}`, `{"id":2,"de":"Straße125"}`))
	b.c.older = nil
	done := make(chan error, 1)
	begun := make(chan struct{})
	ctx := t.Context()
	_, err := ix.reanalyzeOne(ctx, func(stale) {}, func(int) {
		select {
		case <-begun:
		default:
			close(begun)
			b.batch++
			go func() {
				_, err := ix.Apply(ctx, b.batch, []Op{update(t, `{"stopWords":["und"]}`)}, nil)
				done <- err
			}()
			for closed := false; !closed; time.Sleep(time.Millisecond) {
				ix.merges.mu.Lock()
				closed = ix.merges.mu.closed > 0
				ix.merges.mu.Unlock()
			}
		}
	})
	if err == nil {
		t.Error("the reanalysis was not stopped")
	}
	if err := <-done; err != nil {
		t.Fatal(err)
	}
	if n := b.reanalyze(ix); n != 0 { // the change of settings rebuilt all words
		t.Errorf("%d segments were still stale", n)
	}
	b.checkFresh(ix)
}

// TestReanalysisGoesOnBesideFailures checks that an index whose reanalysis fails does not block the others, and is retried after a pause.
func TestReanalysisGoesOnBesideFailures(t *testing.T) {
	var log logstest.Buffer
	var full atomic.Pointer[string] // the directory in which nothing can be created; nil: none
	b := newBed(t, vfs.Hook(vfs.NewMem(), func(o vfs.Op) error {
		if dir := full.Load(); dir != nil && o.Kind == vfs.OpCreate && strings.HasPrefix(o.Name, *dir+"/") {
			return errors.New("no room")
		}
		return nil
	}), Options{Logger: slog.New(slog.NewTextHandler(&log, nil))})
	defer func() { b.close() }()
	for _, uid := range []string{"a", "b"} {
		ix := b.create(uid)
		b.c.older = before(t, text.German, 1)
		b.apply(ix, update(t, inGerman), b.payload(`{"id":1,"de":"Schifffahrtskalender"}`))
	}
	b.reopen()
	full.Store(&b.c.Get("a").dir)
	b.c.compactor.start()
	wait := func(what string, is func() bool) {
		t.Helper()
		for deadline := time.Now().Add(time.Minute); !is(); time.Sleep(time.Millisecond) {
			if time.Now().After(deadline) {
				t.Fatalf("%s: %s", what, log.String())
			}
		}
	}
	wait("the words of b are still stale", func() bool { return b.stale(b.c.Get("b")) == 0 })
	wait("nothing failed", func() bool { return strings.Contains(log.String(), "no room") })
	if n := b.stale(b.c.Get("a")); n != 1 {
		t.Errorf("words of %d documents of a are stale, want 1", n)
	}
	full.Store(nil)
	wait("the words of a are still stale", func() bool { return b.stale(b.c.Get("a")) == 0 })
	b.checkFresh(b.c.Get("a"))
}
