package segment

// VectorSet gathers vectors of one embedder apart from a Builder, for a change that gives other ones
// to rows that exist. Rows are those of the merge's output, in ascending order.
type VectorSet struct {
	rows int
	keep bool
	vectorStore
}

// NewVectorSet makes an empty set for a segment of so many rows. What the inputs of the merge have of
// this embedder is dropped; but with keep, rows without an entry in the set keep theirs, made binary
// when the shape is.
func NewVectorSet(rows int, shape EmbedderShape, keep bool) *VectorSet {
	return &VectorSet{rows: rows, keep: keep, vectorStore: vectorStore{shape: shape}}
}

// Add gives a row its entry, whose slices are copied. A set that was given anything but an entry of its shape fails the merge.
func (s *VectorSet) Add(r Row, v DocVectors) { s.add(uint32(r), v) }

// MemoryBytes returns about what the set holds.
func (s *VectorSet) MemoryBytes() int64 { return s.memoryBytes() }
