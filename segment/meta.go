package segment

import (
	"context"
	"encoding/binary"
)

// meta is the first section: counts that describe the segment.
type meta struct {
	rows          int
	documentBytes int64
	prefixes      bool // there are prefix postings
}

const metaBytes = 24

// writeMeta writes the section meta. Its reserved bytes are zeros.
func writeMeta(f *fileWriter, m meta) {
	b := binary.LittleEndian.AppendUint32(nil, uint32(m.rows))
	flags := uint32(0)
	if m.prefixes {
		flags |= 1
	}
	b = binary.LittleEndian.AppendUint32(b, flags)
	b = binary.LittleEndian.AppendUint64(b, uint64(m.documentBytes))
	b = append(b, make([]byte, metaBytes-len(b))...)
	f.add(tagMeta, 0, b)
}

func buildMeta(_ context.Context, b *Builder, f *fileWriter) error {
	writeMeta(f, meta{rows: len(b.docIDs), documentBytes: b.docs.raw, prefixes: b.options.Prefixes})
	return nil
}

// openMeta reads the counts. It runs before all other sections are opened, because they are measured by the
// number of rows.
func (r *Reader) openMeta() error {
	m := r.section(tagMeta)
	if len(m) < metaBytes || binary.LittleEndian.Uint32(m) > maxRows {
		return r.damaged(tagMeta, "%d bytes", len(m))
	}
	r.meta = meta{
		rows:          int(binary.LittleEndian.Uint32(m)),
		prefixes:      m[4]&1 != 0,
		documentBytes: int64(binary.LittleEndian.Uint64(m[8:])),
	}
	r.rows = r.meta.rows
	return nil
}

// writeMeta writes the counts of the output; its documents are written before.
func (m *merger) writeMeta() error {
	writeMeta(m.f, meta{rows: len(m.origins), documentBytes: m.documentBytes, prefixes: m.o.Prefixes})
	return nil
}

// verifyMeta has nothing to compare: opening the other sections checks them against its number of rows.
func (r *Reader) verifyMeta() error {
	if len(r.section(tagMeta)) != metaBytes {
		return r.damaged(tagMeta, "%d bytes", len(r.section(tagMeta)))
	}
	return nil
}

func (i *inspector) meta() {
	i.field(4, "%d rows", i.u32())
	i.field(4, "flags: prefix postings %v", i.u32()&1 != 0)
	i.field(8, "%d bytes of documents", i.u64())
	i.field(len(i.p), "reserved")
}
