package document

import (
	"bytes"
	"slices"
	"strconv"
	"unicode/utf8"

	"svc/internal/apierr"
	"svc/internal/jsontext"
)

// The kinds of a CSV column, by the suffix of its name.
const (
	csvString = iota
	csvNumber
	csvBoolean
)

type csvColumn struct {
	key  []byte // the field's name as a JSON string; nil when a later column has the same
	name string
	kind int
}

// columnBytes is the memory for a column besides its name: the column, its key and its entry in the header's table, while they grow.
const columnBytes = 350

// csvState is the current record and the header.
type csvState struct {
	columns   []csvColumn
	keyBytes  int    // of all columns
	text      []byte // the fields of the record, one behind the other
	ends      []int  // where each ends in text
	line      int    // on which the record starts, from 1
	breaks    int    // line breaks inside the record
	delimiter byte
	stop      [256]bool // bytes that end an unquoted field
}

// convertCSV converts records by the types that the header names.
func (c *converter) convertCSV(delimiter byte) error {
	if delimiter >= utf8.RuneSelf || delimiter == '"' || delimiter == '\n' || delimiter == '\r' {
		return apierr.New("invalid_document_csv_delimiter",
			"The CSV delimiter must be one ASCII character other than a double quote or a line break.")
	}
	s := &c.csv
	s.line, s.breaks, s.delimiter, s.columns, s.keyBytes = 1, 0, delimiter, s.columns[:0], 0
	s.stop = [256]bool{'\n': true, '\r': true}
	s.stop[delimiter] = true
	if ok, err := c.record(); err != nil || !ok {
		return err
	}
	if err := c.in.hold(len(s.ends)*columnBytes + 3*len(s.text)); err != nil {
		return err
	}
	s.header()
	for {
		if ok, err := c.record(); err != nil || !ok {
			return err
		}
		if len(s.ends) != len(s.columns) {
			return c.malformedLine("cells of the record: %d, of the header: %d", len(s.ends), len(s.columns))
		}
		if err := c.csvDocument(); err != nil {
			return err
		}
	}
}

// header makes the columns from the first record.
func (s *csvState) header() {
	place := make(map[string]int)
	for i := range s.ends {
		name, kind := s.field(i), csvString
		if at := bytes.LastIndexByte(name, ':'); at >= 0 {
			switch string(name[at+1:]) {
			case "string":
				name = name[:at]
			case "number":
				name, kind = name[:at], csvNumber
			case "boolean":
				name, kind = name[:at], csvBoolean
			}
		}
		if before, ok := place[string(name)]; ok {
			s.columns[before].key = nil
		}
		place[string(name)] = i
		key := jsontext.AppendQuoted(nil, name)
		s.keyBytes += len(key)
		s.columns = append(s.columns, csvColumn{key: key, name: string(name), kind: kind})
	}
}

func (s *csvState) field(i int) []byte {
	start := 0
	if i > 0 {
		start = s.ends[i-1]
	}
	return s.text[start:s.ends[i]]
}

// record reads the next record that is not blank; false at the end of the payload.
func (c *converter) record() (bool, error) {
	s, in := &c.csv, &c.in
	s.line += s.breaks
	for {
		for in.pos < in.end && (in.buf[in.pos] == '\n' || in.buf[in.pos] == '\r') {
			if in.buf[in.pos] == '\n' {
				s.line++
			}
			in.pos++
		}
		if in.pos < in.end {
			end, complete, err := s.parse(in.buf[:in.end], in.pos, in.hold)
			if err != nil {
				return false, err
			}
			if complete || in.eof {
				if end < 0 {
					return false, c.malformedLine("a quoted cell does not end")
				}
				if !utf8.Valid(s.text) {
					return false, c.malformedLine("the text is not valid UTF-8")
				}
				s.breaks = bytes.Count(in.buf[in.pos:end], []byte{'\n'})
				in.pos = end
				return true, nil
			}
		} else if in.eof {
			return false, nil
		}
		if err := in.fill(); err != nil {
			return false, err
		}
	}
}

