package publish

import (
	"bytes"
	"context"
	"crypto/hmac"
	"crypto/pbkdf2"
	"crypto/rand"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"strings"
	"time"

	"github.com/minio/sio"
	"github.com/zeebo/xxh3"

	"svc/internal/bucket"
	"svc/internal/group"
)

// Names of objects in an archive:
//
//	svc.json                              what the archive is: info
//	states/TTTTTTTTRRRRRRRR/I-W-A         an image of the directory: group.Image
//	log/TTTTTTTTRRRRRRRR/F-L-A            entries of the log: group.Batch
//	runs/TTTTTTTTRRRRRRRR                 the publisher that claimed the run: others stop
//	runs/TTTTTTTTRRRRRRRR-E               as above, of the leader of a group
//	files/SS/SUM-SIZE                     a file that does not change
//
// T and R are the term and the run of the log. I and W are Run.Index and Whole of the image, F and L the first and the last index of
// the entries. A is the time when the image was started, or when the last entry was appended, in nanoseconds of the Unix epoch. E is
// the term of elections in which the leader leads: all leaders of a group publish the same log, and the last one continues. SUM is
// the XXH3-128 of the file, SS its first two digits, SIZE its bytes. All are hexadecimal and padded to the length of the largest
// number, except SIZE, which is not padded.
//
// With a master key all objects except svc.json are sealed: DARE 2.0 with AES-256-GCM, each with a key of its own. This key is the
// HMAC-SHA256 of the object's name under a key that PBKDF2 derives from the master key.
const (
	infoName = "svc.json"

	formatVersion = 1
	maxInfo       = 64 << 10
	maxObject     = 1<<30 + 1<<20 // bytes of an image or of entries
)

// keyRounds is the number of iterations of PBKDF2. Tests lower it.
var keyRounds = 200_000

// info is what svc.json says.
type info struct {
	Version   int    `json:"version"`   // formatVersion
	Directory string `json:"directory"` // whose history it is; see group.Feed.Directory
	Salt      []byte `json:"salt,omitempty"`
	Check     []byte `json:"check,omitempty"` // tells a wrong master key; both are missing where nothing is sealed
}

// Archive is the history of a data directory in a bucket.
type Archive struct {
	store bucket.Store
	info  info
	key   []byte // nil: nothing is sealed
	led   bool   // leaders of a group publish to it, one after the other
}

// fatalError is an error that trying again does not help against.
type fatalError struct{ error }

func (e *fatalError) Unwrap() error { return e.error }

func fatal(message string, args ...any) error { return &fatalError{fmt.Errorf(message, args...)} }

// final reports whether trying again does not help against an error.
func final(err error) bool {
	e := new(fatalError)
	return errors.As(err, &e)
}

// Open opens an archive to read it.
func Open(ctx context.Context, store bucket.Store, masterKey string) (*Archive, error) {
	a := &Archive{store: store}
	if err := a.readInfo(ctx); err != nil {
		if errors.Is(err, fs.ErrNotExist) {
			return nil, fmt.Errorf("%s has no publication of svc: %w", store, err)
		}
		return nil, err
	}
	return a, a.unlock(masterKey)
}

// begin opens the archive of a directory for writing, and creates it if there is none.
func begin(ctx context.Context, store bucket.Store, directory, masterKey string) (*Archive, error) {
	a := &Archive{store: store}
	err := a.readInfo(ctx)
	if errors.Is(err, fs.ErrNotExist) {
		if err = a.create(ctx, directory, masterKey); errors.Is(err, fs.ErrExist) { // by another svc, or by a try before
			err = a.readInfo(ctx)
		}
	}
	if err != nil {
		return nil, err
	}
	if a.info.Directory != directory {
		return nil, fatal("%s has the backup of another data directory. Choose another prefix with --publish", store)
	}
	return a, a.unlock(masterKey)
}

// create writes svc.json, with a new salt if there is a master key. If another svc has written it meanwhile, the error is
// fs.ErrExist.
func (a *Archive) create(ctx context.Context, directory, masterKey string) error {
	a.info = info{Version: formatVersion, Directory: directory}
	if masterKey != "" {
		a.info.Salt = make([]byte, 32)
		rand.Read(a.info.Salt)
		key, err := deriveKey(masterKey, a.info.Salt)
		if err != nil {
			return err
		}
		a.info.Check = keyFor(key, infoName)
	}
	b, err := json.Marshal(a.info)
	if err != nil {
		return err
	}
	return a.store.Create(ctx, infoName, b)
}

