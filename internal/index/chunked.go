package index

// chunked is a slice that grows without copying. A copy would double the memory of a batch with a million documents.
type chunked[T any] struct{ chunks [][]T }

// listChunk is how many entries a chunk has; only the first one grows to it.
const listChunk = 1 << 12

func (l *chunked[T]) len() int {
	n := len(l.chunks)
	if n == 0 {
		return 0
	}
	return (n-1)*listChunk + len(l.chunks[n-1])
}

// at returns an entry, which stays where it is until the next one is added.
func (l *chunked[T]) at(i int) *T { return &l.chunks[i/listChunk][i%listChunk] }

// add appends x. The first chunk grows as a slice does, because most lists are short; further ones have their
// full size, so nothing is copied.
func (l *chunked[T]) add(x T) {
	last := len(l.chunks) - 1
	switch {
	case last < 0:
		l.chunks = append(l.chunks, nil)
		last = 0
	case len(l.chunks[last]) == listChunk:
		l.chunks = append(l.chunks, make([]T, 0, listChunk))
		last++
	}
	l.chunks[last] = append(l.chunks[last], x)
}
