package index

import (
	"encoding/binary"
	"fmt"

	"github.com/cespare/xxhash/v2"

	"svc/internal/apierr"
)

// Manifest, catalog, base of the catalog and lists of deleted rows are sealed files, little-endian:
//
//	offset  bytes
//	0       8      magic, tells the kind
//	8       4      format version of the kind
//	12      4      zero
//	16      8      length n of the content
//	24      8      xxhash64 of the content
//	32      n      content: JSON; of deleted rows a roaring bitmap in its portable form
type seal struct {
	magic   string // 8 bytes
	version uint32 // the version written, except by wrapAs
	oldest  uint32 // that is read
}

// The format versions of manifests. In version 1 they contain all deleted rows.
const (
	tombstonesVersion = 2 // lists of deleted rows
	besideVersion     = 3 // and files of columns; written when there is one
	unfitVersion      = 4 // and vectors that do not fit their embedder; written when there may be some
	settingsVersion   = 5 // and a file of settings; written when there is one
	halfVersion       = 6 // and vectors in half precision; written when a setting names it, or such vectors do not fit their embedder
)

// The format versions of catalogs.
const (
	aliasesVersion = 2 // aliases; written when there are some
	baseVersion    = 3 // and a base; written when there is one
)

var (
	manifestSeal   = seal{"svcMANIF", halfVersion, 1}
	catalogSeal    = seal{"svcCATLG", baseVersion, 1}
	baseSeal       = seal{"svcCATLB", 1, 1}
	tombstonesSeal = seal{"svcTOMBS", 1, 1}
)

const sealBytes = 32

func (s seal) wrap(content []byte) []byte { return s.wrapAs(s.version, content) }

// wrapAs is wrap with a version of its own.
func (s seal) wrapAs(version uint32, content []byte) []byte {
	b := make([]byte, sealBytes, sealBytes+len(content))
	copy(b, s.magic)
	binary.LittleEndian.PutUint32(b[8:], version)
	binary.LittleEndian.PutUint64(b[16:], uint64(len(content)))
	binary.LittleEndian.PutUint64(b[24:], xxhash.Sum64(content))
	return append(b, content...)
}

// unknownFormat is the error of a file that another svc wrote, mostly a later one. Nothing is wrong with it.
type unknownFormat struct {
	name    string
	version uint32
	reads   seal
}

func (e *unknownFormat) Error() string {
	return fmt.Sprintf("cannot read %s: it has format version %d and this svc reads versions %d to %d: start the svc that wrote it, make a dump and import that",
		e.name, e.version, e.reads.oldest, e.reads.version)
}

// unwrap returns the content of a sealed file. name is for errors.
func (s seal) unwrap(name string, b []byte) ([]byte, error) {
	damaged := func(off int64, format string, args ...any) error {
		return &apierr.Corruption{File: name, Offset: off, Reason: fmt.Sprintf(format, args...)}
	}
	if len(b) < sealBytes {
		return nil, damaged(0, "%d bytes, want at least %d", len(b), sealBytes)
	}
	if got := string(b[:8]); got != s.magic {
		return nil, damaged(0, "starts with %q, want %q", got, s.magic)
	}
	if v := binary.LittleEndian.Uint32(b[8:]); v < s.oldest || v > s.version {
		return nil, &unknownFormat{name, v, s}
	}
	content := b[sealBytes:]
	if n := binary.LittleEndian.Uint64(b[16:]); n != uint64(len(content)) {
		return nil, damaged(16, "content of %d bytes, want %d", len(content), n)
	}
	if got, want := xxhash.Sum64(content), binary.LittleEndian.Uint64(b[24:]); got != want {
		return nil, damaged(24, "checksum %016x, want %016x", got, want)
	}
	return content, nil
}
