package dump

import (
	"archive/tar"
	"bufio"
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"path"
	"strconv"
	"strings"

	"github.com/klauspost/compress/gzip"

	"svc/internal/document"
	"svc/internal/mapped"
	"svc/internal/vfs"
)

// Limits for the content of an archive. Dumps of real data do not reach them. They stop an archive that was made to fill memory or a
// disk.
const (
	maxEntries   = 20_000_000
	maxNameBytes = 1024
	maxNames     = 256 << 20 // bytes of all names, each plus nameCost for the memory of an entry
	nameCost     = 100
	maxSmall     = 64 << 20  // bytes of one entry that is read into memory
	maxLineBytes = 512 << 20 // of a task or a batch; document.MaxBytes bounds documents

	// Beyond freeBytes, the output may be at most ratioLimit times the input. JSON compresses to about a tenth; the format can
	// express at most about a thousandth.
	freeBytes  = 1 << 30
	ratioLimit = 400
)

// Bytes that are in memory at the same time. (Variables, so that tests can lower them.)
var (
	maxSmallSum    = 256 << 20 // of entries, without settings of indexes
	settingsMemory = 64 << 20  // of settings of indexes; those of later indexes wait in files
)

// countingReader counts the bytes read.
type countingReader struct {
	r io.Reader
	n int64
}

func (c *countingReader) Read(b []byte) (int, error) {
	n, err := c.r.Read(b)
	c.n += int64(n)
	return n, err
}

// openArchive calls visit for each file of a gzipped tar.
func openArchive(ctx context.Context, r io.Reader, visit func(name string, size int64, r io.Reader) error) error {
	packed := &countingReader{r: r}
	z, err := gzip.NewReader(bufio.NewReaderSize(packed, fileBuffer))
	if err != nil {
		return fmt.Errorf("it is not gzipped: %w", err)
	}
	defer z.Close()
	m := &meter{ctx: ctx, packed: packed, names: maxNames}
	if err := eachFile(tar.NewReader(z), m, visit); err != nil {
		return err
	}
	// The checksum stands at the end, after the last entry.
	if _, err := io.Copy(io.Discard, m.reader(z)); err != nil {
		return fmt.Errorf("it cannot be read: %w", err)
	}
	return nil
}

// meter limits the output of an archive, and ends with its context.
type meter struct {
	ctx      context.Context
	packed   *countingReader // nil: not compressed
	unpacked int64
	names    int // bytes of names that may still come
}

func (m *meter) reader(r io.Reader) io.Reader { return &metered{m, r} }

type metered struct {
	*meter
	r io.Reader
}

// Read fails when the context ends, or if an archive decompresses to far too much.
func (m *metered) Read(b []byte) (int, error) {
	if m.ctx.Err() != nil {
		return 0, context.Cause(m.ctx)
	}
	n, err := m.r.Read(b)
	m.unpacked += int64(n)
	if m.packed != nil && m.unpacked > freeBytes && m.unpacked/ratioLimit > m.packed.n {
		return n, fmt.Errorf("%d bytes decompress to more than %d: the file may be an attack that fills the disk", m.packed.n, m.unpacked)
	}
	return n, err
}

// eachFile calls visit for each regular file, with a clean name. Directories are passed over; anything else is refused.
func eachFile(t *tar.Reader, m *meter, visit func(name string, size int64, r io.Reader) error) error {
	seen := map[string]bool{}
	for n := 0; ; n++ {
		h, err := t.Next()
		if err == io.EOF {
			return nil
		}
		if err != nil {
			return fmt.Errorf("it cannot be read: %w", err)
		}
		if n >= maxEntries {
			return fmt.Errorf("it has more than %d entries", maxEntries)
		}
		name, err := cleanName(h.Name)
		if err != nil {
			return err
		}
		if m.names -= len(name) + nameCost; m.names < 0 {
			return errors.New("the names of its entries take too much memory: the file may be an attack that fills it")
		}
		switch h.Typeflag {
		case tar.TypeDir:
			continue
		case tar.TypeReg:
		default:
			return fmt.Errorf("%q is neither a file nor a directory", h.Name)
		}
		if name == "." || seen[name] {
			return fmt.Errorf("it has %q twice, or as the root", h.Name)
		}
		seen[name] = true
		if err := visit(name, h.Size, m.reader(t)); err != nil {
			return fmt.Errorf("%s: %w", name, err)
		}
	}
}

