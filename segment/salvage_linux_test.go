package segment

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"

	"svc/internal/apierr"
	"svc/internal/mapped"
	"svc/internal/vfs"
)

// salvageFile writes a segment of several pages to disk, and returns its name and documents.
func salvageFile(t *testing.T) (name string, docs []string) {
	t.Helper()
	name = filepath.Join(t.TempDir(), "0.seg")
	b := NewBuilder(BuilderOptions{Prefixes: true})
	rng := testRand(t)
	for i := range 300 {
		doc := fmt.Sprintf(`{"id":%d,"text":"%x %x %x %x"}`, i, rng.Uint64(), rng.Uint64(), rng.Uint64(), rng.Uint64())
		docs = append(docs, doc)
		b.StartDoc(DocID(i), fmt.Append(nil, i), []byte(doc))
		b.Word(1, fmt.Append(nil, "word", i), 0)
		b.EndDoc()
	}
	if _, err := b.Write(t.Context(), vfs.OS, name); err != nil {
		t.Fatal(err)
	}
	return name, docs
}

// readSalvaged reads a document as a dump does.
func readSalvaged(s *Salvaged, row Row) (doc string, err error) {
	err = mapped.Guard(func() error {
		_ = s.ExternalID(row)
		b, err := s.AppendDocument(nil, row)
		doc = string(b)
		return err
	})
	return doc, err
}

// TestSalvageAroundUnreadablePages makes each page of a file unreadable in turn. Reads of that page name file and offset, and documents
// outside it can be read.
func TestSalvageAroundUnreadablePages(t *testing.T) {
	name, docs := salvageFile(t)
	sound, err := Salvage(vfs.OS, name)
	if err != nil {
		t.Fatal(err)
	}
	size, page := len(sound.data), os.Getpagesize()
	of := sound.sections[slices.IndexFunc(sound.sections, func(s section) bool { return s.tag == tagDocs })]
	if err := sound.Close(); err != nil {
		t.Fatal(err)
	}
	if of.length < 4*int64(page) {
		t.Fatalf("only %d bytes of documents", of.length)
	}
	for from := 0; from < size; from += page {
		s, err := Salvage(vfs.OS, name)
		if err != nil {
			t.Fatal(err)
		}
		lost := s.data[from:min(from+page, size)]
		if err := syscall.Mprotect(lost, syscall.PROT_NONE); err != nil {
			t.Fatal(err)
		}
		right := 0
		for row := range s.Rows() {
			doc, err := readSalvaged(s, Row(row))
			var damage *apierr.Corruption
			switch {
			case err == nil && doc == docs[row]:
				right++
			case err == nil:
				t.Fatalf("page at %d: row %d is %q, want %q", from, row, doc, docs[row])
			case !errors.As(err, &damage) || damage.File != name || damage.Offset < int64(from) || damage.Offset >= int64(from+page) || !strings.Contains(damage.Reason, "cannot be read"):
				t.Fatalf("page at %d: row %d: %v", from, row, err)
			}
		}
		if inDocuments := int64(from) >= of.offset && int64(from+page) <= of.offset+of.length; inDocuments && right < len(docs)*2/3 {
			t.Errorf("page at %d: only %d of %d documents came out", from, right, len(docs))
		}
		if err := syscall.Mprotect(lost, syscall.PROT_READ); err != nil {
			t.Fatal(err)
		}
		if err := s.Close(); err != nil {
			t.Fatal(err)
		}
	}
}

// longer is a file system that overstates the lengths of files, so that the end of their mappings is unreadable.
type longer struct {
	vfs.FS
	by int64
}

func (l longer) Open(name string) (vfs.File, error) {
	f, err := l.FS.Open(name)
	if err != nil {
		return nil, err
	}
	return longerFile{f, f.(vfs.OSFile), l.by}, nil
}

type longerFile struct {
	vfs.File
	of vfs.OSFile
	by int64
}

func (f longerFile) OSFile() *os.File { return f.of.OSFile() }

func (f longerFile) Stat() (fs.FileInfo, error) {
	info, err := f.File.Stat()
	return longerInfo{info, f.by}, err
}

type longerInfo struct {
	fs.FileInfo
	by int64
}

func (i longerInfo) Size() int64 { return i.FileInfo.Size() + i.by }

// TestSalvageOfUnreadableEnd truncates files after and within their documents, and maps them at their full length.
func TestSalvageOfUnreadableEnd(t *testing.T) {
	name, docs := salvageFile(t)
	sound, err := Salvage(vfs.OS, name)
	if err != nil {
		t.Fatal(err)
	}
	size := int64(len(sound.data))
	dicts := sound.sections[slices.IndexFunc(sound.sections, func(s section) bool { return s.tag == tagDicts })]
	if err := sound.Close(); err != nil {
		t.Fatal(err)
	}
	page := int64(os.Getpagesize())
	for cut := (size - 1) / page * page; cut > 0; cut -= page {
		if err := os.Truncate(name, cut); err != nil {
			t.Fatal(err)
		}
		s, err := Salvage(longer{vfs.OS, size - cut}, name)
		if err != nil {
			if cut > dicts.offset+dicts.length {
				t.Errorf("%d of %d bytes are left, with all documents: %v", cut, size, err)
			} else if !apierr.IsCorruption(err) {
				t.Errorf("%d of %d bytes are left: %v", cut, size, err)
			}
			continue
		}
		if !s.Unverified {
			t.Errorf("%d of %d bytes are left, with the checksums", cut, size)
		}
		right := 0
		for row := range s.Rows() {
			if doc, err := readSalvaged(s, Row(row)); err == nil && doc == docs[row] {
				right++
			} else if err == nil || !apierr.IsCorruption(err) {
				t.Errorf("%d of %d bytes are left: row %d is %q, %v", cut, size, row, doc, err)
			}
		}
		if right != len(docs) && cut > dicts.offset+dicts.length {
			t.Errorf("%d of %d bytes are left: %d of %d documents came out", cut, size, right, len(docs))
		}
		if err := s.Close(); err != nil {
			t.Fatal(err)
		}
	}
}
