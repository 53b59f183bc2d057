package segment

// VectorSet gathers vectors of one embedder apart from a Builder, for a change that gives rows
// that exist other ones. Rows come in ascending order, those of the merge's output.
type VectorSet struct {
	rows  int
	shape EmbedderShape
}

// NewVectorSet makes an empty set for a segment of so many rows. What the inputs of the merge
// have of this embedder is dropped, unless keep: then rows without an entry in the set keep theirs (converted
// when the shape is binary and theirs was not).
func NewVectorSet(rows int, shape EmbedderShape, keep bool) *VectorSet {
	return &VectorSet{rows: rows, shape: shape}
}

// Add gives a row its entry, whose slices are copied.
func (s *VectorSet) Add(r Row, v DocVectors) {}

// MemoryBytes returns about what the set holds.
func (s *VectorSet) MemoryBytes() int64 { return 0 }
