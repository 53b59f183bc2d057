package dump

import (
	"bytes"
	"context"
	"crypto/md5"
	"encoding/hex"
	"encoding/xml"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"svc/internal/apierr"
	"svc/internal/bucket/s3test"
	"svc/internal/outbound"
	"svc/internal/task"
	"svc/internal/vfs"
)

// store implements the part of S3 that a multipart upload needs, and the token service.
type store struct {
	*httptest.Server
	mu      sync.Mutex
	parts   map[int][]byte
	objects map[string][]byte
	aborted int
	fail    func(r *http.Request) int // status to answer, or 0
	signers map[string]bool           // access keys that signed requests
	session string                    // session of the token service
}

func newStore(t *testing.T) *store {
	s := &store{parts: map[int][]byte{}, objects: map[string][]byte{}, signers: map[string]bool{}}
	s.Server = httptest.NewServer(http.HandlerFunc(s.serve))
	t.Cleanup(s.Close)
	return s
}

func (s *store) serve(w http.ResponseWriter, r *http.Request) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if r.URL.Path == "/sts" {
		must := r.ParseForm()
		if must != nil || r.Form.Get("WebIdentityToken") != "the token" || r.Form.Get("RoleArn") != "arn:role" {
			w.WriteHeader(http.StatusForbidden)
			return
		}
		s.session = r.Form.Get("DurationSeconds")
		fmt.Fprint(w, `<AssumeRoleWithWebIdentityResponse xmlns="https://sts.amazonaws.com/doc/2011-06-15/"><AssumeRoleWithWebIdentityResult><Credentials><AccessKeyId>role-key</AccessKeyId><SecretAccessKey>s</SecretAccessKey><SessionToken>t</SessionToken><Expiration>2099-01-01T00:00:00Z</Expiration></Credentials></AssumeRoleWithWebIdentityResult></AssumeRoleWithWebIdentityResponse>`)
		return
	}
	_, after, signed := strings.Cut(r.Header.Get("Authorization"), "AWS4-HMAC-SHA256 Credential=")
	if !signed {
		w.WriteHeader(http.StatusForbidden)
		return
	}
	key, _, _ := strings.Cut(after, "/")
	s.signers[key] = true
	body, err := s3test.Payload(r)
	if err != nil {
		w.WriteHeader(http.StatusBadRequest)
		return
	}
	if s.fail != nil {
		if status := s.fail(r); status != 0 {
			w.Header().Set("Content-Type", "application/xml")
			w.WriteHeader(status)
			fmt.Fprintf(w, `<Error><Code>Refused%d</Code><Message>as the test asked</Message></Error>`, status)
			return
		}
	}
	q := r.URL.Query()
	switch {
	case r.Method == http.MethodPost && q.Has("uploads"):
		fmt.Fprint(w, `<InitiateMultipartUploadResult><UploadId>up</UploadId></InitiateMultipartUploadResult>`)
	case r.Method == http.MethodPut && q.Get("uploadId") == "up":
		n, _ := strconv.Atoi(q.Get("partNumber"))
		s.parts[n] = body
		w.Header().Set("ETag", `"`+etag(body)+`"`)
	case r.Method == http.MethodPost && q.Get("uploadId") == "up":
		var list struct {
			Part []struct {
				PartNumber int
				ETag       string
			}
		}
		var whole []byte
		if err := xml.Unmarshal(body, &list); err != nil {
			w.WriteHeader(http.StatusBadRequest)
			return
		}
		for i, p := range list.Part {
			if p.PartNumber != i+1 || strings.Trim(p.ETag, `"`) != etag(s.parts[p.PartNumber]) {
				w.WriteHeader(http.StatusBadRequest)
				return
			}
			whole = append(whole, s.parts[p.PartNumber]...)
		}
		s.objects[r.URL.Path] = whole
		fmt.Fprint(w, `<CompleteMultipartUploadResult><Bucket>backups</Bucket><ETag>"x"</ETag></CompleteMultipartUploadResult>`)
	case r.Method == http.MethodDelete:
		s.aborted++
		w.WriteHeader(http.StatusNoContent)
	default:
		w.WriteHeader(http.StatusNotImplemented)
	}
}

