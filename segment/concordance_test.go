package segment

import (
	"bytes"
	"context"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"svc/internal/jsontext"
	"svc/internal/mapped"
	"svc/internal/vfs"
)

// concord gives the builder the concordance of a text of the open document, even of a short one. Each word of the text ends with a
// space. If a word ends in a slash, cutInner splits it into the word and an inner word.
func concord(b *Builder, key, text string) {
	if text == "" {
		return
	}
	defer func(long, mark, part, share int) {
		LongText, markBytes, partBytes, concordShare = long, mark, part, share
	}(LongText, markBytes, partBytes, concordShare)
	LongText, markBytes, partBytes, concordShare = -1, 20, 100, 1<<20
	c := b.Concordance([]byte(key), 77)
	at := 0
	for word := range strings.SplitAfterSeq(text, " ") {
		at += len(word)
		if word != "" {
			form, inner, ok := cutInner(strings.TrimSuffix(word, " "))
			if c.Word([]byte(form)); ok {
				c.Inner([]byte(inner))
			}
		}
		if at < len(text) {
			c.Mark(at, uint16(at%7))
		}
	}
	c.End(len(text))
}

// cutInner returns the form of a word of a text, and the inner word that ends in it, if any.
func cutInner(word string) (form, inner string, ok bool) {
	if !strings.HasSuffix(word, "/") {
		return word, "", false
	}
	form, inner, ok = strings.Cut(strings.TrimSuffix(word, "/"), "/")
	return form, inner, ok
}

// randomText returns words, each followed by a space. Some reach or exceed the length limit of forms.
func randomText(rng *rand.Rand, words int) string {
	var b strings.Builder
	for range words {
		switch kind := rng.IntN(40); kind {
		case 0:
		case 1:
			b.WriteString(strings.Repeat("long", 60) + strings.Repeat("x", 8+rng.IntN(9)))
		case 2:
			b.WriteString([]string{"a\nb", "\"", "\U0001f600", "\x02"}[rng.IntN(4)])
		default:
			word := fmt.Sprint(string([]rune(randomWord(rng))[:1]), rng.IntN(20))
			b.WriteString(word)
			switch kind {
			case 3:
				b.WriteString("/" + word[len(word)-1:] + word + "/")
			case 4:
				b.WriteString("/" + strings.Repeat("long", 65) + "/")
			}
		}
		b.WriteByte(' ')
	}
	return b.String()
}

// escaped encodes a text as a JSON string in a random way.
func escaped(rng *rand.Rand, text string) string {
	var b strings.Builder
	b.WriteByte('"')
	for _, r := range text {
		switch {
		case r > 0xffff && rng.IntN(2) == 0:
			fmt.Fprintf(&b, "\\u%04x\\u%04x", 0xd800+(r-0x10000)>>10, 0xdc00+(r-0x10000)&0x3ff)
		case r < ' ' || r == '"' || r < 0x10000 && rng.IntN(30) == 0:
			fmt.Fprintf(&b, "\\u%04x", r)
		default:
			b.WriteRune(r)
		}
	}
	return b.String() + `"`
}

// wordsOf returns the concordanceText that a text should have.
func wordsOf(text string) string {
	var b strings.Builder
	for word := range strings.SplitAfterSeq(text, " ") {
		if strings.HasSuffix(word, " ") {
			word, inner, ok := cutInner(strings.TrimSuffix(word, " "))
			fmt.Fprintf(&b, "%s %v,", word[:min(len(word), LongestConcordForm)], len(word) > LongestConcordForm)
			if ok {
				fmt.Fprintf(&b, "%s %v,", inner[:min(len(inner), LongestConcordForm-1)], len(inner) > LongestConcordForm-1)
			}
		}
	}
	return b.String()
}

