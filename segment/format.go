package segment

import (
	"encoding/binary"
	"fmt"

	"github.com/cespare/xxhash/v2"

	"svc/internal/apierr"
)

// docs/SEGMENT.md describes every byte that the constants here name.

// formatVersion is the format of the files that are written. All formats from oldestFormat on can be read. Since 3 the number is that
// of the data directory's format; there was no 2.
const (
	formatVersion = 4
	oldestFormat  = 1

	// sumsFormat is the first format whose files have checksums of blocks.
	sumsFormat = 3
)

// featureVersion counts what a writer records beyond the layout. A reader accepts any value. A segment with an older value may have
// to be rewritten.
const featureVersion = 3

// shapeFeature is the first feature version whose segments hold the shapes of their rows.
const shapeFeature = 3

// fileMagic begins every segment file and footerMagic ends it.
const (
	fileMagic   = "svc.seg\n"
	footerMagic = "svc.end\n"
)

const (
	sectionAlign = 64 // of section starts: a cache line
	headerBytes  = 64 // magic and zeros
	footerBytes  = 64
	entryBytes   = 32 // of one entry of the section table

	// maxSections bounds what a reader believes of a footer.
	maxSections = 1 << 16
	// maxRows keeps row+1 and every 32-bit count of rows inside 32 bits.
	maxRows = 1<<31 - 1
)

// section is one entry of the section table.
type section struct {
	tag      tag
	aux      uint32 // which of several sections of a kind
	offset   int64
	length   int64
	checksum uint64 // xxhash64 of its bytes
}

// appendEntry appends an entry of the section table.
func appendEntry(dst []byte, s section) []byte {
	dst = binary.LittleEndian.AppendUint32(dst, uint32(s.tag))
	dst = binary.LittleEndian.AppendUint32(dst, s.aux)
	dst = binary.LittleEndian.AppendUint64(dst, uint64(s.offset))
	dst = binary.LittleEndian.AppendUint64(dst, uint64(s.length))
	return binary.LittleEndian.AppendUint64(dst, s.checksum)
}

// parseEntry reads an entry of the section table. b has at least entryBytes. Any content gives an entry:
// parseContainer checks its range.
func parseEntry(b []byte) section {
	return section{
		tag:      tag(binary.LittleEndian.Uint32(b)),
		aux:      binary.LittleEndian.Uint32(b[4:]),
		offset:   int64(binary.LittleEndian.Uint64(b[8:])),
		length:   int64(binary.LittleEndian.Uint64(b[16:])),
		checksum: binary.LittleEndian.Uint64(b[24:]),
	}
}

// footer is the last 64 bytes of a file.
type footer struct {
	tableOffset   int64
	tableChecksum uint64
	fileLength    int64
	sections      uint32
	version       uint32
	features      uint32
}

// appendFooter appends the footer with its checksum: 64 bytes that parseContainer reads from the end of a
// file.
func appendFooter(dst []byte, f footer) []byte {
	at := len(dst)
	dst = binary.LittleEndian.AppendUint64(dst, uint64(f.tableOffset))
	dst = binary.LittleEndian.AppendUint64(dst, f.tableChecksum)
	dst = binary.LittleEndian.AppendUint64(dst, uint64(f.fileLength))
	dst = binary.LittleEndian.AppendUint32(dst, f.sections)
	dst = binary.LittleEndian.AppendUint32(dst, f.version)
	dst = binary.LittleEndian.AppendUint32(dst, f.features)
	dst = append(dst, make([]byte, 12)...)
	dst = binary.LittleEndian.AppendUint64(dst, xxhash.Sum64(dst[at:]))
	return append(dst, footerMagic...)
}

// parseContainer reads header, footer and section table of a whole file.
func parseContainer(name string, data []byte) (footer, []section, error) {
	bad := func(part string, offset int, format string, args ...any) (footer, []section, error) {
		return footer{}, nil, &apierr.Corruption{File: name, Section: part, Offset: int64(offset), Reason: fmt.Sprintf(format, args...)}
	}
	size := len(data)
	if size < headerBytes+footerBytes {
		return bad("footer", 0, "the file has %d bytes, a segment at least %d", size, headerBytes+footerBytes)
	}
	if string(data[:len(fileMagic)]) != fileMagic {
		return bad("header", 0, "magic %q expected, %q found", fileMagic, data[:len(fileMagic)])
	}
	at := size - footerBytes
	b := data[at:]
	if string(b[56:]) != footerMagic {
		return bad("footer", size-8, "magic %q expected, %q found: the file may be cut", footerMagic, b[56:])
	}
	if want, got := binary.LittleEndian.Uint64(b[48:]), xxhash.Sum64(b[:48]); want != got {
		return bad("footer", at, "checksum %016x expected, %016x found", want, got)
	}
	f := footer{
		tableOffset:   int64(binary.LittleEndian.Uint64(b)),
		tableChecksum: binary.LittleEndian.Uint64(b[8:]),
		fileLength:    int64(binary.LittleEndian.Uint64(b[16:])),
		sections:      binary.LittleEndian.Uint32(b[24:]),
		version:       binary.LittleEndian.Uint32(b[28:]),
		features:      binary.LittleEndian.Uint32(b[32:]),
	}
	if f.version < oldestFormat || f.version > formatVersion {
		return bad("footer", at+28, "format version %d, this program reads versions %d to %d", f.version, oldestFormat, formatVersion)
	}
	if f.fileLength != int64(size) {
		return bad("footer", at+16, "a length of %d bytes expected, %d found", f.fileLength, size)
	}
	tableBytes := int64(f.sections) * entryBytes
	if f.sections > maxSections || f.tableOffset < headerBytes || f.tableOffset > int64(at) || tableBytes != int64(at)-f.tableOffset {
		return bad("table", -1, "%d sections at offset %d do not end at the footer", f.sections, f.tableOffset)
	}
	table := data[f.tableOffset:at]
	if got := xxhash.Sum64(table); got != f.tableChecksum {
		return bad("table", int(f.tableOffset), "checksum %016x expected, %016x found", f.tableChecksum, got)
	}
	sections := make([]section, f.sections)
	end := int64(headerBytes)
	for i := range sections {
		s := parseEntry(table[i*entryBytes:])
		if s.offset%sectionAlign != 0 || s.offset < end || s.length < 0 || s.length > f.tableOffset-s.offset {
			return bad("table", int(f.tableOffset)+i*entryBytes, "section %v at offset %d with %d bytes overlaps or leaves the file", s.tag, s.offset, s.length)
		}
		end = s.offset + s.length
		sections[i] = s
	}
	return f, sections, nil
}
