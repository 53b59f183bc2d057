package index

import (
	"bytes"
	"fmt"
	"os"
	"path"
	"slices"
	"strings"
	"testing"

	"svc/internal/vfs"
	"svc/segment/synonym"
)

func synonymsOf(b *bed, ix *Index, word string) string {
	v := held(ix.View())
	defer v.Release()
	return fmt.Sprint(v.Synonyms().Lookup(word, 100))
}

// TestLargeSettingsHaveAFile checks that large settings have a file, which is written only when they change, and that small
// settings have none.
func TestLargeSettingsHaveAFile(t *testing.T) {
	b := newBed(t, vfs.NewMem(), Options{inlineSettings: inlineSettingsBytes})
	defer func() { b.close() }()
	ix := b.create("m")
	b.apply(ix, update(t, `{"stopWords":["and"]}`), b.payload(`{"id":1,"t":"one"}`))
	if files := b.filesOf(ix, setSuffix); len(files) > 0 {
		t.Errorf("small settings have the files %v", files)
	}
	large := `{"synonyms":{` + strings.Repeat(`"x":["y"],`, 1000) + `"one":["two"]`
	for i := range 400 {
		large += fmt.Sprintf(`,"synonym%d":["another %d"]`, i, i)
	}
	b.apply(ix, update(t, large+`}}`))
	files := b.filesOf(ix, setSuffix)
	if len(files) != 1 {
		t.Fatalf("large settings have the files %v, want one", files)
	}
	m, err := vfs.ReadFile(b.fs, path.Join(ix.dir, manifestName))
	if err != nil || len(m) > inlineSettingsBytes {
		t.Errorf("the manifest has %d bytes (%v)", len(m), err)
	}
	b.apply(ix, b.payload(`{"id":2,"t":"two"}`))
	b.compact(ix)
	if now := b.filesOf(ix, setSuffix); !slices.Equal(now, files) {
		t.Errorf("files of settings %v became %v without a change", files, now)
	}
	b.reopen()
	ix = b.c.Get("m")
	if got := synonymsOf(b, ix, "synonym7"); got != "[[another 7]]" {
		t.Errorf("after a start: %s", got)
	}
	b.checkFresh(ix)
	b.apply(ix, update(t, `{"synonyms":{"one":["three"]}}`))
	if files := b.filesOf(ix, setSuffix); len(files) > 0 {
		t.Errorf("small settings have the files %v", files)
	}
	if got := synonymsOf(b, ix, "one"); got != "[[three]]" {
		t.Errorf("after another change: %s", got)
	}
}

// writeAgain closes an index, replaces the file of its settings, and opens it again.
func (b *bed) writeAgain(ix *Index, change func(c *synonym.Content)) *Index {
	b.t.Helper()
	v := held(ix.View())
	uid, name, like := v.UID, v.kept.Name(), v.likeness
	c := synonym.Content{Stamp: like.stamp(), Settings: like.settings.WithSynonyms("").Encode(), Synonyms: []byte(like.settings.Synonyms), Table: like.table()}
	v.Release()
	b.close()
	change(&c)
	if err := vfs.WriteFile(b.fs, name, c.Encode()); err != nil {
		b.t.Fatal(err)
	}
	b.open()
	ix = b.c.Get(uid)
	if ix == nil {
		b.t.Fatal(b.c.Missing(uid))
	}
	return ix
}

// TestSynonymsOfAnotherAnalysis checks that a synonym table from another version of the analysis is not used, and that the next
// commit replaces it.
func TestSynonymsOfAnotherAnalysis(t *testing.T) {
	b := newBed(t, vfs.NewMem(), Options{})
	defer func() { b.close() }()
	ix := b.create("m")
	b.apply(ix, update(t, `{"synonyms":{"one":["two"]}}`))
	other := synonym.Make(map[string][][]string{"one": {{"other"}}})
	ix = b.writeAgain(ix, func(c *synonym.Content) { c.Table = other })
	if got := synonymsOf(b, ix, "one"); got != "[[other]]" {
		t.Errorf("the table of the file is not used: %s", got)
	}
	ix = b.writeAgain(ix, func(c *synonym.Content) { c.Table, c.Stamp = other, 1 })
	if got := synonymsOf(b, ix, "one"); got != "[[two]]" {
		t.Errorf("the table of another version is used: %s", got)
	}
	before := b.filesOf(ix, setSuffix)
	b.apply(ix, b.payload(`{"id":1,"t":"one"}`))
	after := b.filesOf(ix, setSuffix)
	if len(after) != 1 || after[0] == before[0] {
		t.Errorf("files of settings %v became %v, want a new file", before, after)
	}
	b.reopen()
	ix = b.c.Get("m")
	v := held(ix.View())
	defer v.Release()
	if v.kept.spoiled.Load() {
		t.Error("the new file also has another version")
	}
	b.checkFresh(ix)
}

