package index

import (
	"encoding/binary"
	"slices"

	"svc/segment"
)

// payloadLine is a document of a payload.
type payloadLine struct {
	offset  int64
	bytes   uint32
	vectors bool
	lacking string // an embedder that needs vectors of it and finds none
	stood   place  // where base has the document, if the check has looked; seg is noSegment: nowhere
}

// payloadLines has what the check of a payload found about its lines, in order, in a few bytes each besides the id:
//
//	uvarint distance of the offset from the end of the line before
//	uvarint length << 1 | vectors
//	uvarint place of lacking in names + 1, or 0
//	uvarint segment of base + 1, and the row in it; or 0
//	uvarint length of the id, the id
type payloadLines struct {
	chunks [][]byte
	end    int64 // of the last line
	count  int
	names  []string
}

const linesChunk = 64 << 10

// add appends what is known of a line, as varints: the distance from the previous line, its length with a bit for vectors, the name
// that it lacks, the row that had the document, and the id. That is about ten bytes plus the id, for a payload of any length.
func (p *payloadLines) add(l payloadLine, id []byte) {
	lacking := 0
	if l.lacking != "" {
		if lacking = slices.Index(p.names, l.lacking) + 1; lacking == 0 {
			p.names = append(p.names, l.lacking)
			lacking = len(p.names)
		}
	}
	last := len(p.chunks) - 1
	if need := 6*binary.MaxVarintLen64 + len(id); last < 0 || len(p.chunks[last])+need > linesChunk {
		p.chunks = append(p.chunks, nil)
		if last++; last > 0 { // most payloads are small
			p.chunks[last] = make([]byte, 0, linesChunk)
		}
	}
	b := binary.AppendUvarint(p.chunks[last], uint64(l.offset-p.end))
	size := uint64(l.bytes) << 1
	if l.vectors {
		size |= 1
	}
	b = binary.AppendUvarint(b, size)
	b = binary.AppendUvarint(b, uint64(lacking))
	if b = binary.AppendUvarint(b, uint64(l.stood.seg+1)); l.stood.seg != noSegment {
		b = binary.AppendUvarint(b, uint64(l.stood.row))
	}
	b = binary.AppendUvarint(b, uint64(len(id)))
	p.chunks[last] = append(b, id...)
	p.end = l.offset + int64(l.bytes)
	p.count++
}

// each calls f for every line, with its id, which is valid as long as p. With forget, lines are forgotten as f has had them.
func (p *payloadLines) each(forget bool, f func(l payloadLine, id []byte) error) error {
	end := int64(0)
	for i, b := range p.chunks {
		if forget {
			p.chunks[i] = nil
		}
		next := func() uint64 {
			v, n := binary.Uvarint(b)
			b = b[n:]
			return v
		}
		for len(b) > 0 {
			var l payloadLine
			l.offset = end + int64(next())
			size := next()
			l.bytes, l.vectors = uint32(size>>1), size&1 != 0
			if n := next(); n > 0 {
				l.lacking = p.names[n-1]
			}
			if l.stood.seg = int32(next()) - 1; l.stood.seg != noSegment {
				l.stood.row = segment.Row(next())
			}
			end = l.offset + int64(l.bytes)
			n := next()
			id := b[:n:n]
			b = b[n:]
			if err := f(l, id); err != nil {
				return err
			}
		}
	}
	return nil
}