// readInfo reads svc.json. A missing one is fs.ErrNotExist; one of a later format is fatal.
func (a *Archive) readInfo(ctx context.Context) error {
	in, err := a.store.Open(ctx, infoName, 0)
	if err != nil {
		return err
	}
	defer in.Close()
	b, err := io.ReadAll(io.LimitReader(in, maxInfo))
	if err != nil {
		return fmt.Errorf("cannot read %s: %w", infoName, err)
	}
	a.info = info{}
	if err := json.Unmarshal(b, &a.info); err != nil {
		return fmt.Errorf("%s of %s is damaged: %w", infoName, a.store, err)
	}
	if a.info.Version > formatVersion {
		return fatal("a later svc published to %s, in version %d of the format. Update this svc first", a.store, a.info.Version)
	}
	return nil
}

// unlock derives the key.
func (a *Archive) unlock(masterKey string) error {
	switch {
	case len(a.info.Salt) == 0:
		return nil // it was started without one
	case masterKey == "":
		return fatal("%s is encrypted with a master key. Set it with --master-key", a.store)
	}
	key, err := deriveKey(masterKey, a.info.Salt)
	if err != nil {
		return err
	}
	if !hmac.Equal(keyFor(key, infoName), a.info.Check) {
		return fatal("%s is encrypted with another master key", a.store)
	}
	a.key = key
	return nil
}

// deriveKey derives the key of an archive from the master key. It is slow on purpose: anyone with a copy of the
// bucket may try master keys.
func deriveKey(masterKey string, salt []byte) ([]byte, error) {
	key, err := pbkdf2.Key(sha256.New, masterKey, salt, keyRounds, 32)
	if err != nil {
		return nil, fmt.Errorf("cannot derive the key of the publication: %w", err)
	}
	return key, nil
}

// keyFor returns the key of an object.
func keyFor(key []byte, name string) []byte {
	m := hmac.New(sha256.New, key)
	_, _ = io.WriteString(m, name)
	return m.Sum(nil)
}

func (a *Archive) config(name string) sio.Config {
	return sio.Config{MinVersion: sio.Version20, CipherSuites: []byte{sio.AES_256_GCM}, Key: keyFor(a.key, name)}
}

// seal returns the bytes of an object with that content, and their number.
func (a *Archive) seal(name string, content io.Reader, size int64) (io.Reader, int64, error) {
	if a.key == nil {
		return content, size, nil
	}
	r, err := sio.EncryptReader(content, a.config(name))
	if err != nil {
		return nil, 0, fmt.Errorf("cannot seal %s: %w", name, err)
	}
	sealed, err := sio.EncryptedSize(uint64(size))
	if err != nil {
		return nil, 0, fmt.Errorf("cannot seal %s: %w", name, err)
	}
	return r, int64(sealed), nil
}

// resumed reads an object. Where the store stops sending, it asks for the rest.
type resumed struct {
	ctx  context.Context
	a    *Archive
	name string
	in   io.ReadCloser
	pos  int64
	idle int // failures since the last byte
}

const (
	resumes    = 3
	resumeTime = 20 * time.Millisecond // before the first one; the others wait longer
)

// raw opens an object as the store has it.
func (a *Archive) raw(ctx context.Context, name string) (io.ReadCloser, error) {
	in, err := a.store.Open(ctx, name, 0)
	if err != nil {
		return nil, err
	}
	return &resumed{ctx: ctx, a: a, name: name, in: in}, nil
}

func (r *resumed) Read(p []byte) (int, error) {
	for {
		var err error
		if r.in == nil {
			r.in, err = r.a.store.Open(r.ctx, r.name, r.pos)
		}
		n := 0
		if err == nil {
			if n, err = r.in.Read(p); n > 0 || err == nil || err == io.EOF {
				r.pos += int64(n)
				r.idle = 0
				if err != io.EOF {
					err = nil // it comes again
				}
				return n, err
			}
			_ = r.in.Close() // it has failed
			r.in = nil
		}
		if r.idle++; r.idle > resumes || errors.Is(err, fs.ErrNotExist) {
			return 0, fmt.Errorf("cannot read %s: %w", r.name, err)
		}
		if err := sleep(r.ctx, resumeTime<<r.idle); err != nil {
			return 0, err
		}
	}
}

func (r *resumed) Close() error {
	if r.in == nil {
		return nil
	}
	return r.in.Close()
}