// TestLargeSettingsLeaveTheManifest checks that large settings in the manifest of an earlier svc move to a file with the next commit.
func TestLargeSettingsLeaveTheManifest(t *testing.T) {
	b := newBed(t, vfs.NewMem(), Options{inlineSettings: 1 << 20})
	defer func() { b.close() }()
	ix := b.create("m")
	b.apply(ix, update(t, `{"synonyms":{"one":["two"]},"stopWords":["the"]}`))
	if files := b.filesOf(ix, setSuffix); len(files) > 0 {
		t.Fatalf("the settings have the files %v", files)
	}
	b.options.inlineSettings = 1
	b.reopen()
	ix = b.c.Get("m")
	for range 2 {
		if got := synonymsOf(b, ix, "one"); got != "[[two]]" || !slices.Equal(ix.Outline().Settings.StopWords, []string{"the"}) {
			t.Errorf("settings %+v, synonyms of one %s", ix.Outline().Settings, got)
		}
		b.apply(ix, b.payload(`{"id":1,"t":"one"}`))
		if files := b.filesOf(ix, setSuffix); len(files) != 1 {
			t.Errorf("the settings have the files %v, want one", files)
		}
		b.reopen()
		ix = b.c.Get("m")
	}
	b.checkFresh(ix)
}

// TestDamagedFilesOfSettings checks that damage of the file loses the settings, and that damage of the synonym table alone loses nothing.
func TestDamagedFilesOfSettings(t *testing.T) {
	for _, test := range []struct {
		name   string
		damage func(file []byte) []byte
		aside  bool
		mended bool // whether a salvage repairs the index
	}{
		{"missing", func([]byte) []byte { return nil }, true, false},
		{"empty", func([]byte) []byte { return []byte{} }, true, false},
		{"cut off", func(b []byte) []byte { return b[:len(b)-1] }, true, false},
		{"another version", func(b []byte) []byte { b[8]++; return b }, true, false},
		{"the settings", func(b []byte) []byte { b[85] ^= 1; return b }, true, true},
		{"much of the settings", func(b []byte) []byte { clear(b[85:99]); return b }, true, false},
		{"the table", func(b []byte) []byte { b[len(b)-1] ^= 1; return b }, false, false},
	} {
		b := newBed(t, vfs.NewMem(), Options{})
		ix := b.create("m")
		b.apply(ix, b.payload(`{"id":1,"t":"one"}`), update(t, `{"synonyms":{"one":["two"]}}`))
		name := path.Join(ix.dir, b.filesOf(ix, setSuffix)[0])
		b.close()
		good, err := vfs.ReadFile(b.fs, name)
		if err != nil {
			t.Fatal(err)
		}
		if bad := test.damage(bytes.Clone(good)); bad == nil {
			err = b.fs.Remove(name)
		} else {
			err = vfs.WriteFile(b.fs, name, bad)
		}
		if err != nil {
			t.Fatal(err)
		}
		salvaged, err := Salvage(b.fs, path.Dir(name), "m")
		if err != nil {
			t.Fatalf("%s: %v", test.name, err)
		}
		if lost := len(salvaged.Lost) > 0; lost != (test.aside && !test.mended) || test.mended != (len(salvaged.Mended) > 0) || !lost && salvaged.View.Settings.Synonyms == "" || salvaged.View.Documents() != 0 && len(salvaged.Segments) != 1 {
			t.Errorf("%s: lost %v, settings %+v", test.name, salvaged.Lost, salvaged.View.Settings)
		}
		if err := salvaged.Close(); err != nil {
			t.Error(err)
		}
		b.open()
		if b.c.Damaged("m") != test.aside {
			t.Errorf("%s: quarantined: %v, want %v", test.name, !test.aside, test.aside)
		}
		if test.aside {
			if err := vfs.WriteFile(b.fs, name, good); err != nil {
				t.Fatal(err)
			}
			b.c.Reopen("m")
		}
		ix = b.c.Get("m")
		if got := synonymsOf(b, ix, "one"); got != "[[two]]" {
			t.Errorf("%s: synonyms %s", test.name, got)
		}
		b.apply(ix, b.payload(`{"id":2,"t":"two"}`))
		b.reopen()
		ix = b.c.Get("m")
		v := held(ix.View())
		if v.kept.spoiled.Load() || v.kept.Check() != nil {
			t.Errorf("%s: the next commit left the file damaged: %v", test.name, v.kept.Check())
		}
		v.Release()
		b.checkFresh(ix)
		b.close()
	}
}