// concordanceText lists the words of a member's concordance in order and whether they are cut; "" if there is none.
func concordanceText(r *Reader, row Row, start int) string {
	first, end := r.concordances.find(uint32(row), start)
	c := Concordance{&r.concordances, first, end}
	words, inner := map[int]string{}, map[int]string{}
	var p ConcordancePart
	for i := range c.Parts() {
		err := c.Open(i, &p)
		if err == nil {
			err = p.Find("", true, func(form []byte, cut bool, places Places) {
				for {
					at, ok := places.Next()
					if !ok {
						break
					}
					to := words
					form, isInner := CutInnerForm(form)
					if isInner {
						to = inner
					}
					to[p.First+at] = fmt.Sprintf("%s %v,", form, cut)
				}
				if !places.Sound() {
					panic(mapped.Damage(p.Damaged()))
				}
			})
		}
		if err != nil {
			panic(mapped.Damage(err))
		}
		if p.Words > 1<<20 { // of damaged bytes
			break
		}
	}
	var b strings.Builder
	for i := range len(words) {
		b.WriteString(words[i] + inner[i])
	}
	return b.String()
}

// TestConcordanceFindsFormsAndPlaces compares lookups of forms and prefixes with a map of all words, and the text after each mark with the
// original. Texts are stored in pieces; those of a large document are in a temporary file.
func TestConcordanceFindsFormsAndPlaces(t *testing.T) {
	rng := testRand(t)
	for round, large := range []bool{false, true, false} {
		fs := vfs.NewMem()
		b := NewBuilder(BuilderOptions{Spool: func() (*mapped.Spool, error) { return mapped.NewSpool(fs, fmt.Sprint("spool", rng.Uint64())) }})
		var texts []string
		for id := range 3 {
			text := randomText(rng, 15_000)
			raw := fmt.Sprintf(`{"id":%d,"other":"%s","text":%s,"last":%s}`, id, strings.Repeat("x y ", rng.IntN(3)*20_000), escaped(rng, text), escaped(rng, randomText(rng, 5)))
			if large {
				raw = raw[:len(raw)-1] + `,"more":"` + strings.Repeat("more ", spooledDocument/5) + `"}`
			}
			b.StartDoc(DocID(id), fmt.Append(nil, id), []byte(raw))
			concord(b, "text", text)
			b.EndDoc()
			texts = append(texts, text)
		}
		if _, err := b.Write(context.Background(), fs, "a.seg"); err != nil {
			t.Fatal(err)
		}
		b.Reset()
		r := openSegment(t, fs, "a.seg")
		if err := r.Verify(); err != nil {
			t.Fatal(err)
		}
		if round == 2 {
			if _, err := Merge(context.Background(), fs, "b.seg", []Live{{Reader: r}}, MergeOptions{Prefixes: true}); err != nil {
				t.Fatal(err)
			}
			r = openSegment(t, fs, "b.seg")
		}
		for row, text := range texts {
			all := func([]byte) bool { return true }
			_, tails, err := r.AppendBeginnings(nil, Row(row), Wanted{Has: all}, all, nil, nil)
			if err != nil {
				t.Fatal(err)
			}
			i := slices.IndexFunc(tails, func(t Tail) bool { return string(t.Key()) == `"text"` })
			checkTail(t, rng, &tails[i], text)
		}
	}
}

// innerBit returns 1 for a form of inner words, and 0 for others.
func innerBit(form string) int {
	if _, ok := CutInnerForm(form); ok {
		return 1
	}
	return 0
}