func etag(b []byte) string {
	sum := md5.Sum(b)
	return hex.EncodeToString(sum[:])
}

func (s *store) bucket() *Bucket {
	return &Bucket{
		URL: s.URL, Region: "here-1", Name: "backups", Prefix: "svc/daily", AccessKey: "key", SecretKey: "secret",
		InFlight: 3, PartSize: 1 << 16, retries: 2,
	}
}

// maker returns a Maker that only uploads.
func maker(t *testing.T, allowed outbound.Policy) *Maker {
	dir := filepath.Join(t.TempDir(), "data")
	place := PlaceIn(dir)
	must(t, os.MkdirAll(place.Work, 0o777))
	return New(Options{FS: vfs.OS, Place: place, Allowed: allowed})
}

func TestUpload(t *testing.T) {
	s := newStore(t)
	content := bytes.Repeat([]byte("0123456789abcdef!"), 1<<14) // 4 parts and a bit
	failures := 1
	s.fail = func(r *http.Request) int {
		if r.URL.Query().Get("partNumber") == "2" && failures > 0 {
			failures--
			return http.StatusServiceUnavailable
		}
		return 0
	}
	m := maker(t, outbound.Any())
	b := s.bucket()
	err := b.upload(t.Context(), m, b.object("data.svc.snapshot"), func(w io.Writer) error {
		for piece := range slices.Chunk(content, 1000) {
			if _, err := w.Write(piece); err != nil {
				return err
			}
		}
		return nil
	})
	must(t, err)
	if !bytes.Equal(s.objects["/backups/svc/daily/data.svc.snapshot"], content) {
		t.Errorf("the store has %d objects, but not the uploaded content", len(s.objects))
	}
	if len(s.parts) != 5 || failures != 0 || s.aborted != 0 || !s.signers["key"] {
		t.Errorf("%d parts, %d failures left, %d aborted, signed by %v", len(s.parts), failures, s.aborted, s.signers)
	}
	if left, _ := os.ReadDir(m.o.Place.Work); len(left) > 0 {
		t.Errorf("parts stay: %v", left)
	}
}

func TestUploadWithRole(t *testing.T) {
	s := newStore(t)
	b := s.bucket()
	b.AccessKey, b.SecretKey = "", ""
	b.RoleARN, b.TokenFile, b.TokenDuration, b.tokenService = "arn:role", filepath.Join(t.TempDir(), "token"), 2*time.Hour, s.URL+"/sts"
	must(t, os.WriteFile(b.TokenFile, []byte("the token\n"), 0o600))
	must(t, b.upload(t.Context(), maker(t, outbound.Any()), "o", func(w io.Writer) error { _, err := w.Write([]byte("x")); return err }))
	if !s.signers["role-key"] || s.session != "7200" || string(s.objects["/backups/o"]) != "x" {
		t.Errorf("signed by %v, for %s s, objects %q", s.signers, s.session, s.objects)
	}
}

func TestUploadErrors(t *testing.T) {
	stopped := errors.New("stopped")
	for name, tt := range map[string]struct {
		fail    func(r *http.Request) int
		allowed outbound.Policy
		write   error
		code    apierr.Code
		aborted int
	}{
		"refused":      {fail: func(*http.Request) int { return http.StatusForbidden }, allowed: outbound.Any(), code: "invalid_s3_snapshot_request"},
		"refused part": {fail: func(r *http.Request) int { return map[string]int{"3": 400}[r.URL.Query().Get("partNumber")] }, allowed: outbound.Any(), code: "invalid_s3_snapshot_request", aborted: 1},
		"broken":       {fail: func(r *http.Request) int { return map[string]int{"PUT": 500}[r.Method] }, allowed: outbound.Any(), code: "s3_snapshot_server_error", aborted: 1},
		"not allowed":  {code: "s3_snapshot_server_error"},
		"write fails":  {allowed: outbound.Any(), write: stopped, aborted: 1},
	} {
		t.Run(name, func(t *testing.T) {
			s := newStore(t)
			s.fail = tt.fail
			b := s.bucket()
			err := b.upload(t.Context(), maker(t, tt.allowed), "o", func(w io.Writer) error {
				for range 40 {
					if _, err := w.Write(make([]byte, 1<<13)); err != nil {
						return err
					}
				}
				return tt.write
			})
			var e *apierr.Error
			switch {
			case err == nil:
				t.Fatal("no error")
			case tt.code != "" && (!errors.As(err, &e) || e.Code != tt.code):
				t.Errorf("error %v, want code %s", err, tt.code)
			case tt.write != nil && !errors.Is(err, tt.write):
				t.Errorf("error %v, want %v", err, tt.write)
			}
			if s.aborted != tt.aborted || len(s.objects) > 0 {
				t.Errorf("aborted %d times, want %d; objects %v", s.aborted, tt.aborted, len(s.objects))
			}
		})
	}
}

