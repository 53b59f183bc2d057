package client

import (
	"bufio"
	"bytes"
	"compress/gzip"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"path"
	"strings"

	"github.com/klauspost/compress/zstd"
)

// Format is how documents are written.
type Format string

const (
	Detect Format = ""
	JSON   Format = "json" // an array of objects, or objects one after the other
	NDJSON Format = "ndjson"
	CSV    Format = "csv"
)

// FormatOf returns the format for a file name, ignoring suffixes of compression.
func FormatOf(name string) Format {
	name = strings.ToLower(name)
	for _, suffix := range []string{".gz", ".zst", ".zstd"} {
		name = strings.TrimSuffix(name, suffix)
	}
	switch path.Ext(name) {
	case ".json":
		return JSON
	case ".ndjson", ".jsonl":
		return NDJSON
	case ".csv":
		return CSV
	}
	return Detect
}

// Documents are read one after the other.
type Documents struct {
	contentType string
	head        []byte                                                            // what every body begins with: the header of a CSV file
	next        func(ctx context.Context) (document []byte, ends bool, err error) // valid until the next call; io.EOF after the last one
	skip        func(n int) error                                                 // nil: documents are skipped by reading them
}

// bufferBytes is how much is read from a file at once.
const bufferBytes = 1 << 20

// documentReader bounds how much is read for one document.
type documentReader struct {
	from io.Reader
	left int
}

func (r *documentReader) Read(b []byte) (int, error) {
	if r.left <= 0 {
		return 0, &tooLargeError{"a document"}
	}
	n, err := r.from.Read(b[:min(len(b), r.left)])
	r.left -= n
	return n, err
}

// Open reads the documents of a file, which may be compressed with gzip or zstd. Detect examines its beginning. A document that is
// larger than maxAnswer is an error. delimiter separates the cells of CSV; "": a comma.
func Open(file io.Reader, format Format, delimiter string) (*Documents, error) {
	bounded := &documentReader{left: maxAnswer}
	d, err := open(file, bounded, format, delimiter)
	if err != nil {
		return nil, err
	}
	next := d.next
	d.next = func(ctx context.Context) ([]byte, bool, error) {
		bounded.left = maxAnswer + bufferBytes // what the buffer has belongs to documents that follow
		return next(ctx)
	}
	return d, nil
}

// open is Open with the reader that bounds documents, which it sets on top of the decompressed file.
func open(file io.Reader, bounded *documentReader, format Format, delimiter string) (*Documents, error) {
	in := bufio.NewReaderSize(file, bufferBytes)
	switch magic, err := in.Peek(4); {
	case len(magic) >= 2 && magic[0] == 0x1f && magic[1] == 0x8b:
		z, err := gzip.NewReader(in)
		if err != nil {
			return nil, err
		}
		in = bufio.NewReaderSize(z, bufferBytes)
	case bytes.Equal(magic, []byte{0x28, 0xb5, 0x2f, 0xfd}):
		z, err := zstd.NewReader(in, zstd.WithDecoderConcurrency(1)) // and no goroutine that has to be ended
		if err != nil {
			return nil, err
		}
		in = bufio.NewReaderSize(z, bufferBytes)
	case err != nil && !errors.Is(err, io.EOF):
		return nil, err
	}
	bounded.from = in
	in = bufio.NewReaderSize(bounded, bufferBytes)
	if mark, _ := in.Peek(3); bytes.Equal(mark, []byte("\xef\xbb\xbf")) {
		if _, err := in.Discard(len(mark)); err != nil {
			return nil, err
		}
	}
	if format == Detect {
		var err error
		if format, err = detect(in); err != nil {
			return nil, err
		}
	}
	switch format {
	case JSON:
		return openJSON(in), nil
	case NDJSON:
		return &Documents{contentType: "application/x-ndjson", next: func(context.Context) ([]byte, bool, error) { return readLine(in) }}, nil
	}
	records := csvRecords{in: in, delimiter: ','}
	if len(delimiter) == 1 { // the server refuses others
		records.delimiter = delimiter[0]
	}
	head, err := records.next()
	if err != nil {
		return nil, fmt.Errorf("the header cannot be read: %w", err)
	}
	return &Documents{contentType: "text/csv", head: head, next: func(context.Context) ([]byte, bool, error) {
		record, err := records.next()
		return record, true, err
	}}, nil
}

// detect looks at the first line, or as much of it as the buffer has.
func detect(in *bufio.Reader) (Format, error) {
	begin, err := in.Peek(bufferBytes)
	if err != nil && !errors.Is(err, io.EOF) {
		return Detect, err
	}
	begin = bytes.TrimLeft(begin, " \t\r\n")
	line, _, _ := bytes.Cut(begin, []byte("\n"))
	switch {
	case len(begin) == 0:
		return NDJSON, nil
	case begin[0] == '[':
		return JSON, nil
	case begin[0] != '{':
		return CSV, nil
	case json.Valid(line) || len(line) == len(begin) && err == nil:
		return NDJSON, nil
	}
	return JSON, nil
}