func checkTail(t *testing.T, rng *rand.Rand, tail *Tail, text string) {
	t.Helper()
	written := strings.Split(strings.TrimSuffix(text, " "), " ")
	words := slices.Clone(written)
	places := map[string][]int{}
	inner := make([]string, len(words)) // with the mark
	withInner := 0
	for i, w := range words {
		if form, of, ok := cutInner(w); ok {
			words[i], inner[i] = form, InnerForm(of)
			places[inner[i]] = append(places[inner[i]], i)
			withInner++
		}
		places[words[i]] = append(places[words[i]], i)
	}
	if withInner == 0 {
		t.Fatal("no inner words")
	}
	keys := []string{"", "long", strings.Repeat("long", 60), "zz", InnerForm(""), InnerForm("a"), InnerForm("long"), InnerForm("1")}
	for range 30 {
		w := words[rng.IntN(len(words))]
		keys = append(keys, w, w[:len(w)/2])
	}
	for _, key := range keys {
		for _, prefix := range []bool{false, true} {
			got, want := map[int]bool{}, map[int]bool{} // twice the number of a word, and 1 more for an inner one
			for w, list := range places {
				short := w[:min(len(w), LongestConcordForm)]
				if short == key || prefix && strings.HasPrefix(short, key) {
					for _, n := range list {
						want[2*n+innerBit(w)] = true
					}
				}
			}
			c := tail.Concordance()
			var p ConcordancePart
			for i := range c.Parts() {
				if err := c.Open(i, &p); err != nil {
					t.Fatal(err)
				}
				if err := p.Find(key, prefix, func(form []byte, cut bool, l Places) {
					for {
						n, ok := l.Next()
						if !ok {
							break
						}
						n += p.First
						w, bit := words[n], innerBit(string(form))
						if bit > 0 {
							w = inner[n]
						}
						if got[2*n+bit] || cut != (len(w) > LongestConcordForm) || string(form) != w[:min(len(w), LongestConcordForm)] {
							t.Fatalf("%q: word %d is %q, cut %v; want %q", key, n, form, cut, w)
						}
						got[2*n+bit] = true
					}
				}); err != nil {
					t.Fatal(err)
				}
			}
			if len(got) != len(want) {
				t.Fatalf("%q, prefix %v: %d words, want %d", key, prefix, len(got), len(want))
			}
		}
	}
	var p ConcordancePart
	for range 20 {
		word := rng.IntN(len(words))
		if err := tail.Concordance().Open(rng.IntN(tail.Concordance().Parts()), &p); err != nil {
			t.Fatal(err)
		}
		place := p.Before(word)
		if place.Word > word && word >= p.First || len(strings.Join(written[:place.Word], " ")) > place.Text || place.Text > 0 && place.Resume != uint16(place.Text%7) {
			t.Fatalf("mark %+v before word %d", place, word)
		}
		rest, err := tail.From(place)
		if err != nil {
			t.Fatal(err)
		}
		var got []byte
		for rest.More() && len(got) < 100_000 {
			if got, err = rest.Append(got); err != nil {
				t.Fatal(err)
			}
		}
		if !strings.HasPrefix(text[place.Text:], string(got)) || !rest.More() && len(got) != len(text)-place.Text {
			t.Fatalf("the text after %+v is %.50q, want %.50q", place, got, text[place.Text:])
		}
	}
}

// TestSeveralInnerWordsEndInAWord has more forms than twice the words.
func TestSeveralInnerWordsEndInAWord(t *testing.T) {
	const words, each = 3000, 5
	word := func(i int) string {
		return fmt.Sprint("a word that takes much more memory than its form does ", strings.Repeat("x", 300), i, " ")
	}
	var text strings.Builder
	for i := range words {
		text.WriteString(word(i))
	}
	fs := vfs.NewMem()
	b := NewBuilder(BuilderOptions{})
	b.StartDoc(1, []byte("1"), []byte(`{"a":`+quoted(text.String())+`}`))
	c := b.Concordance([]byte("a"), 1)
	for i, at := 0, 0; i < words; i++ {
		c.Word(fmt.Append(nil, i))
		for k := range each {
			c.Inner(fmt.Append(nil, k, "of", i))
		}
		if at += len(word(i)); i < words-1 {
			c.Mark(at, 0)
		}
	}
	c.End(text.Len())
	b.EndDoc()
	if _, err := b.Write(context.Background(), fs, "a.seg"); err != nil {
		t.Fatal(err)
	}
	b.Reset()
	r := openSegment(t, fs, "a.seg")
	if err := r.Verify(); err != nil {
		t.Fatal(err)
	}
	concordance, err := r.Concordance(0, []byte(`"a"`))
	if err != nil || concordance == nil {
		t.Fatal(concordance, err)
	}
	var p ConcordancePart
	if err := concordance.Open(0, &p); err != nil {
		t.Fatal(err)
	}
	found := 0
	if err := p.Find(InnerForm(""), true, func(form []byte, cut bool, places Places) {
		at, ok := places.Next()
		if _, more := places.Next(); !ok || more || cut || !strings.HasSuffix(string(form), fmt.Sprint("of", at)) {
			t.Fatalf("%q is at %d: %v", form, at, ok)
		}
		found++
	}); err != nil || found != each*p.Words {
		t.Errorf("%d inner words of %d words: %v", found, p.Words, err)
	}
}

