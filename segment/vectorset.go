package segment

// VectorSet collects new vectors of one embedder for existing rows, without a Builder. Rows are those of the merge's output, in
// ascending order.
type VectorSet struct {
	rows int
	keep bool
	vectorStore
}

// NewVectorSet returns an empty set for a segment with the given number of rows. It replaces the vectors of this embedder in the
// inputs of the merge. With keep, rows without an entry in the set keep theirs, in the given shape.
func NewVectorSet(rows int, shape EmbedderShape, keep bool) *VectorSet {
	return &VectorSet{rows: rows, keep: keep, vectorStore: vectorStore{shape: shape}}
}

// Add sets the entry of a row, and copies its slices. If an entry does not match the shape of the set, the merge fails.
func (s *VectorSet) Add(r Row, v DocVectors) { s.add(uint32(r), v) }

// MemoryBytes returns about what the set holds.
func (s *VectorSet) MemoryBytes() int64 { return s.memoryBytes() }
