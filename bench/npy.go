package main

import (
	"bytes"
	"encoding/binary"
	"fmt"
	"math"
	"os"
	"regexp"
	"strconv"
)

// A matrix is rows of float32, one behind another.
type matrix struct {
	rows, columns int
	data          []float32
}

func (m *matrix) row(i int) []float32 { return m.data[i*m.columns : (i+1)*m.columns] }

var npyHeader = regexp.MustCompile(`'descr': '<(f2|f4)', 'fortran_order': False, 'shape': \((\d+), (\d+)\)`)

// readNPY reads a two-dimensional array of float16 or float32 (NumPy format, version 1 or 2).
func readNPY(name string) (*matrix, error) {
	b, err := os.ReadFile(name)
	if err != nil {
		return nil, fmt.Errorf("cannot read vectors: %w", err)
	}
	if len(b) < 12 || !bytes.HasPrefix(b, []byte("\x93NUMPY")) {
		return nil, fmt.Errorf("%s is no NumPy array", name)
	}
	begin, end := 10, 10+int(binary.LittleEndian.Uint16(b[8:]))
	if b[6] > 1 {
		begin, end = 12, 12+int(binary.LittleEndian.Uint32(b[8:]))
	}
	if end > len(b) {
		return nil, fmt.Errorf("%s is cut off", name)
	}
	h := npyHeader.FindSubmatch(b[begin:end])
	if h == nil {
		return nil, fmt.Errorf("%s is no array of rows of float16 or float32, little-endian: %s", name, b[begin:end])
	}
	m := new(matrix)
	m.rows, _ = strconv.Atoi(string(h[2]))
	m.columns, _ = strconv.Atoi(string(h[3]))
	width := int(h[1][1] - '0')
	b = b[end:]
	if m.rows <= 0 || m.columns <= 0 || len(b)/width/m.columns < m.rows {
		return nil, fmt.Errorf("%s is cut off, or empty", name)
	}
	m.data = make([]float32, m.rows*m.columns)
	for i := range m.data {
		if width == 2 {
			m.data[i] = float16(binary.LittleEndian.Uint16(b[2*i:]))
		} else {
			m.data[i] = math.Float32frombits(binary.LittleEndian.Uint32(b[4*i:]))
		}
	}
	return m, nil
}

// float16 converts from IEEE 754 binary16.
func float16(h uint16) float32 {
	exponent, fraction := int(h>>10&31), float64(h&1023)
	x := math.Ldexp(1+fraction/1024, exponent-15)
	switch {
	case exponent == 0:
		x = math.Ldexp(fraction/1024, -14)
	case exponent == 31 && fraction == 0:
		x = math.Inf(1)
	case exponent == 31:
		x = math.NaN()
	}
	if h>>15 != 0 {
		x = -x
	}
	return float32(x)
}

// writeNPY writes rows of float32.
func (m *matrix) writeNPY(name string) error {
	header := fmt.Sprintf("{'descr': '<f4', 'fortran_order': False, 'shape': (%d, %d), }", m.rows, m.columns)
	header = fmt.Sprintf("%-117s\n", header) // with the 10 bytes before it, a multiple of 64
	b := append([]byte("\x93NUMPY\x01\x00"), byte(len(header)), 0)
	b = append(b, header...)
	for _, x := range m.data {
		b = binary.LittleEndian.AppendUint32(b, math.Float32bits(x))
	}
	if err := os.WriteFile(name, b, 0o600); err != nil {
		return fmt.Errorf("cannot write vectors: %w", err)
	}
	return nil
}