// TestConcordancesAreOmitted checks that no concordance is stored for short texts, for missing or non-string members, for texts that
// differ from the document's, and for texts with nearly as many forms as words.
func TestConcordancesAreOmitted(t *testing.T) {
	long := strings.Repeat("some words ", 10_000)
	var distinct strings.Builder
	for i := range 20_000 {
		fmt.Fprintf(&distinct, "%x ", i*2654435761%(1<<32))
	}
	for _, tt := range []struct {
		what, key, raw, text string
		started, parts       int
	}{
		{"long", "a", `{"a":` + quoted(long) + `}`, long, 1, 1},
		{"short", "a", `{"a":"some words "}`, "some words ", 0, 0},
		{"another key", "b", `{"a":` + quoted(long) + `}`, long, 0, 0},
		{"a list", "a", `{"a":[` + quoted(long) + `]}`, long, 0, 0},
		{"another text", "a", `{"a":` + quoted(long) + `}`, long + "more ", 1, 0},
		{"less text", "a", `{"a":` + quoted(long+"more ") + `}`, long, 1, 0},
		{"forms", "a", `{"a":` + quoted(distinct.String()) + `}`, distinct.String(), 1, 0},
	} {
		b := NewBuilder(BuilderOptions{})
		b.StartDoc(1, []byte("1"), []byte(tt.raw))
		c := b.Concordance([]byte(tt.key), 1)
		if (c != nil) != (tt.started == 1) {
			t.Errorf("%s: started %v", tt.what, c != nil)
			continue
		}
		if c == nil {
			continue
		}
		at := 0
		for word := range strings.SplitAfterSeq(strings.TrimSuffix(tt.text, " "), " ") {
			at += len(word)
			c.Word([]byte(strings.TrimSuffix(word, " ")))
			c.Mark(at, 0)
		}
		c.End(len(tt.text))
		if n := len(b.concordances.parts); n != tt.parts {
			t.Errorf("%s: %d parts, want %d", tt.what, n, tt.parts)
		}
	}
}

func quoted(s string) string { return string(jsontext.AppendQuoted(nil, []byte(s))) }

// FuzzConcordance reads parts of arbitrary bytes.
func FuzzConcordance(f *testing.F) {
	rng := rand.New(rand.NewPCG(5, 6))
	for _, words := range []int{1, 20, 400} {
		b := NewBuilder(BuilderOptions{})
		text := randomText(rng, words)
		b.StartDoc(1, []byte("1"), []byte(`{"text":`+escaped(rng, text)+`}`))
		concord(b, "text", text)
		for _, p := range b.concordances.parts {
			f.Add(p.memory)
		}
	}
	f.Fuzz(func(t *testing.T, data []byte) {
		if len(data) > 1<<16 {
			return
		}
		docs := readerOfDocs(nil)
		var p ConcordancePart
		if p.open(docs, data) != nil || p.Words > 1<<20 {
			return
		}
		sound := p.verify() == nil
		total := 0
		for _, key := range []string{"", "a", "long", "é1", InnerForm("a")} {
			for _, prefix := range []bool{false, true} {
				err := p.Find(key, prefix, func(form []byte, cut bool, l Places) {
					if !bytes.HasPrefix(form, []byte(key)) {
						t.Errorf("%q found for %q", form, key)
					}
					for last := -1; ; total++ {
						n, ok := l.Next()
						if !ok {
							break
						}
						if n <= last || n >= p.Words {
							t.Fatalf("word %d behind %d", n, last)
						}
						last = n
					}
					if sound && !l.Sound() {
						t.Error("invalid places in a valid part")
					}
				})
				if sound && err != nil {
					t.Error(err)
				}
			}
		}
		p.Before(p.First + p.Words/2)
	})
}