// open returns the content of an object.
func (a *Archive) open(ctx context.Context, name string) (io.ReadCloser, error) {
	in, err := a.raw(ctx, name)
	if err != nil || a.key == nil {
		return in, err
	}
	r, err := sio.DecryptReader(in, a.config(name))
	if err != nil {
		return nil, errors.Join(fmt.Errorf("cannot read %s: %w", name, err), in.Close())
	}
	return struct {
		io.Reader
		io.Closer
	}{unsealed{r}, in}, nil
}

// put makes an object of content. It returns the bytes that were sent.
func (a *Archive) put(ctx context.Context, name string, content io.Reader, size int64) (int64, error) {
	r, sealed, err := a.seal(name, content, size)
	if err != nil {
		return 0, err
	}
	return sealed, a.store.Put(ctx, name, sealed, r)
}

// createOnce writes a new object. If an earlier try has written it, it has the same content.
func (a *Archive) createOnce(ctx context.Context, name string, content []byte) (int64, error) {
	r, _, err := a.seal(name, bytes.NewReader(content), int64(len(content)))
	if err != nil {
		return 0, err
	}
	b, err := io.ReadAll(r)
	if err != nil {
		return 0, fmt.Errorf("cannot seal %s: %w", name, err)
	}
	err = a.store.Create(ctx, name, b)
	if !errors.Is(err, fs.ErrExist) {
		return int64(len(b)), err
	}
	there, err := a.get(ctx, name)
	if err == nil && !bytes.Equal(there, content) && !(a.led && isLog(name, there)) {
		err = a.second()
	}
	return int64(len(b)), err
}

// isLog reports whether an object has the entries that its name says. Leaders that publish the same entries of their group may combine them
// in other ways.
func isLog(name string, content []byte) bool {
	first, last, _, ok := parseRef(strings.TrimPrefix(name, logPrefix))
	b, err := group.DecodeBatch(content)
	return ok && err == nil && b.Run == first && first.Index+uint64(len(b.Entries))-1 == last
}

// second is the error of a publisher that finds another one at its prefix.
func (a *Archive) second() error {
	return fatal("another svc publishes a copy of this data directory to %s. Only one may run", a.store)
}

// get reads an image, or entries.
func (a *Archive) get(ctx context.Context, name string) ([]byte, error) {
	in, err := a.open(ctx, name)
	if err != nil {
		return nil, err
	}
	defer in.Close()
	b, err := io.ReadAll(io.LimitReader(in, maxObject+1))
	switch {
	case err != nil:
		return nil, fmt.Errorf("cannot read %s: %w", name, err)
	case len(b) > maxObject:
		return nil, fmt.Errorf("%s has more than %d bytes", name, maxObject)
	}
	return b, nil
}

// fileName is the name of the object with a file.
func fileName(f group.File) string {
	sum := f.Sum.Bytes()
	text := hex.EncodeToString(sum[:])
	return fmt.Sprintf("files/%s/%s-%x", text[:2], text, f.Size)
}

// file reads a file. At its end it has the right size and checksum, or there is an error.
func (a *Archive) file(ctx context.Context, f group.File) (io.ReadCloser, error) {
	in, err := a.open(ctx, fileName(f))
	if err != nil {
		return nil, fmt.Errorf("cannot fetch %s: %w", f.Name, err)
	}
	return struct {
		io.Reader
		io.Closer
	}{newChecked(in, f), in}, nil
}

// errDamaged is the error of an object that differs from what was published.
var errDamaged = errors.New("the object is damaged")

// checked reads a file of known size and checksum. It returns the last byte only if both are right.
type checked struct {
	in   io.Reader
	file group.File
	sum  *xxh3.Hasher
	read int64
}

func newChecked(in io.Reader, f group.File) *checked {
	return &checked{in: in, file: f, sum: xxh3.New()}
}

func (c *checked) Read(p []byte) (int, error) {
	left := c.file.Size - c.read
	if left == 0 && c.read > 0 || len(p) == 0 {
		return 0, io.EOF
	}
	n, err := c.in.Read(p[:min(int64(len(p)), left)])
	_, _ = c.sum.Write(p[:n])
	c.read += int64(n)
	switch {
	case c.read == c.file.Size:
		if c.sum.Sum128() != c.file.Sum {
			return 0, fmt.Errorf("%s is corrupted: its checksum differs: %w", c.file.Name, errDamaged)
		}
		return n, io.EOF
	case err == io.EOF:
		return n, fmt.Errorf("%s has %d bytes, and should have %d: %w", c.file.Name, c.read, c.file.Size, errDamaged)
	}
	return n, err
}