// cleanName refuses names that lead out of the archive.
func cleanName(name string) (string, error) {
	bad := fmt.Errorf("it has an entry %q, which archives of svc never have", name)
	if len(name) > maxNameBytes || strings.ContainsAny(name, "\\\x00") || strings.HasPrefix(name, "/") {
		return "", bad
	}
	for part := range strings.SplitSeq(name, "/") {
		if part == ".." {
			return "", bad
		}
	}
	return path.Clean(name), nil
}

// unpacked is the content of a dump: small parts in memory, possibly large ones in files of the work directory.
type unpacked struct {
	small     map[string][]byte   // by name
	documents map[string]spooled  // by folder of the index
	payloads  map[string]*payload // by name without directory and suffix
	lines     map[string]string   // files with lines, by name
	settings  map[string]string   // files with settings of indexes that are not in small, by name
	strange   []string            // names that mean nothing here
	smallSum  int
}

// settingsOf returns the settings of an index, by the name of their entry.
func (u *unpacked) settingsOf(fsys vfs.FS, name string) ([]byte, error) {
	if file := u.settings[name]; file != "" {
		return vfs.ReadFile(fsys, file)
	}
	return u.small[name], nil
}

// spooled is a file of documents, one a line, in the form of document.Convert.
type spooled struct {
	file  string
	count int
}

// payload has the documents that a task of the dump adds. The code that stores the task stores it.
type payload struct {
	sink  payloadSink
	count int
}

// payloadSink is a task.Payload, or a fake.
type payloadSink interface {
	io.Writer
	Discard()
}

// unpacker reads the entries of a dump as they stream in, in any order.
type unpacker struct {
	fs         vfs.FS
	work       string
	newPayload func() (payloadSink, error)
	out        unpacked
	files      int // made so far
	settings   int // bytes of settings in memory
}

func newUnpacker(fsys vfs.FS, work string, newPayload func() (payloadSink, error)) *unpacker {
	return &unpacker{fs: fsys, work: work, newPayload: newPayload, out: unpacked{
		small: map[string][]byte{}, documents: map[string]spooled{}, payloads: map[string]*payload{}, lines: map[string]string{}, settings: map[string]string{},
	}}
}

// entry takes one entry, of any version of the format: their names do not collide.
func (u *unpacker) entry(name string, size int64, r io.Reader) error {
	dir, base := path.Split(name)
	dir = strings.TrimSuffix(dir, "/")
	top, folder, _ := strings.Cut(dir, "/")
	switch {
	case name == tasksName, name == batchesName, name == v5TasksName:
		return u.spoolLines(name, r)
	case dir == payloadsDir && strings.HasSuffix(base, ".jsonl"):
		return u.payload(strings.TrimSuffix(base, ".jsonl"), r)
	case dir == v5PayloadsDir:
		return u.payload(base, r)
	case top == indexesDir && folder != "" && !strings.Contains(folder, "/") && base == documentsName:
		return u.documents(folder, r)
	case top == indexesDir && folder != "" && !strings.Contains(folder, "/") && base == settingsName:
		return u.settingsEntry(name, size, r)
	case top == indexesDir && folder != "" && !strings.Contains(folder, "/") && (base == metadataName || base == v5MetaName),
		name == metadataName, name == keysName, name == featuresName, name == webhooksName, name == networkName, name == aliasesName, isChat(name), keeps(name),
		name == v5KeysName, name == v5IndexesName:
		return u.smallEntry(name, size, r)
	case name == instanceName, name == v5InstanceName:
		return nil // only for analytics, which svc does not have
	}
	u.out.strange = append(u.out.strange, name)
	return nil
}

// smallEntry reads an entry into memory, within the bounds above.
func (u *unpacker) smallEntry(name string, size int64, r io.Reader) error {
	b, err := readSmall(size, r)
	if err != nil {
		return err
	}
	if u.out.smallSum += len(b); u.out.smallSum > maxSmallSum {
		return errors.New("it is too large")
	}
	u.out.small[name] = b
	return nil
}