// readLine returns the next line that is not empty.
func readLine(in *bufio.Reader) ([]byte, bool, error) {
	for {
		line, err := in.ReadSlice('\n')
		if errors.Is(err, bufio.ErrBufferFull) {
			line = bytes.Clone(line)
			var rest []byte
			rest, err = in.ReadBytes('\n')
			line = append(line, rest...)
		}
		if err != nil && !errors.Is(err, io.EOF) {
			return nil, false, err
		}
		if line = bytes.TrimSpace(line); len(line) > 0 {
			return line, false, nil
		}
		if err != nil {
			return nil, false, err
		}
	}
}

func openJSON(in *bufio.Reader) *Documents {
	d := json.NewDecoder(in)
	begun, array := false, false
	var compact bytes.Buffer
	return &Documents{contentType: "application/x-ndjson", next: func(context.Context) ([]byte, bool, error) {
		if !begun {
			begun = true
			for {
				b, err := in.ReadByte()
				if err != nil {
					return nil, false, err
				}
				if array = b == '['; array {
					break
				}
				if b != ' ' && b != '\t' && b != '\r' && b != '\n' {
					if err := in.UnreadByte(); err != nil {
						return nil, false, err
					}
					break
				}
			}
			if array { // the decoder is to see the array whole
				if err := in.UnreadByte(); err != nil {
					return nil, false, err
				}
				if _, err := d.Token(); err != nil {
					return nil, false, err
				}
			}
		}
		if array && !d.More() {
			if _, err := d.Token(); err != nil { // the array's end
				return nil, false, unexpected(err)
			}
			if _, err := d.Token(); !errors.Is(err, io.EOF) {
				return nil, false, errors.New("something follows the array of documents")
			}
			return nil, false, io.EOF
		}
		var document json.RawMessage
		if err := d.Decode(&document); err != nil {
			if array {
				err = unexpected(err)
			}
			return nil, false, err
		}
		compact.Reset()
		err := json.Compact(&compact, document)
		return compact.Bytes(), false, err
	}}
}

// unexpected returns the error for a file that ends before its documents do: io.EOF becomes io.ErrUnexpectedEOF.
func unexpected(err error) error {
	if errors.Is(err, io.EOF) {
		return io.ErrUnexpectedEOF
	}
	return err
}

// pageDocuments is how many documents are requested at once. Pages with larger answers than maxAnswer are halved.
const pageDocuments = 1000

// Documents reads the documents of an index of the server, with their vectors. A document larger than maxAnswer is an error. So is a
// server with more documents than it reports, for example one that ignores the offset, or one whose documents more than double during
// the read: it would never end.
func (c *Client) Documents(index string) *Documents {
	var page []json.RawMessage
	offset, limit := 0, pageDocuments
	most := -1 // documents that are read; -1: nothing has been
	load := func(ctx context.Context) error {
		var answer struct {
			Results []json.RawMessage
			Total   *int
			Offset  *int // of the page, if the server says so
		}
		for {
			at := fmt.Sprintf("/indexes/%s/documents?retrieveVectors=true&limit=%d&offset=%d", url.PathEscape(index), limit, offset)
			err := c.Call(ctx, http.MethodGet, at, nil, &answer)
			var large *tooLargeError
			if errors.As(err, &large) {
				if limit == 1 {
					return &tooLargeError{fmt.Sprintf("document %d of %s", offset+1, c.base.Host)}
				}
				limit /= 2
				continue
			}
			if err != nil {
				return err
			}
			break
		}
		page = answer.Results
		if most < 0 && answer.Total != nil {
			most = 2*max(0, min(*answer.Total, 1<<40)) + 10*pageDocuments
		}
		switch end := offset + len(page); {
		case answer.Total == nil:
			return fmt.Errorf("%s does not report the number of documents of the index: it is not a server of this API", c.base.Host)
		case len(page) > limit:
			return fmt.Errorf("%s returned %d documents, but the limit was %d", c.base.Host, len(page), limit)
		case answer.Offset != nil && *answer.Offset != offset:
			return fmt.Errorf("%s returned documents from %d, but the offset was %d: it ignores the offset", c.base.Host, *answer.Offset, offset)
		case len(page) > 0 && end > *answer.Total:
			return fmt.Errorf("%s returned documents %d to %d of %d: it ignores the offset", c.base.Host, offset+1, end, *answer.Total)
		case end > most:
			return fmt.Errorf("%s had fewer than half of %d documents when the import began: it adds documents faster than svc reads them. Import a dump or a snapshot of it", c.base.Host, end)
		default:
			offset = end
		}
		return nil
	}
	return &Documents{
		contentType: "application/x-ndjson",
		skip: func(n int) error {
			offset += n
			return nil
		},
		next: func(ctx context.Context) ([]byte, bool, error) {
			if len(page) == 0 {
				if err := load(ctx); err != nil {
					return nil, false, err
				}
				if len(page) == 0 {
					return nil, false, io.EOF
				}
			}
			document := page[0]
			page = page[1:]
			return document, false, nil
		},
	}
}

// drop leaves the first n documents out.
func (d *Documents) drop(ctx context.Context, n int) error {
	if d.skip != nil {
		return d.skip(n)
	}
	for i := range n {
		if _, _, err := d.next(ctx); err != nil {
			return fmt.Errorf("document %d, the last imported one, is missing: %w", i+1, unexpected(err))
		}
	}
	return nil
}