// parse cuts the record at b[i] into fields and returns the index of the line break
// after it. It is incomplete when it needs to see beyond the end of b; −1 when a quote is then open. hold is asked for the
// memory of many fields.
func (s *csvState) parse(b []byte, i int, hold func(int) error) (end int, complete bool, err error) {
	s.text, s.ends = s.text[:0], s.ends[:0]
	for {
		if i < len(b) && b[i] == '"' {
			for i++; ; {
				n := bytes.IndexByte(b[i:], '"')
				if n < 0 {
					return -1, false, nil
				}
				s.text = append(s.text, b[i:i+n]...)
				if i += n + 1; i == len(b) || b[i] != '"' {
					break
				}
				s.text = append(s.text, '"')
				i++
			}
		}
		start := i
		for i < len(b) && !s.stop[b[i]] {
			i++
		}
		s.text = append(s.text, b[start:i]...)
		if n := cap(s.ends); len(s.ends) == n && n >= manyFields {
			if err := hold(n * endBytes); err != nil {
				return 0, false, err
			}
			s.ends = slices.Grow(s.ends, n)
		}
		s.ends = append(s.ends, len(s.text))
		switch {
		case i == len(b):
			return i, false, nil
		case b[i] != s.delimiter:
			return i, true, nil
		}
		i++
	}
}

const (
	manyFields = 1 << 10
	endBytes   = 16 // of a field's end, while the list of them grows
)

// csvDocument writes the record as a document.
func (c *converter) csvDocument() error {
	s := &c.csv
	if plain := s.keyBytes + len(s.ends)*len(`,:null""`) + len(s.text); plain > windowSize {
		most := plain + jsontext.EscapeBytes(s.text)
		if err := c.need(len(c.scan.out) + most + len(s.text)); err != nil { // text that is not ASCII is copied, too
			return err
		}
		c.scan.out = slices.Grow(c.scan.out, most)
	}
	start, out := len(c.scan.out), c.scan.out
	out = append(out, '{')
	first := true
	for i, column := range s.columns {
		if column.key == nil {
			continue
		}
		if !first {
			out = append(out, ',')
		}
		first = false
		out = append(out, column.key...)
		out = append(out, ':')
		cell := s.field(i)
		if column.kind != csvString {
			cell = bytes.TrimSpace(cell)
		}
		switch {
		case len(cell) == 0:
			out = append(out, "null"...)
		case column.kind == csvString:
			out = jsontext.AppendQuoted(out, cell)
		case column.kind == csvNumber:
			var ok bool
			if out, ok = appendCSVNumber(out, cell); !ok {
				return c.malformedLine("%s in the column %q is not a number", strconv.Quote(Excerpt(cell)), column.name)
			}
		case string(cell) == "true" || string(cell) == "false":
			out = append(out, cell...)
		default:
			return c.malformedLine("%s in the column %q is neither true nor false", strconv.Quote(Excerpt(cell)), column.name)
		}
	}
	if c.scan.out = append(out, '}'); len(c.scan.out)-start > MaxBytes {
		return c.tooLarge()
	}
	return c.endDocument()
}

// appendCSVNumber appends a cell as a JSON number. If the spelling is valid JSON, it keeps it. It also accepts +5, 007, .5 and 5.
func appendCSVNumber(dst, cell []byte) ([]byte, bool) {
	f, err := strconv.ParseFloat(string(cell), 64)
	if err != nil {
		return dst, false
	}
	padded := append(append(make([]byte, 0, 64), cell...), make([]byte, Padding)...)
	if s := (scanner{data: padded, end: len(cell)}); s.number(0) == len(cell) {
		return append(dst, cell...), true
	}
	for _, c := range cell {
		if !isDigit(c) && c != '.' && c != '+' && c != '-' && c|0x20 != 'e' {
			return dst, false // inf, nan, hexadecimal and underscores are for Go, not for data
		}
	}
	if n, err := strconv.ParseInt(string(cell), 10, 64); err == nil {
		return strconv.AppendInt(dst, n, 10), true
	}
	if n, err := strconv.ParseUint(string(bytes.TrimPrefix(cell, []byte("+"))), 10, 64); err == nil {
		return strconv.AppendUint(dst, n, 10), true
	}
	return jsontext.AppendFloat(dst, f), true
}

func (c *converter) malformedLine(format string, args ...any) error {
	e := apierr.New("malformed_payload", format, args...)
	e.Message = "The CSV payload is malformed in line " + strconv.Itoa(c.csv.line) + ": " + e.Message + "."
	return e
}