// settingsEntry reads the settings of an index. All indexes together may have more than fits into memory.
func (u *unpacker) settingsEntry(name string, size int64, r io.Reader) error {
	b, err := readSmall(size, r)
	if err != nil {
		return err
	}
	if u.settings+len(b) <= settingsMemory {
		u.settings += len(b)
		u.out.small[name] = b
		return nil
	}
	f, w, err := u.create()
	if err != nil {
		return err
	}
	_, err = w.Write(b)
	u.out.settings[name] = f.Name()
	return errors.Join(err, w.Flush(), f.Close())
}

// readSmall reads an entry that should have size bytes.
func readSmall(size int64, r io.Reader) ([]byte, error) {
	if size > maxSmall {
		return nil, fmt.Errorf("it has %d bytes, but %d are the most", size, maxSmall)
	}
	b, err := io.ReadAll(io.LimitReader(r, maxSmall+1))
	if err == nil && len(b) > maxSmall {
		err = errors.New("it is too large")
	}
	return b, err
}

func (u *unpacker) create() (vfs.File, *bufio.Writer, error) {
	u.files++
	f, err := u.fs.Create(path.Join(u.work, strconv.Itoa(u.files)))
	if err != nil {
		return nil, nil, err
	}
	return f, bufio.NewWriterSize(f, fileBuffer), nil
}

func (u *unpacker) spoolLines(name string, r io.Reader) error {
	f, w, err := u.create()
	if err != nil {
		return err
	}
	_, err = io.Copy(w, r)
	u.out.lines[name] = f.Name()
	return errors.Join(err, w.Flush(), f.Close())
}

// documents writes the documents of an index to a file in the form of document.Convert, and counts them.
func (u *unpacker) documents(folder string, r io.Reader) error {
	f, w, err := u.create()
	if err != nil {
		return err
	}
	n, err := convert(spooling{w, u}, r)
	u.out.documents[folder] = spooled{f.Name(), n}
	return errors.Join(err, w.Flush(), f.Close())
}

// spooling is a file of documents that keeps a large one out of memory.
type spooling struct {
	io.Writer
	u *unpacker
}

// Spool implements document.Spooler.
func (s spooling) Spool() (*mapped.Spool, error) {
	s.u.files++
	return mapped.NewSpool(s.u.fs, path.Join(s.u.work, strconv.Itoa(s.u.files)))
}

// payload writes the documents of an enqueued task to a payload of the new queue.
func (u *unpacker) payload(name string, r io.Reader) error {
	p, err := u.newPayload()
	if err != nil {
		return err
	}
	n, err := convert(p, r)
	u.out.payloads[name] = &payload{p, n}
	return err
}

// convert writes documents, one a line, in the form that an index takes, and counts them.
func convert(w io.Writer, r io.Reader) (int, error) {
	b := bufio.NewReaderSize(r, fileBuffer)
	if _, err := b.Peek(1); err == io.EOF {
		return 0, nil // no documents are no error here
	}
	return document.Convert(w, b, document.NDJSON, 0)
}

// lineLimit fails on a line that is longer than any task, before it is in memory.
type lineLimit struct {
	r    io.Reader
	line int64
}

// Read refuses a line of more than maxLineBytes.
func (l *lineLimit) Read(b []byte) (int, error) {
	n, err := l.r.Read(b)
	if i := bytes.LastIndexByte(b[:n], '\n'); i >= 0 {
		l.line = int64(n - i - 1)
	} else if l.line += int64(n); l.line > maxLineBytes {
		return n, fmt.Errorf("a line has more than %d bytes", maxLineBytes)
	}
	return n, err
}

// eachLine calls f for each line of a file that is not empty. line is valid during the call.
func eachLine(fsys vfs.FS, name string, f func(line []byte) error) error {
	file, err := fsys.Open(name)
	if err != nil {
		return err
	}
	defer file.Close()
	s := bufio.NewScanner(&lineLimit{r: file})
	s.Buffer(make([]byte, 64<<10), maxLineBytes)
	for n := 1; s.Scan(); n++ {
		line := bytes.TrimSpace(s.Bytes())
		if len(line) == 0 {
			continue
		}
		if err := f(line); err != nil {
			return fmt.Errorf("line %d: %w", n, err)
		}
	}
	return s.Err()
}
