package dump

import (
	"bufio"
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"os"
	"path"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/minio/minio-go/v7"
	"github.com/minio/minio-go/v7/pkg/credentials"
	"golang.org/x/sync/errgroup"

	"svc/internal/apierr"
	"svc/internal/stall"
	"svc/internal/vfs"
)

// Bucket is where snapshots go in a store that speaks S3. Either AccessKey and SecretKey are set, or RoleARN and TokenFile.
type Bucket struct {
	URL    string // of the store
	Region string
	Name   string
	Prefix string // of objects; a slash stands between it and the name

	AccessKey, SecretKey string
	RoleARN, TokenFile   string        // a role that the token in the file may take on at the token service
	TokenDuration        time.Duration // of a session of the role

	InFlight         int   // parts being sent at once
	CompressionLevel int   // of gzip, 0 to 9
	PartSize         int64 // bytes

	tokenService string        // of tests; "": that of the region
	retries      int           // of tests; 0: the client's
	stall        time.Duration // of tests; 0: stallTime
}

// stallTime is how long no data of a request or an answer may move. The task queue waits for a snapshot. A store may need a while for the
// checksums of a part.
const stallTime = 5 * time.Minute

// maxParts is how many parts S3 puts together.
const maxParts = 10_000

// Check validates the values, as far as possible without contacting the store.
func (b *Bucket) Check() error {
	u, err := url.Parse(b.URL)
	switch {
	case err != nil || (u.Scheme != "http" && u.Scheme != "https") || u.Host == "" || strings.Trim(u.Path, "/") != "":
		return fmt.Errorf("%q is not the URL of a store: use one such as https://s3.eu-west-3.amazonaws.com", b.URL)
	case b.InFlight < 1:
		return errors.New("at least one part must be in flight")
	case b.CompressionLevel < 0 || b.CompressionLevel > 9:
		return errors.New("the level of compression must be from 0 to 9")
	case b.PartSize < 10<<20 || b.PartSize > 5<<30:
		return errors.New("the size of a part must be from 10 MiB to 5 GiB")
	}
	return nil
}

// object names the object of a file.
func (b *Bucket) object(name string) string {
	return path.Join(strings.TrimPrefix(b.Prefix, "/"), name)
}

// Address returns the s3:// URL of an object.
func (b *Bucket) Address(name string) string { return "s3://" + b.Name + "/" + b.object(name) }

// client makes a client of the store, with fixed keys or with those of a role that a token may assume.
func (b *Bucket) client(transport http.RoundTripper) (*minio.Core, error) {
	u, err := url.Parse(b.URL)
	if err != nil {
		return nil, err
	}
	creds := credentials.NewStaticV4(b.AccessKey, b.SecretKey, "")
	if b.RoleARN != "" {
		service := b.tokenService
		if service == "" {
			service = "https://sts." + b.Region + ".amazonaws.com"
		}
		creds, err = credentials.NewSTSWebIdentity(service, b.token, func(s *credentials.STSWebIdentity) {
			s.RoleARN = b.RoleARN
			s.Client = &http.Client{Transport: transport, Timeout: time.Minute}
		})
		if err != nil {
			return nil, err
		}
	}
	return minio.NewCore(u.Host, &minio.Options{
		Creds: creds, Secure: u.Scheme == "https", Region: b.Region, BucketLookup: minio.BucketLookupPath,
		Transport: &stall.Transport{Next: transport, Limit: cmp.Or(b.stall, stallTime)}, MaxRetries: b.retries,
	})
}

// token reads the token again for each session, because the platform replaces the file.
func (b *Bucket) token() (*credentials.WebIdentityToken, error) {
	text, err := os.ReadFile(b.TokenFile)
	if err != nil {
		return nil, fmt.Errorf("cannot read the token of the role: %w", err)
	}
	return &credentials.WebIdentityToken{Token: strings.TrimSpace(string(text)), Expiry: int(b.TokenDuration.Seconds())}, nil
}

// upload creates an object from what write writes. Parts wait in files of the work directory while they are sent, so memory and disk
// hold only the parts in flight and the next one.
func (b *Bucket) upload(ctx context.Context, m *Maker, object string, write func(io.Writer) error) (err error) {
	transport := m.o.Allowed.Transport()
	defer transport.CloseIdleConnections()
	client, err := b.client(transport)
	if err != nil {
		return apierr.New("invalid_s3_snapshot_parameters", "The S3 store of snapshots cannot be used: %v. Check the options that begin with --s3.", err)
	}
	id, err := client.NewMultipartUpload(ctx, b.Name, object, minio.PutObjectOptions{ContentType: "application/gzip"})
	if err != nil {
		return storeError(ctx, err)
	}
	group, inner := errgroup.WithContext(ctx)
	group.SetLimit(b.InFlight)
	p := &parts{ctx: inner, b: b, fs: m.o.FS, work: m.o.Place.Work, client: client, object: object, upload: id, group: group, etags: map[int]string{}}
	err = write(p)
	if err == nil {
		err = p.send()
	}
	p.discard()
	if e := group.Wait(); e != nil { // what went wrong first; write only saw that its context had ended
		err = e
	}
	if err == nil {
		_, err = client.CompleteMultipartUpload(ctx, b.Name, object, id, p.list(), minio.PutObjectOptions{})
		err = storeError(ctx, err)
	}
	if err != nil {
		// Otherwise the store keeps, and charges for, the parts that it has.
		end, cancel := context.WithTimeout(context.WithoutCancel(ctx), 10*time.Second)
		defer cancel()
		if e := client.AbortMultipartUpload(end, b.Name, object, id); e != nil {
			m.o.Logger.Warn("an upload could not be aborted: the store may keep parts of it", "object", object, "upload", id, "error", e)
		}
	}
	return err
}

