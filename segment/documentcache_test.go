package segment

import (
	"bytes"
	"fmt"
	"sync"
	"testing"

	"svc/internal/vfs"
)

func TestCacheAdmitsOnSecondRead(t *testing.T) {
	var c documentCache
	key, doc := cacheKey(3, 4), []byte("document")
	c.put(key, doc)
	if c.get(key) != nil {
		t.Fatal("a document read once is cached")
	}
	c.put(key, doc)
	doc[0] = 'x'
	if got := c.get(key); string(got) != "document" {
		t.Fatalf("%q is cached", got)
	}
	if c.get(cacheKey(3, 5)) != nil || c.get(cacheKey(4, 4)) != nil {
		t.Fatal("the cache returned another document")
	}
}

func TestDocumentCacheIsBounded(t *testing.T) {
	rng := testRand(t)
	var c documentCache
	var wait sync.WaitGroup
	for g := range uint32(3) {
		seed := rng.Uint32()
		wait.Go(func() {
			for i := range uint32(30000) {
				n := int((i*2654435761 + seed) % 2000)
				key := cacheKey(g, i)
				doc := fmt.Appendf(bytes.Repeat([]byte{'x'}, n), "%d", key)
				c.put(key, doc)
				c.put(key, doc)
				if got := c.get(key); got != nil && !bytes.Equal(got, doc) {
					t.Errorf("key %d has another document", key)
				}
			}
		})
	}
	wait.Wait()
	sum := int64(0)
	for i := range c.sets {
		for j := range c.sets[i].slots {
			if d := c.sets[i].slots[j].Load(); d != nil {
				sum += int64(len(d.doc))
			}
		}
	}
	if sum != c.bytes.Load() || sum > cacheBytes || sum < cacheBytes/2 {
		t.Fatalf("%d bytes are cached, %d counted", sum, c.bytes.Load())
	}
	c.put(cacheKey(9, 9), make([]byte, cacheMaxDocument+1))
	c.put(cacheKey(9, 9), make([]byte, cacheMaxDocument+1))
	if c.get(cacheKey(9, 9)) != nil {
		t.Fatal("a large document is cached")
	}
}

func TestCachedDocumentsMatchStored(t *testing.T) {
	rng := testRand(t)
	fs := vfs.NewMem()
	for range 3 { // rows of different segments of one name
		docs := randomDocs(rng, 500)
		r := buildSegment(t, fs, "a.seg", rng, docs, false)
		var buf []byte
		for range 5000 {
			row := rng.IntN(min(len(docs), 1+rng.IntN(len(docs))))
			var err error
			if buf, err = r.AppendDocument(append(buf[:0], "p"...), Row(row)); err != nil || string(buf) != "p"+docs[row].raw {
				t.Fatalf("row %d: %q, %v", row, buf, err)
			}
		}
	}
}
