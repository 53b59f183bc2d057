// Package s3test is a store for tests with the part of S3 that svc uses. It can fail in the same ways as real stores.
package s3test

import (
	"bufio"
	"bytes"
	"crypto/md5"
	"encoding/hex"
	"encoding/xml"
	"fmt"
	"io"
	"maps"
	"net/http"
	"net/http/httptest"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"
)

// Fault is what goes wrong with a request.
type Fault int

// The faults.
const (
	None    Fault = iota
	Refused       // nothing is done, and the answer is 500
	Lost          // it is done, and the answer is 500
	Torn          // the answer ends in the middle of its body
	Cut           // it is done, and the connection ends without an answer
	Stale         // lists are those of an earlier one; other requests are answered
)

// Keys that requests are signed with.
const (
	AccessKey = "access"
	SecretKey = "a secret of the tests"
)

// Server is a store. Its objects are named /bucket/name.
type Server struct {
	*httptest.Server
	// Fault, if not nil, decides what fails. It is called by one goroutine at a time.
	Fault func(r *http.Request) Fault
	// Replaces has the store ignore If-None-Match.
	Replaces bool

	mu      sync.Mutex
	objects map[string]object
	listed  map[string]object  // as of the last list that was not stale
	uploads map[string]*upload // that are not completed, by their ids
	started int                // number of uploads
}

type object struct {
	content  []byte
	modified time.Time
}

type upload struct {
	name  string
	start time.Time
	parts map[int][]byte
}

// New starts a server, which the caller closes.
func New() *Server {
	s := &Server{objects: map[string]object{}, uploads: map[string]*upload{}}
	s.Server = httptest.NewServer(http.HandlerFunc(s.serve))
	return s
}

// Objects returns the content of all objects.
func (s *Server) Objects() map[string][]byte {
	s.mu.Lock()
	defer s.mu.Unlock()
	all := map[string][]byte{}
	for name, o := range s.objects {
		all[name] = o.content
	}
	return all
}

// Uploads returns the names of the objects whose upload in parts has started and is not completed, sorted.
func (s *Server) Uploads() []string {
	s.mu.Lock()
	defer s.mu.Unlock()
	var names []string
	for _, u := range s.uploads {
		names = append(names, u.name)
	}
	slices.Sort(names)
	return names
}

