package transformer

import (
	"encoding/binary"
	"encoding/json"
	"fmt"
	"io"
	"math"
	"os"
	"strings"
)

// maxHeader is the longest header of a safetensors file that is read, as the format has it.
const maxHeader = 100 << 20

// tensors is a safetensors file: the length of a JSON header as a little-endian uint64, the header, which says
// where each tensor lies, and the tensors.
type tensors struct {
	file   *os.File
	start  int64 // of the tensors in the file
	size   int64 // of the tensors
	header map[string]tensorInfo
	prefix string // of all names, "bert." for example
}

type tensorInfo struct {
	Type    string   `json:"dtype"`
	Shape   []int    `json:"shape"`
	Offsets [2]int64 `json:"data_offsets"`
}

// openTensors reads the header of a safetensors file: the length of the header, and a JSON object with the
// place of each tensor.
func openTensors(name string) (t *tensors, err error) {
	f, err := os.Open(name)
	if err != nil {
		return nil, err
	}
	defer func() {
		if err != nil {
			f.Close()
			err = fmt.Errorf("cannot read %s: %w", name, err)
		}
	}()
	info, err := f.Stat()
	if err != nil {
		return nil, err
	}
	var length [8]byte
	if _, err := f.ReadAt(length[:], 0); err != nil {
		return nil, err
	}
	n := binary.LittleEndian.Uint64(length[:])
	if n > maxHeader || int64(n) > info.Size()-8 {
		return nil, fmt.Errorf("it is not a safetensors file: its header would have %d bytes", n)
	}
	raw := make([]byte, n)
	if _, err := f.ReadAt(raw, 8); err != nil {
		return nil, err
	}
	var members map[string]json.RawMessage
	if err := json.Unmarshal(raw, &members); err != nil {
		return nil, fmt.Errorf("it is not a safetensors file: its header is not JSON: %w", err)
	}
	t = &tensors{file: f, start: 8 + int64(n), size: info.Size() - 8 - int64(n), header: map[string]tensorInfo{}}
	for key, value := range members {
		if key == "__metadata__" {
			continue
		}
		var i tensorInfo
		if err := json.Unmarshal(value, &i); err != nil {
			return nil, fmt.Errorf("the tensor %q is not described: %w", key, err)
		}
		t.header[key] = i
	}
	return t, nil
}

func (t *tensors) close() error { return t.file.Close() }

func (t *tensors) has(name string) bool {
	_, ok := t.header[t.prefix+name]
	return ok
}

// read returns a tensor as 32-bit floats, in contiguous rows. It must have the given shape.
func (t *tensors) read(name string, shape ...int) ([]float32, error) {
	name = t.prefix + name
	i, ok := t.header[name]
	if !ok {
		return nil, fmt.Errorf("the tensor %q is missing", name)
	}
	count := 1
	for _, n := range shape {
		count *= n
	}
	if fmt.Sprint(i.Shape) != fmt.Sprint(shape) {
		return nil, fmt.Errorf("the tensor %q has the shape %v, and should have %v", name, i.Shape, shape)
	}
	width, ok := map[string]int{"F32": 4, "F16": 2, "BF16": 2}[i.Type]
	if !ok {
		return nil, fmt.Errorf("the tensor %q has the type %s: F32, F16 and BF16 can be read", name, i.Type)
	}
	if i.Offsets[0] < 0 || i.Offsets[1] > t.size || i.Offsets[1]-i.Offsets[0] != int64(count)*int64(width) {
		return nil, fmt.Errorf("the tensor %q lies from byte %d to %d, which is not its size, or not in the file", name, i.Offsets[0], i.Offsets[1])
	}
	values := make([]float32, count)
	r := io.NewSectionReader(t.file, t.start+i.Offsets[0], i.Offsets[1]-i.Offsets[0])
	buffer := make([]byte, min(1<<20, count*width))
	for at := 0; at < count; {
		part := buffer[:min(len(buffer), (count-at)*width)]
		if _, err := io.ReadFull(r, part); err != nil {
			return nil, fmt.Errorf("the tensor %q: %w", name, err)
		}
		for ; len(part) > 0; part = part[width:] {
			switch i.Type {
			case "F32":
				values[at] = math.Float32frombits(binary.LittleEndian.Uint32(part))
			case "F16":
				values[at] = fromHalf(binary.LittleEndian.Uint16(part))
			case "BF16":
				values[at] = math.Float32frombits(uint32(binary.LittleEndian.Uint16(part)) << 16)
			}
			at++
		}
	}
	return values, nil
}

// fromHalf widens an IEEE 754 binary16 number.
func fromHalf(h uint16) float32 {
	sign := uint32(h>>15) << 31
	exponent, fraction := uint32(h>>10&31), uint32(h&1023)
	switch exponent {
	case 0: // subnormal: fraction·2⁻²⁴
		f := float32(fraction) * (1.0 / (1 << 24))
		return math.Float32frombits(math.Float32bits(f) | sign)
	case 31:
		return math.Float32frombits(sign | 255<<23 | fraction<<13)
	}
	return math.Float32frombits(sign | (exponent+127-15)<<23 | fraction<<13)
}

// findPrefix finds the prefix of the names of tensors.
func (t *tensors) findPrefix(name string, prefixes ...string) error {
	for _, p := range append(prefixes, "") {
		if _, ok := t.header[p+name]; ok {
			t.prefix = p
			return nil
		}
	}
	return fmt.Errorf("there is no tensor %q, alone or behind %s", name, strings.Join(prefixes, " or "))
}
