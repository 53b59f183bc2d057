package index

import (
	"bytes"
	"testing"

	"svc/internal/pace"
)

// TestSamplesAreSpreadAndBounded samples batches with documents of several sizes. Samples must reach the end of the batch and suffice for
// a dictionary, and few large documents are read.
func TestSamplesAreSpreadAndBounded(t *testing.T) {
	for _, tt := range []struct {
		documents, bytes int
		read             int // documents read
	}{
		{100, 300, 100}, {1000, 300, 512}, {3000, 300, 750}, {100_000, 300, 1024}, {100_000, 7 << 10, 1024},
		{64, 100 << 10, 64}, {200, 100 << 10, 82}, {50_000, 100 << 10, 82}, {1000, 4 << 20, 2}, {1, 300, 1}, {0, 0, 0},
	} {
		w := &writer{ctx: t.Context(), pace: pace.Of(pace.Beside(t.Context(), new(pace.Searches)))}
		doc := bytes.Repeat([]byte("x"), tt.bytes)
		last, read := -1, 0
		docs, err := w.samples(tt.documents, func(i int) ([]byte, error) {
			if i <= last || i >= tt.documents {
				t.Fatalf("%d documents: document %d is read after %d", tt.documents, i, last)
			}
			last, read = i, read+1
			return doc, nil
		})
		if err != nil || read != tt.read || len(docs) != read {
			t.Errorf("%d documents of %d bytes: %d are read, want %d, %d kept: %v", tt.documents, tt.bytes, read, tt.read, len(docs), err)
		}
		if last < tt.documents/2-1 {
			t.Errorf("%d documents of %d bytes: none is read after document %d", tt.documents, tt.bytes, last)
		}
		for _, d := range docs {
			if len(d) != min(tt.bytes, sampledDocumentBytes) {
				t.Fatalf("%d bytes of a document of %d are kept", len(d), tt.bytes)
			}
		}
	}
}