func (s *Server) serve(w http.ResponseWriter, r *http.Request) {
	body, err := Payload(r)
	if err != nil {
		http.Error(w, err.Error(), http.StatusBadRequest)
		return
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if !strings.Contains(r.Header.Get("Authorization"), "Credential="+AccessKey+"/") {
		fail(w, http.StatusForbidden, "AccessDenied")
		return
	}
	fault := None
	if s.Fault != nil {
		fault = s.Fault(r)
	}
	answer := httptest.NewRecorder()
	if fault != Refused {
		s.do(answer, r, body, fault == Stale)
	}
	switch fault {
	case Cut:
		panic(http.ErrAbortHandler)
	case Refused, Lost:
		fail(w, http.StatusInternalServerError, "InternalError")
		return
	case Torn:
		if answer.Body.Len() > 1 {
			maps.Copy(w.Header(), answer.Header())
			w.Header().Set("Content-Length", strconv.Itoa(answer.Body.Len()))
			w.WriteHeader(answer.Code)
			_, _ = w.Write(answer.Body.Bytes()[:answer.Body.Len()/2])
			panic(http.ErrAbortHandler)
		}
	}
	maps.Copy(w.Header(), answer.Header())
	w.WriteHeader(answer.Code)
	_, _ = w.Write(answer.Body.Bytes())
}

func fail(w http.ResponseWriter, status int, code string) {
	w.Header().Set("Content-Type", "application/xml")
	w.WriteHeader(status)
	fmt.Fprintf(w, "<Error><Code>%s</Code><Message>as the test asked</Message></Error>", code)
}

// do does what a request asks for. mu is held.
func (s *Server) do(w http.ResponseWriter, r *http.Request, body []byte, stale bool) {
	q, name := r.URL.Query(), r.URL.Path
	o, there := s.objects[name]
	switch {
	case r.Method == http.MethodGet && q.Has("list-type"):
		if !stale {
			s.listed = maps.Clone(s.objects)
		}
		s.list(w, name, q.Get("prefix"), max(q.Get("continuation-token"), q.Get("start-after")))
	case r.Method == http.MethodGet && q.Has("location"):
		fmt.Fprint(w, `<LocationConstraint>here-1</LocationConstraint>`)
	case r.Method == http.MethodGet && q.Has("uploads"):
		s.listUploads(w, name, q.Get("prefix"), q.Get("upload-id-marker"))
	case r.Method == http.MethodPost && q.Has("uploads"):
		s.started++
		id := strconv.Itoa(s.started)
		s.uploads[id] = &upload{name, time.Now(), map[int][]byte{}}
		fmt.Fprintf(w, `<InitiateMultipartUploadResult><UploadId>%s</UploadId></InitiateMultipartUploadResult>`, id)
	case r.Method == http.MethodPut && q.Has("uploadId"):
		n, _ := strconv.Atoi(q.Get("partNumber"))
		u := s.uploads[q.Get("uploadId")]
		if u == nil {
			fail(w, http.StatusNotFound, "NoSuchUpload")
			return
		}
		u.parts[n] = body
		w.Header().Set("ETag", etag(body))
	case r.Method == http.MethodPost && q.Has("uploadId"):
		u := s.uploads[q.Get("uploadId")]
		if u == nil {
			fail(w, http.StatusNotFound, "NoSuchUpload")
			return
		}
		var whole []byte
		for _, n := range slices.Sorted(maps.Keys(u.parts)) {
			whole = append(whole, u.parts[n]...)
		}
		delete(s.uploads, q.Get("uploadId"))
		s.objects[name] = object{whole, time.Now()}
		fmt.Fprintf(w, `<CompleteMultipartUploadResult><Bucket>b</Bucket><ETag>%s</ETag></CompleteMultipartUploadResult>`, etag(whole))
	case r.Method == http.MethodPut && there && r.Header.Get("If-None-Match") == "*" && !s.Replaces:
		fail(w, http.StatusPreconditionFailed, "PreconditionFailed")
	case r.Method == http.MethodPut:
		s.objects[name] = object{body, time.Now()}
		w.Header().Set("ETag", etag(body))
	case r.Method == http.MethodGet && !there:
		fail(w, http.StatusNotFound, "NoSuchKey")
	case r.Method == http.MethodGet:
		w.Header().Set("ETag", etag(o.content))
		w.Header().Set("Last-Modified", o.modified.UTC().Format(http.TimeFormat))
		from := 0
		if _, err := fmt.Sscanf(r.Header.Get("Range"), "bytes=%d-", &from); err == nil && from < len(o.content) {
			w.Header().Set("Content-Range", fmt.Sprintf("bytes %d-%d/%d", from, len(o.content)-1, len(o.content)))
			w.WriteHeader(http.StatusPartialContent)
		}
		_, _ = w.Write(o.content[min(from, len(o.content)):])
	case r.Method == http.MethodDelete && q.Has("uploadId"):
		delete(s.uploads, q.Get("uploadId"))
		w.WriteHeader(http.StatusNoContent)
	case r.Method == http.MethodDelete:
		delete(s.objects, name)
		w.WriteHeader(http.StatusNoContent)
	default:
		fail(w, http.StatusNotImplemented, "NotImplemented")
	}
}

// pageSize is how many objects an answer lists.
const pageSize = 7

func (s *Server) list(w http.ResponseWriter, bucket, prefix, after string) {
	type contents struct {
		Key          string
		Size         int
		LastModified string
	}
	var answer struct {
		XMLName               xml.Name `xml:"ListBucketResult"`
		IsTruncated           bool
		NextContinuationToken string
		Contents              []contents
	}
	root := strings.TrimSuffix(bucket, "/") + "/"
	for _, name := range slices.Sorted(maps.Keys(s.listed)) {
		key, ok := strings.CutPrefix(name, root)
		if !ok || !strings.HasPrefix(key, prefix) || key <= after {
			continue
		}
		if len(answer.Contents) == pageSize {
			answer.IsTruncated, answer.NextContinuationToken = true, answer.Contents[pageSize-1].Key
			break
		}
		o := s.listed[name]
		answer.Contents = append(answer.Contents, contents{key, len(o.content), o.modified.UTC().Format("2006-01-02T15:04:05.000Z")})
	}
	w.Header().Set("Content-Type", "application/xml")
	_ = xml.NewEncoder(w).Encode(answer)
}

// listUploads lists the uploads of a bucket that are not completed, one in each answer. mu is held.
func (s *Server) listUploads(w http.ResponseWriter, bucket, prefix, after string) {
	type listed struct {
		Key       string
		UploadId  string
		Initiated string
	}
	var answer struct {
		XMLName            xml.Name `xml:"ListMultipartUploadsResult"`
		IsTruncated        bool
		NextKeyMarker      string
		NextUploadIdMarker string
		Upload             []listed
	}
	root := strings.TrimSuffix(bucket, "/") + "/"
	for _, id := range slices.Sorted(maps.Keys(s.uploads)) {
		key, ok := strings.CutPrefix(s.uploads[id].name, root)
		if !ok || !strings.HasPrefix(key, prefix) || id <= after {
			continue
		}
		if len(answer.Upload) == 1 {
			answer.IsTruncated, answer.NextKeyMarker, answer.NextUploadIdMarker = true, answer.Upload[0].Key, answer.Upload[0].UploadId
			break
		}
		answer.Upload = append(answer.Upload, listed{key, id, s.uploads[id].start.UTC().Format("2006-01-02T15:04:05.000Z")})
	}
	w.Header().Set("Content-Type", "application/xml")
	_ = xml.NewEncoder(w).Encode(answer)
}

func etag(b []byte) string {
	sum := md5.Sum(b)
	return `"` + hex.EncodeToString(sum[:]) + `"`
}

// Payload reads the body of a request, which may be sent in signed chunks.
func Payload(r *http.Request) ([]byte, error) {
	if !strings.HasPrefix(r.Header.Get("X-Amz-Content-Sha256"), "STREAMING-") {
		return io.ReadAll(r.Body)
	}
	var whole bytes.Buffer
	for b := bufio.NewReader(r.Body); ; {
		line, err := b.ReadString('\n')
		if err != nil {
			return nil, err
		}
		size, _, _ := strings.Cut(strings.TrimSpace(line), ";")
		n, err := strconv.ParseInt(size, 16, 64)
		if err != nil {
			return nil, err
		}
		if n == 0 {
			return whole.Bytes(), nil
		}
		if _, err := io.CopyN(&whole, b, n); err != nil {
			return nil, err
		}
		if _, err := b.Discard(2); err != nil {
			return nil, err
		}
	}
}
