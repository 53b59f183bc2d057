package document

import (
	"fmt"
	"io"
	"strings"
	"sync"

	"svc/internal/apierr"
	"svc/internal/budget"
)

// Format is the media type of a payload.
type Format uint8

const (
	JSON   Format = iota // one array of objects, or one object
	NDJSON               // objects, one a line; any white space, or none, may stand between them
	CSV                  // a header and records
)

func (f Format) String() string {
	switch f {
	case NDJSON:
		return "NDJSON"
	case CSV:
		return "CSV"
	}
	return "JSON"
}

// Convert reads a payload as it streams in and writes its documents to w, each as
// one compact JSON object and a newline. It returns how many there were.
//
// Errors in the payload are *apierr.Error: missing_payload if it is empty, payload_too_large for a document of more than MaxBytes,
// otherwise malformed_payload (or invalid_document_csv_delimiter) with a message that says where. An error of r is returned unchanged,
// so r may return an *apierr.Error of its own. After an error w has some of the documents.
//
// If an object has a key several times, the key keeps its first place and its last value. A byte-order mark at the start is skipped.
// delimiter is for CSV only. Convert needs some buffers of the size of the largest document, and memory for its keys or columns, but
// never for the whole payload. If r is a Holder, Convert asks it for this memory. If w is a Spooler, a large JSON document needs no
// buffers, unless it has a key several times.
//
// In CSV the first record names the fields. A name may end in :number, :boolean or :string; values of the first two are trimmed and
// converted. An empty cell is null, and a blank line is skipped. A cell that starts with a double quote ends with one; two inside
// stand for one.
func Convert(w io.Writer, r io.Reader, f Format, delimiter byte) (int, error) {
	c := converters.Get().(*converter)
	defer c.release()
	return c.run(w, r, f, delimiter)
}

// run converts a payload. Even after an error it returns the number of documents written.
func (c *converter) run(w io.Writer, r io.Reader, f Format, delimiter byte) (int, error) {
	c.in.reset(r)
	c.w, c.format, c.documents, c.room = w, f, 0, 0
	c.in.place, c.in.copies = nil, 3 // input, record and output
	if f != CSV {                    // whose records are put together in memory
		c.in.place, _ = w.(Spooler)
		c.in.copies = 2
	}
	c.scan.out = c.scan.out[:0]
	if err := c.convert(delimiter); err != nil {
		return c.documents, err
	}
	return c.documents, c.flush()
}

// A converter is the state of one Convert.
type converter struct {
	in        window
	scan      scanner
	csv       csvState
	w         io.Writer
	format    Format
	documents int // complete ones so far
	room      int // bytes held besides those of the window, reused by each document
}

// need charges memory that each document reuses.
func (c *converter) need(bytes int) error {
	if bytes <= max(c.room, windowSize) {
		return nil
	}
	more := bytes - c.room
	c.room = bytes
	return c.in.hold(more)
}

var converters = sync.Pool{New: func() any { return new(converter) }}

// release gives the converter back, unless a huge document has blown it up.
func (c *converter) release() {
	const most = 1 << 20
	_ = c.in.close() // after an error, which says more; else what stays is small
	c.w, c.in.r, c.in.place, c.scan.data = nil, nil, nil, nil
	c.csv.columns = nil // whose names are of this payload
	if max(len(c.in.buf), cap(c.scan.out), cap(c.scan.keys)*8, cap(c.csv.text), cap(c.csv.ends)*8) <= most {
		converters.Put(c)
	}
}

func (c *converter) convert(delimiter byte) error {
	if err := c.in.fill(); err != nil {
		return err
	}
	if c.in.end == 0 {
		return apierr.New("missing_payload", "A %s payload is missing: send documents.", strings.ToLower(c.format.String()))
	}
	if string(c.in.buf[:min(3, c.in.end)]) == "\uFEFF" {
		c.in.pos = 3
	}
	switch c.format {
	case NDJSON:
		return c.ndjson()
	case CSV:
		return c.convertCSV(delimiter)
	}
	return c.json()
}

func (c *converter) json() error {
	switch b, ok, err := c.peek(); {
	case err != nil:
		return err
	case !ok:
		return c.malformed(c.in.pos, "it contains only white space")
	case b == '{':
		if err := c.document(); err != nil {
			return err
		}
	case b == '[':
		c.in.pos++
		if err := c.array(); err != nil {
			return err
		}
	default:
		return c.malformed(c.in.pos, "expected an array of objects, or one object")
	}
	_, ok, err := c.peek()
	if err == nil && ok {
		err = c.malformed(c.in.pos, "there is text after the end of the documents")
	}
	return err
}

