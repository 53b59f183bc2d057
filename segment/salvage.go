package segment

import (
	"encoding/binary"
	"errors"

	"github.com/cespare/xxhash/v2"

	"svc/internal/apierr"
	"svc/internal/binfmt"
	"svc/internal/mapped"
	"svc/internal/vfs"
)

// Salvaged reads the remains of a damaged file. AppendDocument, DocID, ExternalID, Lookup, Vectors and Info work inside a
// mapped.Guard as far as their data is readable. Call no other methods except Close.
type Salvaged struct {
	*Reader
	// Lost is the damage that affects many documents. Damage of a single document shows when the document is read.
	Lost []*apierr.Corruption
	// Mended is where one wrong bit was turned back. More come as documents are read.
	Mended []*apierr.Corruption
	// Unverified says that the checksums are lost, too: documents are as they can be decoded.
	Unverified bool
}

// Salvage opens a file that may be damaged anywhere, without changing it. It repairs one flipped bit per block, or in the tables of
// the file, if a checksum locates it. If the tables are lost, it searches for documents. An error means that nothing can be read.
func Salvage(fs vfs.FS, name string) (*Salvaged, error) {
	file, err := mapped.OpenPrivate(fs, name)
	if err != nil {
		return nil, err
	}
	s := &Salvaged{Reader: &Reader{name: name, file: file, data: file.Bytes()}}
	file.OnFault(s.place)
	if err := s.openContainer(); err != nil {
		return nil, errors.Join(err, file.Close())
	}
	if s.ofColumns() {
		return nil, errors.Join(s.damaged(tagHost, "it has columns that stand beside a segment, and no documents"), file.Close())
	}
	s.try(s.openMeta, tagMeta, func() {
		s.meta = meta{rows: max(len(s.section(tagDocIndex))/docOffsetBytes-1, 0), documentBytes: maxDocumentBytes}
		s.rows = s.meta.rows
	})
	s.try(s.openDocIDs, tagDocIDs, func() {
		s.docIDs = nil
		for row := range s.rows {
			s.docIDs = binary.LittleEndian.AppendUint32(s.docIDs, uint32(row))
		}
	})
	s.try(s.openDocuments, tagDicts, func() {
		// Those that need no dictionary can be read.
		if s.lost(s.docs.open(name, &s.blocks, make([]byte, 4), s.section(tagDocIndex), s.section(tagDocs), s.meta)) {
			s.rows = 0
		}
	})
	s.try(s.openExternalIDs, 0, func() { s.externalIDs, s.idHash = make([]byte, 4*(s.rows+1)), nil })
	s.try(s.openVectors, 0, func() { s.embedders = nil })
	return s, nil
}

// try opens a section, which is small unless t is 0. If that fails, it uses a substitute.
func (s *Salvaged) try(open func() error, t tag, without func()) {
	err := mapped.Guard(func() error {
		for _, entry := range s.sections {
			if entry.tag != t || s.Unverified {
				continue
			}
			s.blocks.touch(s.section(t))
			if err := s.checkSum(entry); err != nil {
				return err
			}
		}
		return open()
	})
	if s.lost(err) {
		without()
	}
}

// lost notes an error, and reports whether there is one.
func (s *Salvaged) lost(err error) bool {
	var damage *apierr.Corruption
	if errors.As(err, &damage) {
		s.Lost = append(s.Lost, damage)
	}
	return err != nil
}

// openContainer finds the sections and their checksums.
func (s *Salvaged) openContainer() error {
	parse := func() (err error) {
		s.footer, s.sections, err = parseContainer(s.name, s.data)
		return err
	}
	if damage := mapped.Guard(parse); damage != nil {
		err := mapped.Guard(func() error {
			mendContainer(s.data)
			return parse()
		})
		if err == nil {
			s.mended(damage)
		} else {
			s.lost(damage)
			if s.sections = findDocuments(s.data); s.sections == nil {
				return damage
			}
			s.Unverified = true
			s.blocks.name, s.blocks.data, s.blocks.sections = s.name, s.data, s.sections
			s.blocks.sound.Store(true)
			return nil
		}
	}
	return s.openBlocks()
}

