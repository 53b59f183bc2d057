package segment

import (
	"github.com/RoaringBitmap/roaring/v2"
)

// EmbedderID numbers an embedder inside an index. A number is never used again for another one.
type EmbedderID uint16

// EmbedderShape says what the vectors of an embedder look like.
type EmbedderShape struct {
	ID         EmbedderID
	Dimensions int
	Binary     bool // of each component only whether it is above 0 is kept
}

// DocVectors is what a document has for one embedder.
type DocVectors struct {
	Regenerate bool      // they are made again when the document's rendered text changes
	Given      bool      // they came with the document, and were not made by the embedder
	Vectors    []float32 // rows of the embedder's dimensions, one behind another; there may be none
	Fragments  []uint16  // number of the fragment that each vector was made of, below MaxFragments; nil when of none
}

// MaxFragments bounds the numbers of fragments.
const MaxFragments = 1<<16 - 8

// Scored is a row with the similarity of its best vector to a query: (1 + cosine) ⁄ 2, or of binary
// embedders the share of equal bits.
type Scored struct {
	Row        Row
	Similarity float32
}

// Vectors reads the vectors of one embedder.
type Vectors struct{}

// Vectors returns what the segment has of an embedder; nil when no row has an entry.
func (r *Reader) Vectors(e EmbedderID) *Vectors { return nil }

// Dimensions returns the length of each vector.
func (v *Vectors) Dimensions() int { return 0 }

// Binary reports whether only bits are kept of the vectors.
func (v *Vectors) Binary() bool { return false }

// Count returns the number of vectors.
func (v *Vectors) Count() int { return 0 }

// Row returns what a row has, and whether it has an entry at all (one may be without vectors). The
// vectors are appended to dst[:0]: exactly as they were given, those of a binary embedder as 0.0 and 1.0.
func (v *Vectors) Row(dst []float32, row Row) (DocVectors, bool) { return DocVectors{}, false }

// Rows returns the rows that have a vector. It, as the bitmaps of the three methods that follow, is
// never nil, shared, not to be modified, and may use mapped memory.
func (v *Vectors) Rows() *roaring.Bitmap { return roaring.New() }

// Given returns the rows that have a vector, given with the document.
func (v *Vectors) Given() *roaring.Bitmap { return roaring.New() }

// Regenerate returns the rows that have a vector, to be made again when their text changes.
func (v *Vectors) Regenerate() *roaring.Bitmap { return roaring.New() }

// Fragment returns the rows that have a vector made of the fragment.
func (v *Vectors) Fragment(f uint16) *roaring.Bitmap { return roaring.New() }

// Search appends the k rows whose best vectors are most similar to q, best first, equal ones by
// ascending row; allowed (nil: all) restricts the rows. Similarities are exact. In a large segment
// a row may be missed: of the best 20, two in a hundred on average at most.
func (v *Vectors) Search(dst []Scored, q []float32, k int, allowed *roaring.Bitmap) []Scored {
	return dst
}