// TestUploadToAStalledStore uploads to a store that does not answer when it has a part. The upload must fail, because tasks wait for it.
func TestUploadToAStalledStore(t *testing.T) {
	s := newStore(t)
	s.fail = func(r *http.Request) int {
		if r.Method == http.MethodPut {
			<-r.Context().Done()
		}
		return 0
	}
	b := s.bucket()
	b.stall = 100 * time.Millisecond
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	err := b.upload(ctx, maker(t, outbound.Any()), "object", func(w io.Writer) error {
		_, err := w.Write(make([]byte, 1000))
		return err
	})
	if e := apierr.From(err); ctx.Err() != nil || err == nil || e.Code != "s3_snapshot_server_error" || !strings.Contains(e.Message, "stopped responding") {
		t.Errorf("error %v", err)
	}
}

func TestUploadCanceled(t *testing.T) {
	s := newStore(t)
	ctx, cancel := context.WithCancelCause(t.Context())
	stopped := errors.New("stopped")
	b := s.bucket()
	err := b.upload(ctx, maker(t, outbound.Any()), "o", func(w io.Writer) error {
		if _, err := w.Write(make([]byte, 3<<16)); err != nil {
			return err
		}
		cancel(stopped)
		_, err := w.Write([]byte("x"))
		return err
	})
	if !errors.Is(err, stopped) || s.aborted != 1 {
		t.Errorf("error %v, aborted %d times", err, s.aborted)
	}
}

func TestBucketCheck(t *testing.T) {
	good := Bucket{URL: "https://s3.here.test", InFlight: 10, PartSize: 375 << 20}
	if err := good.Check(); err != nil {
		t.Error(err)
	}
	for _, change := range []func(*Bucket){
		func(b *Bucket) { b.URL = "s3.here.test" },
		func(b *Bucket) { b.URL = "https://s3.here.test/path" },
		func(b *Bucket) { b.URL = "ftp://s3.here.test" },
		func(b *Bucket) { b.InFlight = 0 },
		func(b *Bucket) { b.CompressionLevel = 10 },
		func(b *Bucket) { b.PartSize = 1 << 20 },
		func(b *Bucket) { b.PartSize = 6 << 30 },
	} {
		bad := good
		change(&bad)
		if err := bad.Check(); err == nil {
			t.Errorf("%+v is accepted", bad)
		}
	}
}

// TestSnapshotToBucket writes a snapshot to a store and imports it.
func TestSnapshotToBucket(t *testing.T) {
	s := newStore(t)
	in := open(t, filepath.Join(t.TempDir(), "data"), func(o *Options, _ *task.Options) {
		o.Bucket = s.bucket()
	})
	docs := `{"id":1}` + "\n"
	in.run("x", add(docs), docs)
	in.run("", task.CreateSnapshot{}, "")
	file := filepath.Join(t.TempDir(), "down.snapshot")
	must(t, os.WriteFile(file, s.objects["/backups/svc/daily/data.snapshot"], 0o666))
	dir := filepath.Join(t.TempDir(), "data")
	must(t, importSnapshot(t, dir, file))
	back := open(t, dir, nil)
	if !slices.Equal(back.catalog.UIDs(), []string{"x"}) {
		t.Errorf("indexes %q", back.catalog.UIDs())
	}
	if _, err := os.Stat(in.o.SnapshotFile); err == nil {
		t.Error("a local snapshot exists as well")
	}
}