// mendable is the size in bytes of the largest section of checksums in which a flipped bit is searched for. This takes some seconds.
const mendable = 64 << 10

// openBlocks finds the checksums of blocks, or else uses those of sections.
func (s *Salvaged) openBlocks() error {
	b := &s.blocks
	err := mapped.Guard(func() error {
		if err := b.open(s.name, s.data, s.footer, s.sections); err != nil || b.sums == nil {
			return err
		}
		last := s.sections[len(s.sections)-1]
		err := s.checkSum(last)
		if err != nil && len(b.sums) <= mendable && binfmt.MendBit(b.sums, func() bool { return xxhash.Sum64(b.sums) == last.checksum }) {
			s.mended(err)
			return nil
		}
		return err
	})
	if s.lost(err) {
		f := s.footer
		f.version = sumsFormat - 1
		return b.open(s.name, s.data, f, s.sections)
	}
	b.mended = func(damage *apierr.Corruption) { s.mended(damage) }
	return nil
}

func (s *Salvaged) mended(err error) {
	var damage *apierr.Corruption
	if errors.As(err, &damage) {
		s.Mended = append(s.Mended, damage)
	}
}

// mend turns the one wrong bit of a block back. It returns the damage when there is more than one.
func (b *blocks) mend(i int, damage *apierr.Corruption) *apierr.Corruption {
	from, to := b.block(i)
	want := binary.LittleEndian.Uint32(b.sums[sumBytes*i:])
	if !binfmt.MendBit(b.data[from:to:to], func() bool { return uint32(xxhash.Sum64(b.data[from:to])) == want }) {
		return damage
	}
	b.mended(damage)
	return nil
}

// mendContainer turns one wrong bit of the footer, and one of the table, back. What begins and ends the file is known.
func mendContainer(data []byte) {
	if len(data) < headerBytes+footerBytes {
		return
	}
	footer := append([]byte(nil), data[len(data)-footerBytes:]...)
	if !binfmt.MendBit(footer[:56], func() bool { return binary.LittleEndian.Uint64(footer[48:]) == xxhash.Sum64(footer[:48]) }) {
		return
	}
	copy(footer[56:], footerMagic)
	copy(data[len(data)-footerBytes:], footer)
	copy(data, fileMagic)
	offset, end := binary.LittleEndian.Uint64(footer), uint64(len(data)-footerBytes)
	if offset > end || end-offset > maxSections*entryBytes {
		return
	}
	table := data[offset:end]
	sum := binary.LittleEndian.Uint64(footer[8:])
	binfmt.MendBit(table, func() bool { return xxhash.Sum64(table) == sum })
}

// findDocuments finds the sections of documents in a file whose table is lost: documents are the first section, and the last offset
// of the section after it is their length. It returns nil if they are incomplete.
func findDocuments(data []byte) []section {
	offset := func(at int) uint64 {
		return uint64(binary.LittleEndian.Uint32(data[at:])) | uint64(data[at+4])<<32
	}
	aligned := func(at uint64) uint64 { return (at + sectionAlign - 1) / sectionAlign * sectionAlign }
	var found []section
	look := func(at int) {
		rows, length := 0, uint64(0)
		for i, last := 1, uint64(0); offset(at) == 0 && at+docOffsetBytes*(i+1) <= len(data); i++ {
			next := offset(at + docOffsetBytes*i)
			if next <= last || headerBytes+next > uint64(at) {
				break
			}
			if last = next; aligned(headerBytes+next) == uint64(at) {
				rows, length = i, next
			}
		}
		if rows == 0 {
			return
		}
		indexBytes := docOffsetBytes * (rows + 1)
		found = []section{{tag: tagDocs, offset: headerBytes, length: int64(length)}, {tag: tagDocIndex, offset: int64(at), length: int64(indexBytes)}}
		if dicts := int(aligned(uint64(at + indexBytes))); dicts < len(data) {
			found = append(found, section{tag: tagDicts, offset: int64(dicts), length: int64(len(data) - dicts)})
		}
	}
	for at := headerBytes + sectionAlign; at+2*docOffsetBytes <= len(data) && found == nil; at += sectionAlign {
		// An unreadable place cannot be the section.
		_ = mapped.Guard(func() error { look(at); return nil })
	}
	return found
}
