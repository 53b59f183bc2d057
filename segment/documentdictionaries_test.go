package segment

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"svc/internal/vfs"
)

// documentsOf returns documents with words of a vocabulary of their own.
func documentsOf(r *rand.Rand, vocabulary string, n int) []string {
	docs := make([]string, n)
	for i := range docs {
		var words []string
		for range 60 {
			words = append(words, fmt.Sprint(vocabulary, r.IntN(400)))
		}
		docs[i] = fmt.Sprintf(`{"text":%q}`, strings.Join(words, " "))
	}
	return docs
}

// TestSharedDictionaries checks that the first builders make dictionaries of their own, and that later ones reuse the best unless their
// documents are of another kind. Documents must be readable before and after a merge, which copies those of a shared dictionary.
func TestSharedDictionaries(t *testing.T) {
	const seed = 3
	t.Logf("seed %d", seed)
	r := rand.New(rand.NewPCG(seed, 0))
	fsys := vfs.NewMem()
	shared := NewDocumentDictionaries(nil)
	want := map[string]string{}
	var lives []Live
	var contents [][]byte // contents of each segment's dictionary
	build := func(name, vocabulary string, shared *DocumentDictionaries) {
		b := NewBuilder(BuilderOptions{Dictionaries: shared})
		for i, doc := range documentsOf(r, vocabulary, 300) {
			id := fmt.Sprint(name, i)
			b.StartDoc(DocID(300*len(lives)+i), []byte(id), []byte(doc))
			b.EndDoc()
			want[id] = doc
		}
		if _, err := b.Write(t.Context(), fsys, name); err != nil {
			t.Fatal(err)
		}
		s := openSegment(t, fsys, name)
		dicts, err := s.docs.dictionaries()
		if err != nil || len(dicts) != 1 {
			t.Fatalf("%d dictionaries: %v", len(dicts), err)
		}
		lives, contents = append(lives, Live{Reader: s}), append(contents, dicts[0].Bytes())
	}
	own := func(i int) bool {
		return !slices.ContainsFunc(contents[:i], func(b []byte) bool { return string(b) == string(contents[i]) })
	}
	for i := range maxDictionaries + 2 {
		build(fmt.Sprint("s", i), "alpha", shared)
		if own(i) != (i < maxDictionaries) {
			t.Errorf("segment %d has a dictionary of its own: %v", i, own(i))
		}
	}
	build("other", "βητα-", shared)
	if !own(len(lives) - 1) {
		t.Error("documents of another kind use an unsuitable dictionary")
	}
	check := func(l Live) {
		t.Helper()
		for row := range Row(l.Rows()) {
			got, err := l.AppendDocument(nil, row)
			if id := string(l.ExternalID(row)); err != nil || string(got) != want[id] {
				t.Fatalf("document %s is %s, %v", id, got, err)
			}
		}
	}
	for _, l := range lives {
		check(l)
	}
	stored := func(l Live) (n int) {
		for row := range uint32(l.Rows()) {
			p, err := l.docs.stored(row)
			if err != nil {
				t.Fatal(err)
			}
			n += len(p)
		}
		return n
	}
	before := 0
	for _, l := range lives[:maxDictionaries+2] {
		before += stored(l)
	}
	if _, err := Merge(t.Context(), fsys, "merged", lives[:maxDictionaries+2], MergeOptions{}); err != nil {
		t.Fatal(err)
	}
	merged := Live{Reader: openSegment(t, fsys, "merged")}
	check(merged)
	if n := stored(merged); n != before {
		t.Errorf("%d bytes of documents became %d: they were compressed again", before, n)
	}
	// A set that starts with the dictionaries of a segment.
	build("later", "alpha", NewDocumentDictionaries(merged.Reader))
	if own(len(lives) - 1) {
		t.Error("documents do not use a dictionary of the existing segment")
	}
	check(lives[len(lives)-1])
}

// TestSharedSample gives a set the dictionary of a sample. Builders use it unless their documents are of another kind, and the set
// does not change.
func TestSharedSample(t *testing.T) {
	const seed = 5
	t.Logf("seed %d", seed)
	r := rand.New(rand.NewPCG(seed, 0))
	fsys := vfs.NewMem()
	samples := func(vocabulary string, n int) (docs [][]byte) {
		for _, doc := range documentsOf(r, vocabulary, n) {
			docs = append(docs, []byte(doc))
		}
		return docs
	}
	for name, tt := range map[string]struct {
		sample int // documents
		want   int // number of dictionaries in the set
	}{"enough": {300, 1}, "too few": {minSampleDocuments - 1, 0}, "none": {0, 0}} {
		set := NewDocumentDictionaries(nil)
		set.Share(samples("alpha", tt.sample))
		if len(set.all) != tt.want {
			t.Fatalf("%s: %d dictionaries, want %d", name, len(set.all), tt.want)
		}
		for i, vocabulary := range []string{"alpha", "βητα-", "alpha"} {
			b := NewBuilder(BuilderOptions{Dictionaries: set})
			for row, doc := range samples(vocabulary, 300) {
				b.StartDoc(DocID(row), fmt.Append(nil, row), doc)
				b.EndDoc()
			}
			file := fmt.Sprint(name, i)
			if _, err := b.Write(t.Context(), fsys, file); err != nil {
				t.Fatal(err)
			}
			dicts, err := openSegment(t, fsys, file).docs.dictionaries()
			if err != nil || len(dicts) != 1 {
				t.Fatalf("%s: %d dictionaries: %v", name, len(dicts), err)
			}
			shared := tt.want > 0 && string(dicts[0].Bytes()) == string(set.all[0].Bytes())
			if shared != (tt.want > 0 && vocabulary == "alpha") || len(set.all) != tt.want {
				t.Errorf("%s: segment %d shares its dictionary: %v; the set has %d", name, i, shared, len(set.all))
			}
		}
	}
}