// array reads the documents of an array, after its opening bracket.
func (c *converter) array() error {
	b, ok, err := c.peek()
	if err == nil && ok && b == ']' {
		c.in.pos++
		return nil
	}
	for {
		if err != nil {
			return err
		}
		if err := c.document(); err != nil {
			return err
		}
		if b, ok, err = c.peek(); err != nil {
			return err
		}
		c.in.pos++
		switch {
		case !ok:
			return c.malformed(c.in.end, "the array of documents does not end; was the body truncated?")
		case b == ']':
			return nil
		case b != ',':
			return c.malformed(c.in.pos-1, "expected a comma or the end of the array of documents")
		}
		_, _, err = c.peek()
	}
}

// ndjson converts document by document. Beyond the first MiB, blocks are tried first, once.
func (c *converter) ndjson() error {
	for alone := false; ; {
		if _, ok, err := c.peek(); err != nil || !ok {
			return err
		}
		if !alone && c.in.base >= blocksFrom && c.in.spool == nil {
			alone = true
			if err := c.blocks(); err != nil {
				return err
			}
			continue
		}
		if err := c.document(); err != nil {
			return err
		}
	}
}

// peek skips white space between documents and returns the byte after it, if any.
func (c *converter) peek() (b byte, ok bool, err error) {
	for {
		for c.in.pos < c.in.end {
			if b := c.in.buf[c.in.pos]; !isSpace(b) {
				return b, true, nil
			}
			c.in.pos++
		}
		if c.in.eof {
			return 0, false, nil
		}
		if err := c.in.fill(); err != nil {
			return 0, false, err
		}
	}
}

// keyBytes is the memory for the hash of a key while the list of hashes grows.
const keyBytes = 16

// document converts the document at in.pos.
func (c *converter) document() error {
	s := &c.scan
	start := len(s.out)
	for {
		s.most, s.over = 0, false
		if c.in.spool != nil {
			s.most = spoolBytes
		}
		s.data, s.end = c.in.buf[:c.in.end+Padding], c.in.end
		if s.data[c.in.pos] != '{' {
			if c.in.pos == c.in.end {
				return c.malformed(c.in.end, "expected an object; was the body truncated?")
			}
			return c.malformed(c.in.pos, "expected an object: each document is one")
		}
		end := s.document(c.in.pos)
		if max(end, c.in.pos)-c.in.pos > MaxBytes || end < 0 && c.in.end-c.in.pos > MaxBytes {
			return c.tooLarge()
		}
		if err := c.need(cap(s.keys) * keyBytes); err != nil {
			return err
		}
		if end >= 0 {
			if s.over {
				if err := c.large(start, end); err != nil {
					return err
				}
			}
			c.in.pos = end
			break
		}
		// A failure near the end of the window may only be due to missing text after it. The longest sequence that fails as a whole
		// is a pair of escaped surrogates.
		if c.in.eof || s.at+len(`\ud83d\ude00`) < s.end {
			if s.at >= s.end {
				s.fail += "; was the body truncated?"
			}
			return c.malformed(s.at, s.fail)
		}
		s.out = s.out[:start]
		if err := c.in.fill(); err != nil {
			return err
		}
	}
	if s.twice {
		if err := c.need(int(budget.ShapeOf(s.out[start:])) + cap(s.keys)*keyBytes); err != nil {
			return err
		}
		s.out = appendDistinct(s.out[:start], append([]byte(nil), s.out[start:]...))
	}
	return c.endDocument()
}

// large converts the document from in.pos to end, which is known to be one and is in a spool, without using the output buffer.
func (c *converter) large(start, end int) error {
	s := &c.scan
	s.out, s.over = s.out[:start], false
	if s.twice {
		if err := c.in.hold(2 * (end - c.in.pos)); err != nil {
			return err
		}
		s.most = 0
		s.document(c.in.pos)
		return nil
	}
	if err := c.flush(); err != nil {
		return err
	}
	s.to = c.w
	s.document(c.in.pos)
	err := s.err
	s.to, s.err = nil, nil
	if err != nil {
		return fmt.Errorf("cannot write documents: %w", err)
	}
	return nil
}

// endDocument ends the line of a document in the output.
func (c *converter) endDocument() error {
	c.documents++
	c.scan.out = append(c.scan.out, '\n')
	if len(c.scan.out) < windowSize {
		return nil
	}
	return c.flush()
}

func (c *converter) flush() error {
	_, err := c.w.Write(c.scan.out)
	c.scan.out = c.scan.out[:0]
	if err != nil {
		return fmt.Errorf("cannot write documents: %w", err)
	}
	return nil
}

// tooLarge returns the error for a document that is larger than MaxBytes.
func (c *converter) tooLarge() error {
	return apierr.New("payload_too_large", "Document %d of the payload has more than %d bytes, the maximum of a document. Split it.", c.documents+1, MaxBytes)
}

// malformed returns the error for a mistake at an index of the window.
func (c *converter) malformed(at int, what string) error {
	if !strings.HasSuffix(what, "?") {
		what += "."
	}
	return apierr.New("malformed_payload", "The %s payload is malformed in document %d, at byte %d: %s",
		c.format, c.documents+1, c.in.base+int64(at), what)
}
