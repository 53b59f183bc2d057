package chat

import (
	"bufio"
	"bytes"
	"errors"
	"io"
	"unicode/utf8"
)

// eventReader reads server-sent events of the HTML standard (9.2.6): lines end in LF, CR or CRLF, lines that begin with a colon are
// comments, a space after a field's colon is not part of its value, and an empty line ends an event. Unlike in the standard, the end
// of the stream ends an event, too, because some providers omit the last empty line.
type eventReader struct {
	r       *bufio.Reader
	begun   bool // something was read
	afterCR bool // an LF that comes next belongs to the CR
	line    []byte
	data    []byte
}

const (
	maxEventBytes = 1 << 20
	readBytes     = 4 << 10 // of the buffer in front of a connection
)

var errLongEvent = errors.New("an event of the stream is too long")

func newEventReader(r io.Reader) *eventReader {
	return &eventReader{r: bufio.NewReaderSize(r, readBytes)}
}

var byteOrderMark = []byte("\xEF\xBB\xBF")

// next returns the data of the next event that has any, in UTF-8, and whether its type is `error`. The data is valid until
// the next call. At the end of the stream the error is io.EOF.
func (e *eventReader) next() (data []byte, failed bool, err error) {
	e.data = e.data[:0]
	some := false // a data field was read, maybe an empty one
	for {
		line, err := e.readLine()
		if err != nil && err != io.EOF {
			return nil, false, err
		}
		if len(line) == 0 {
			if some {
				return e.text(), failed, nil
			}
			if err == io.EOF {
				return nil, false, io.EOF
			}
			failed = false
			continue
		}
		name, value, _ := bytes.Cut(line, []byte{':'})
		value = bytes.TrimPrefix(value, []byte{' '})
		switch string(name) {
		case "data":
			if some {
				e.data = append(e.data, '\n')
			}
			some = true
			if len(e.data)+len(value) > maxEventBytes {
				return nil, false, errLongEvent
			}
			e.data = append(e.data, value...)
		case "event":
			failed = string(value) == "error"
		}
		if err == io.EOF {
			if !some {
				return nil, false, io.EOF
			}
			return e.text(), failed, nil
		}
	}
}

func (e *eventReader) text() []byte {
	if !utf8.Valid(e.data) {
		e.data = bytes.ToValidUTF8(e.data, []byte("\uFFFD"))
	}
	return e.data
}

// readLine returns a line without its end. It does not wait for the byte after a CR, which may arrive much later. At the end of the
// stream it returns the text after the last line end, with io.EOF.
func (e *eventReader) readLine() ([]byte, error) {
	e.line = e.line[:0]
	for {
		c, err := e.r.ReadByte()
		if err != nil {
			return e.start(), err
		}
		lf := c == '\n' && e.afterCR
		e.afterCR = c == '\r'
		switch {
		case lf:
		case c == '\n', c == '\r':
			return e.start(), nil
		case len(e.line) == maxEventBytes:
			return nil, errLongEvent
		default:
			e.line = append(e.line, c)
		}
	}
}

// start takes the mark off that a stream may begin with.
func (e *eventReader) start() []byte {
	line := e.line
	if !e.begun {
		line = bytes.TrimPrefix(line, byteOrderMark)
	}
	e.begun = true
	return line
}
