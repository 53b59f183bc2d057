package client

import (
	"bufio"
	"errors"
	"io"
)

// csvRecords cuts CSV into records where the server does. A line end between quotes is a part of the record. A quote begins a quoted cell
// only as the first byte of the cell: in others, as in 5" nail, it is text.
type csvRecords struct {
	in        *bufio.Reader
	delimiter byte
	at        csvPlace
}

// csvPlace is a place in a record.
type csvPlace uint8

const (
	csvBegin  csvPlace = iota // of a cell
	csvText                   // in a cell without quotes, or behind them
	csvQuoted                 // between quotes
	csvQuote                  // behind a quote, which ends the quoted text unless another one follows
)

// next returns the next record that is not empty, with the end of its line.
func (c *csvRecords) next() ([]byte, error) {
	var record []byte
	c.at = csvBegin
	for {
		_, err := c.in.Peek(1)
		if errors.Is(err, io.EOF) {
			switch {
			case c.at == csvQuoted:
				return nil, errors.New("the last record has an unterminated quote")
			case len(record) == 0:
				return nil, io.EOF
			}
			return append(record, '\n'), nil
		}
		if err != nil {
			return nil, err
		}
		b, err := c.in.Peek(c.in.Buffered())
		if err != nil {
			return nil, err
		}
		n, ended := c.scan(b)
		if empty := ended && len(record)+n == 1; !empty {
			record = append(record, b[:n]...)
		}
		if _, err := c.in.Discard(n); err != nil {
			return nil, err
		}
		if !ended || len(record) == 0 {
			continue
		}
		if next, err := c.in.Peek(1); record[len(record)-1] == '\r' && err == nil && next[0] == '\n' {
			record = append(record, '\n')
			_, err = c.in.Discard(1)
			return record, err
		}
		return record, nil
	}
}

// scan goes through bytes of a record, up to its end. It returns how many they are, and whether the record has ended.
func (c *csvRecords) scan(b []byte) (n int, ended bool) {
	for i, x := range b {
		switch {
		case c.at == csvQuoted:
			if x == '"' {
				c.at = csvQuote
			}
		case x == '"' && (c.at == csvBegin || c.at == csvQuote):
			c.at = csvQuoted
		case x == c.delimiter:
			c.at = csvBegin
		case x == '\n' || x == '\r':
			c.at = csvBegin
			return i + 1, true
		default:
			c.at = csvText
		}
	}
	return len(b), false
}