// storeError gives an error of the store its code.
func storeError(ctx context.Context, err error) error {
	if err == nil {
		return nil
	}
	if ctx.Err() != nil {
		return context.Cause(ctx)
	}
	status := minio.ToErrorResponse(err).StatusCode
	switch {
	case status >= 400 && status < 500:
		return apierr.New("invalid_s3_snapshot_request", "The S3 store of snapshots refused a request: %v. Check the options that begin with --s3.", err)
	case minio.ToErrorResponse(err).Code == "InvalidBucketName":
		return apierr.New("invalid_s3_snapshot_parameters", "The S3 store of snapshots cannot be used: %v. Check the options that begin with --s3.", err)
	}
	return apierr.New("s3_snapshot_server_error", "The S3 store of snapshots failed: %v. Request the snapshot again when the store works.", err)
}

// parts splits what is written to it into parts and sends them.
type parts struct {
	ctx    context.Context
	b      *Bucket
	fs     vfs.FS
	work   string
	client *minio.Core
	object string
	upload string
	group  *errgroup.Group

	file vfs.File // the part being written; nil: none
	w    *bufio.Writer
	size int64

	count int // parts whose sending has started
	mu    sync.Mutex
	etags map[int]string // of those that were sent, by number
}

// Write gathers a part in a file, and sends it when it is full: a part needs its length and checksum first.
func (p *parts) Write(b []byte) (n int, err error) {
	for len(b) > 0 {
		if p.ctx.Err() != nil {
			return n, context.Cause(p.ctx)
		}
		if p.file == nil {
			name := path.Join(p.work, "part-"+strconv.Itoa(p.count+1))
			if p.file, err = p.fs.Create(name); err != nil {
				return n, err
			}
			p.w, p.size = bufio.NewWriterSize(p.file, fileBuffer), 0
		}
		piece := b[:min(int64(len(b)), p.b.PartSize-p.size)]
		written, err := p.w.Write(piece)
		n += written
		p.size += int64(written)
		if err != nil {
			return n, err
		}
		b = b[len(piece):]
		if p.size == p.b.PartSize {
			if err := p.send(); err != nil {
				return n, err
			}
		}
	}
	return n, nil
}

// send sends the completed part, if there is one, in the background.
func (p *parts) send() error {
	if p.file == nil {
		return nil
	}
	if p.count == maxParts {
		return apierr.New("invalid_s3_snapshot_parameters", "The snapshot has more than %d parts of %d bytes. Raise --experimental-s3-multipart-part-size.", maxParts, p.b.PartSize)
	}
	name, size := p.file.Name(), p.size
	err := errors.Join(p.w.Flush(), p.file.Close())
	p.file = nil
	if err != nil {
		return err
	}
	p.count++
	number := p.count
	p.group.Go(func() error {
		etag, err := p.put(name, number, size)
		if err != nil {
			return err
		}
		p.mu.Lock()
		p.etags[number] = etag
		p.mu.Unlock()
		return p.fs.Remove(name)
	})
	return nil
}

// put uploads a part. The library repeats it on errors that may pass.
func (p *parts) put(name string, number int, size int64) (etag string, err error) {
	f, err := p.fs.Open(name)
	if err != nil {
		return "", err
	}
	defer f.Close()
	part, err := p.client.PutObjectPart(p.ctx, p.b.Name, p.object, p.upload, number, io.NewSectionReader(f, 0, size), size, minio.PutObjectPartOptions{})
	if err != nil {
		return "", storeError(p.ctx, err)
	}
	return part.ETag, nil
}

// list names the parts in order, when all are sent.
func (p *parts) list() []minio.CompletePart {
	list := make([]minio.CompletePart, p.count)
	for i := range list {
		list[i] = minio.CompletePart{PartNumber: i + 1, ETag: p.etags[i+1]}
	}
	return list
}

// discard closes a part that is not sent. The work directory is emptied by its owner.
func (p *parts) discard() {
	if p.file != nil {
		p.file.Close()
	}
}
