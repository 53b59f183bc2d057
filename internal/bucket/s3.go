package bucket

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"net/http"
	"net/url"
	"path"
	"strings"
	"time"

	"github.com/minio/minio-go/v7"
	"github.com/minio/minio-go/v7/pkg/credentials"

	"svc/internal/stall"
)

// s3 is a prefix in a bucket of a store that speaks S3.
type s3 struct {
	client         *minio.Core
	bucket, prefix string
}

const (
	// Objects larger than partBytes are sent in parts, at most maxParts of them. Each part in flight takes as much memory.
	partBytes = 8 << 20
	maxParts  = 10_000

	// tries of a request, with growing pauses, before it fails.
	tries = 3

	// stallTime is how long no data of a request or an answer may move.
	stallTime = time.Minute
)

func openS3(o *Options, bucket, prefix string) (Store, error) {
	u, err := url.Parse(o.Endpoint)
	switch {
	case strings.Contains(o.Endpoint, "@"): // it may have a password
		return nil, errors.New("the endpoint of a store must not have a user: use a URL such as https://s3.eu-west-3.amazonaws.com, and an access key and a secret key")
	case o.Endpoint == "":
		return nil, errors.New("the store has no endpoint: set it to a URL such as https://s3.eu-west-3.amazonaws.com")
	case err != nil || (u.Scheme != "http" && u.Scheme != "https") || u.Host == "" || strings.Trim(u.Path, "/") != "":
		return nil, fmt.Errorf("%q is not the endpoint of a store: use a URL such as https://s3.eu-west-3.amazonaws.com", o.Endpoint)
	case o.AccessKey == "" || o.SecretKey == "":
		return nil, errors.New("a bucket needs an access key and a secret key")
	}
	transport := o.Transport
	if transport == nil {
		var err error
		if transport, err = minio.DefaultTransport(u.Scheme == "https"); err != nil {
			return nil, fmt.Errorf("cannot use the store at %s: %w", o.Endpoint, err)
		}
	}
	client, err := minio.NewCore(u.Host, &minio.Options{
		Creds: credentials.NewStaticV4(o.AccessKey, o.SecretKey, ""), Secure: u.Scheme == "https", Region: o.Region,
		BucketLookup: minio.BucketLookupPath, Transport: &stall.Transport{Next: transport, Limit: stallTime}, MaxRetries: tries,
	})
	if err != nil {
		return nil, fmt.Errorf("cannot use the store at %s: %w", o.Endpoint, err)
	}
	return &s3{client, bucket, prefix}, nil
}

func (s *s3) String() string { return "s3://" + path.Join(s.bucket, s.prefix) }

func (s *s3) object(name string) string { return path.Join(s.prefix, name) }

// failed says what went wrong with an object, in the terms of Store.
func (s *s3) failed(what, name string, err error) error {
	if err == nil {
		return nil
	}
	switch r := minio.ToErrorResponse(err); {
	case r.StatusCode == http.StatusNotFound && r.Code == minio.NoSuchKey:
		err = fs.ErrNotExist
	case r.StatusCode == http.StatusPreconditionFailed:
		err = fs.ErrExist
	}
	return fmt.Errorf("cannot %s %s/%s: %w", what, s, name, err)
}

func (s *s3) Put(ctx context.Context, name string, size int64, content io.Reader) error {
	part := max(partBytes, (size/maxParts>>20+1)<<20)
	_, err := s.client.Client.PutObject(ctx, s.bucket, s.object(name), content, size, minio.PutObjectOptions{PartSize: uint64(part), SendContentMd5: true})
	return s.failed("put", name, err)
}

func (s *s3) Create(ctx context.Context, name string, content []byte) error {
	o := minio.PutObjectOptions{DisableMultipart: true, SendContentMd5: true}
	o.SetMatchETagExcept("*")
	_, err := s.client.Client.PutObject(ctx, s.bucket, s.object(name), bytes.NewReader(content), int64(len(content)), o)
	return s.failed("create", name, err)
}

func (s *s3) Open(ctx context.Context, name string, from int64) (io.ReadCloser, error) {
	var o minio.GetObjectOptions
	if from > 0 {
		if err := o.SetRange(from, 0); err != nil {
			return nil, s.failed("read", name, err)
		}
	}
	in, _, _, err := s.client.GetObject(ctx, s.bucket, s.object(name), o)
	if err != nil {
		return nil, s.failed("read", name, err)
	}
	return in, nil
}

func (s *s3) List(ctx context.Context, prefix, after string, each func(Object) error) error {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel() // ends the listing where each fails
	root := s.object(prefix)
	if root != "" {
		root += "/"
	}
	from := ""
	if after != "" {
		from = s.object(after)
	}
	for o := range s.client.Client.ListObjects(ctx, s.bucket, minio.ListObjectsOptions{Prefix: root, StartAfter: from, Recursive: true}) {
		if o.Err != nil {
			return s.failed("list", prefix, o.Err)
		}
		name := o.Key
		if s.prefix != "" {
			name = strings.TrimPrefix(o.Key, s.prefix+"/")
		}
		if err := each(Object{name, o.Size, o.LastModified}); err != nil {
			return err
		}
	}
	return nil
}

func (s *s3) Remove(ctx context.Context, name string) error {
	err := s.failed("remove", name, s.client.RemoveObject(ctx, s.bucket, s.object(name), minio.RemoveObjectOptions{}))
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	return err
}

func (s *s3) Sweep(ctx context.Context, prefix string, before time.Time) error {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel() // ends the listing after an error
	for u := range s.client.Client.ListIncompleteUploads(ctx, s.bucket, s.object(prefix)+"/", true) {
		if u.Err != nil {
			if code := minio.ToErrorResponse(u.Err).StatusCode; code == http.StatusForbidden || code == http.StatusNotImplemented || code == http.StatusMethodNotAllowed {
				return nil
			}
			return s.failed("list uploads of", prefix, u.Err)
		}
		if !u.Initiated.Before(before) {
			continue
		}
		err := s.client.AbortMultipartUpload(ctx, s.bucket, u.Key, u.UploadID)
		if err != nil && minio.ToErrorResponse(err).StatusCode != http.StatusNotFound {
			return s.failed("end an upload of", u.Key, err)
		}
	}
	return nil
}
