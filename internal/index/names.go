package index

import (
	"path"
	"strconv"
	"strings"

	"svc/internal/vfs"
)

// Every name on disk. Under a catalog's directory:
//
//	CATALOG            uid → directory of each index
//	CATALOG-000003     what CATALOG changes, when there are many indexes or aliases
//	000001/MANIFEST    what the index is: settings, fields, segments, deleted rows
//	000001/000007.seg  a segment
//	000001/000012.del  deleted rows of a segment, when they are many
//	000001/000013.col  columns beside a segment that was written without them
//	000001/000014.set  settings, when they are large
//
// A name with .tmp at its end is being written; what no manifest names, and
// such files, are left from a crash and removed at open.
const (
	catalogName  = "CATALOG"
	basePrefix   = catalogName + "-"
	manifestName = "MANIFEST"
	editName     = "edit.tmp"     // documents that an edit function changed
	spoolName    = "spool-%d.tmp" // data too large for memory, while a file is written
	segSuffix    = ".seg"
	delSuffix    = ".del"
	colSuffix    = ".col"
	setSuffix    = ".set"
)

func segmentName(number uint64) string    { return pad(number) + segSuffix }
func tombstonesName(number uint64) string { return pad(number) + delSuffix }
func columnsName(number uint64) string    { return pad(number) + colSuffix }
func settingsName(number uint64) string   { return pad(number) + setSuffix }
func directoryName(number uint64) string  { return pad(number) }
func baseName(number uint64) string       { return basePrefix + pad(number) }

// pad writes a number with at least six digits, so that files sort by number in listings.
func pad(number uint64) string {
	s := strconv.FormatUint(number, 10)
	return strings.Repeat("0", max(6-len(s), 0)) + s
}

// number reads what pad wrote.
func number(s string) (uint64, bool) {
	n, err := strconv.ParseUint(s, 10, 64)
	return n, err == nil && pad(n) == s
}

// ours reports whether svc may have made the file of an index's directory.
func ours(name string) bool {
	if strings.HasSuffix(name, vfs.TempSuffix) {
		return true
	}
	suffix := path.Ext(name)
	_, ok := number(strings.TrimSuffix(name, suffix))
	return ok && (suffix == segSuffix || suffix == delSuffix || suffix == colSuffix || suffix == setSuffix)
}

// maxUIDBytes bounds the uid of an index.
const maxUIDBytes = 400

// ValidUID reports whether uid can name an index: letters from a to z in either case, digits, - and _, at most 400 characters.
func ValidUID(uid string) bool {
	if uid == "" || len(uid) > maxUIDBytes {
		return false
	}
	for i := range len(uid) {
		c := uid[i]
		if !('a' <= c && c <= 'z' || 'A' <= c && c <= 'Z' || '0' <= c && c <= '9' || c == '-' || c == '_') {
			return false
		}
	}
	return true
}
