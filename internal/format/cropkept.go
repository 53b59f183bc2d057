package format

import (
	"bytes"
	"encoding/binary"
	"hash/maphash"
	"slices"

	"svc/internal/index"
	"svc/internal/query"
	"svc/internal/resultcache"
	"svc/internal/settings"
	"svc/internal/text"
	"svc/segment"
)

// To find the best place in a text of a megabyte, all of it has to be decompressed and searched for the words of the query. The crop
// itself is short. As the segment never changes, the crop is cached with it, under a key of everything that it depends on: the text,
// the analysis, the matches of the query, and the length.

// crops are cached with a segment under the row, the length in words, the hash of the matches of the query, that of the field's
// locales, and the path.
var crops = resultcache.NewKind[*croppedText]("crops of texts")

// maxKeptCrop is up to how many bytes a crop is kept.
const maxKeptCrop = 4 << 10

// croppedText is the shown part of a text. It is immutable.
type croppedText struct {
	text          []byte
	matches       []byteSpan // in text
	before, after bool       // something is left out there
}

// cropSeeds are two random seeds, so that two queries never have the same hash, not even by intention.
var cropSeeds = [2]maphash.Seed{maphash.MakeSeed(), maphash.MakeSeed()}

// keptCrops caches crops of the texts of a view for one highlighter.
type keptCrops struct {
	view       *index.View // nil: nothing is kept
	highlights *query.Highlights
	hash       []byte // of highlights and the analysis; nil: not computed yet
	key        []byte // of the last requested text
}

// get returns the cached crop of a member's text to the given number of words, or nil.
func (k *keptCrops) get(seg int, row segment.Row, o *pathOptions) *croppedText {
	scope := k.scope(seg)
	if scope == nil {
		return nil
	}
	if k.hash == nil {
		k.hash = hashOfMatching(k.view.Settings, k.highlights)
	}
	key := binary.LittleEndian.AppendUint32(k.key[:0], uint32(row))
	key = binary.LittleEndian.AppendUint64(key, uint64(o.crop))
	key = append(key, k.hash...)
	key = append(appendLocales(key, o.locales), o.path...)
	k.key = key
	c, _ := crops.Get(scope, key)
	return c
}

// put stores a copy of the crop of the text that get was last called for.
func (k *keptCrops) put(seg int, c *croppedText) {
	scope, size := k.scope(seg), len(c.text)+16*len(c.matches)
	if scope == nil || size > maxKeptCrop {
		return
	}
	kept := *c
	kept.text, kept.matches = slices.Clip(bytes.Clone(c.text)), slices.Clip(slices.Clone(c.matches))
	crops.Put(scope, k.key, &kept, size+96)
}

func (k *keptCrops) scope(seg int) *resultcache.Scope {
	if k.view == nil {
		return nil
	}
	return k.view.Cache.OfFile(seg)
}

// appendLocales appends an encoding of locales. It distinguishes all from none.
func appendLocales(dst []byte, l text.Locales) []byte {
	if l == nil {
		return append(dst, 0xff)
	}
	dst = append(dst, byte(min(len(l), 0xfe)))
	for _, code := range l {
		dst = append(append(dst, code...), 0)
	}
	return dst
}

// hashOfMatching returns a hash of everything that decides which words of a text match, apart from the locales of its field.
func hashOfMatching(s *settings.Settings, h *query.Highlights) []byte {
	var buf []byte
	number := func(n int) { buf = binary.LittleEndian.AppendUint64(buf, uint64(n)) }
	list := func(words []string) {
		number(len(words))
		for _, w := range words {
			number(len(w))
			buf = append(buf, w...)
		}
	}
	list(s.SeparatorTokens)
	list(s.NonSeparatorTokens)
	list(s.Dictionary)
	if h != nil {
		number(len(h.Phrases))
		for _, p := range h.Phrases {
			list(p.Words)
			number(p.First)
			number(p.Last)
		}
		for i := range h.Words {
			w := &h.Words[i]
			list([]string{w.Word})
			list(w.Prefixes)
			number(w.Chars)
			number(w.First)
			number(w.Last)
			number(len(w.Forms))
			var sums [len(cropSeeds)]uint64 // forms are in no order
			for form := range w.Forms {
				for j, seed := range cropSeeds {
					sums[j] += maphash.String(seed, form)
				}
			}
			for _, sum := range sums {
				buf = binary.LittleEndian.AppendUint64(buf, sum)
			}
		}
	}
	hash := make([]byte, 0, 8*len(cropSeeds))
	for _, seed := range cropSeeds {
		hash = binary.LittleEndian.AppendUint64(hash, maphash.Bytes(seed, buf))
	}
	return hash
}