// TestSettingsDamagedWhileOpen damages the file of open settings. An inspection must find the damage and rewrite the file from memory;
// copies must get a sound file.
func TestSettingsDamagedWhileOpen(t *testing.T) {
	for _, inspected := range []bool{true, false} {
		t.Chdir(t.TempDir())
		b := newBed(t, vfs.OS, Options{})
		ix := b.create("a")
		b.apply(ix, b.payload(`{"id":1,"t":"one"}`), update(t, `{"synonyms":{"one":["two"]}}`))
		before := b.filesOf(ix, setSuffix)
		old := held(ix.View())
		damaged := old.kept
		f, err := os.OpenFile(damaged.Name(), os.O_RDWR, 0)
		if err != nil {
			t.Fatal(err)
		}
		if _, err := f.WriteAt([]byte("not what it was"), 90); err != nil {
			t.Fatal(err)
		}
		if err := f.Close(); err != nil {
			t.Fatal(err)
		}
		if inspected {
			b.c.inspect(t.Context(), 0)
			now := held(ix.View())
			if now.kept == damaged || now.kept.Check() != nil {
				t.Errorf("the file is still damaged: %v", now.kept.Check())
			}
			now.Release()
		} else {
			frozen, err := b.c.Freeze()
			if err != nil {
				t.Fatal(err)
			}
			copied := b.copied(frozen)
			if got := synonymsOf(copied, copied.c.Get("a"), "one"); got != "[[two]]" {
				t.Errorf("a copy of damaged settings has the synonyms %s", got)
			}
			copied.close()
			frozen.Release()
			b.apply(ix, b.payload(`{"id":2,"t":"two"}`))
		}
		old.Release()
		if after := b.filesOf(ix, setSuffix); len(after) != 1 || after[0] == before[0] {
			t.Errorf("files of settings %v became %v, want a new file", before, after)
		}
		b.reopen()
		if got := synonymsOf(b, b.c.Get("a"), "one"); got != "[[two]]" {
			t.Errorf("after a start: synonyms %s", got)
		}
		b.close()
	}
}

// TestCopiesHaveSettings checks that a copy has the file of settings from the time when it was frozen, whatever changes later.
func TestCopiesHaveSettings(t *testing.T) {
	b := newBed(t, vfs.NewMem(), Options{})
	defer func() { b.close() }()
	ix := b.create("a")
	b.apply(ix, b.payload(`{"id":1,"t":"one"}`), update(t, `{"synonyms":{"one":["two"]}}`))
	b.reopen()
	ix = b.c.Get("a")
	for _, evicted := range []bool{false, true} {
		if held(ix.View()).Release(); evicted && !ix.evict() {
			t.Fatal("the index stays open")
		}
		frozen, err := b.c.Freeze()
		if err != nil {
			t.Fatal(err)
		}
		if !evicted {
			b.apply(ix, update(t, `{"synonyms":{"one":["three"]}}`))
		}
		copied := b.copied(frozen)
		frozen.Release()
		want := map[bool]string{false: "[[two]]", true: "[[three]]"}[evicted]
		if got := synonymsOf(copied, copied.c.Get("a"), "one"); got != want || len(copied.filesOf(copied.c.Get("a"), setSuffix)) != 1 {
			t.Errorf("evicted %v: the copy has the synonyms %s, want %s", evicted, got, want)
		}
		copied.apply(copied.c.Get("a"), copied.payload(`{"id":2,"t":"two"}`))
		copied.close()
		if files := b.filesOf(ix, setSuffix); len(files) != 1 {
			t.Errorf("evicted %v: files of settings %v, want one", evicted, files)
		}
	}
}

// TestViewsKeepTheirSynonyms checks that a view keeps its synonyms while later views have others, also on a file system that cannot
// remove open files.
func TestViewsKeepTheirSynonyms(t *testing.T) {
	b := newBed(t, vfs.NewMem(), Options{})
	defer func() { b.close() }()
	ix := b.create("m")
	b.apply(ix, update(t, `{"synonyms":{"one":["first"]}}`))
	old := held(ix.View())
	file := old.kept.Name()
	trial, err := ix.Try(old, update(t, `{"rankingRules":["words"]}`).Update)
	if err != nil {
		t.Fatal(err)
	}
	if trial.kept != old.kept {
		t.Error("trying other rules builds a new synonym table")
	}
	other, err := ix.Try(old, update(t, `{"synonyms":{"one":["tried"]}}`).Update)
	if err != nil {
		t.Fatal(err)
	}
	if got := fmt.Sprint(other.Synonyms().Lookup("one", 9)); got != "[[tried]]" {
		t.Errorf("trying other synonyms returns %s", got)
	}
	other.Release()
	b.apply(ix, update(t, `{"synonyms":{"one":["second"]}}`))
	for _, v := range []*View{old, trial.View} {
		if got := fmt.Sprint(v.Synonyms().Lookup("one", 9)); got != "[[first]]" {
			t.Errorf("a view has %s after the synonyms changed", got)
		}
	}
	old.Release()
	if _, err := b.fs.Stat(file); err != nil {
		t.Errorf("the file is removed while a trial uses it: %v", err)
	}
	trial.Release()
	if _, err := b.fs.Stat(file); err == nil {
		t.Error("the file stays after its last view")
	}
	if got := synonymsOf(b, ix, "one"); got != "[[second]]" {
		t.Errorf("the index has %s", got)
	}
	b.batch++
	if err := b.c.Swap([]Pair{{A: "m", B: "n", Rename: true}}, b.batch); err != nil {
		t.Fatal(err)
	}
	if got := synonymsOf(b, b.c.Get("n"), "one"); got != "[[second]]" {
		t.Errorf("after its index was renamed it has %s", got)
	}
	b.checkFresh(b.c.Get("n"))
}
