package restform

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"strconv"
	"strings"

	"svc/internal/apierr"
	"svc/internal/document"
)

// Response reads the answers to calls.
type Response struct {
	batch bool
	outer []step // to the placeholder, or to the array of a batch
	inner []step // from an item of the array to the placeholder
}

// step goes to a member of an object or an item of an array.
type step struct {
	member string
	index  int // −1 for a member
}

// ParseResponse reads a response template. The error is a phrase that follows the name of the setting.
func ParseResponse(raw json.RawMessage) (*Response, error) {
	t, err := read(raw)
	if err != nil {
		return nil, err
	}
	at, err := t.locate(Embedding)
	if err != nil {
		return nil, err
	}
	r := &Response{batch: at.repeated >= 0}
	for i, n := range at.steps {
		s := step{index: n}
		if t.object {
			s = step{member: t.members[n], index: -1}
		}
		t = t.items[n]
		switch {
		case !r.batch || i < at.repeated:
			r.outer = append(r.outer, s)
		case i > at.repeated:
			r.inner = append(r.inner, s)
		}
	}
	return r, nil
}

// Batch reports whether an answer carries the vectors of several inputs.
func (r *Response) Batch() bool { return r.batch }

// Vectors reads the vectors of n inputs from an answer, which is compact JSON. The error says what the answer lacks.
func (r *Response) Vectors(answer []byte, n int) ([][]float32, error) {
	at, err := follow(answer, "answer", r.outer)
	if err != nil {
		return nil, err
	}
	if !r.batch {
		v, err := Vector(at.raw)
		if err != nil {
			return nil, fmt.Errorf("%s %w", at.name, err)
		}
		return [][]float32{v}, nil
	}
	if len(at.raw) == 0 || at.raw[0] != '[' {
		return nil, fmt.Errorf("%s must be an array, but is %s", at.name, shown(at.raw))
	}
	vectors := make([][]float32, 0, n)
	count := 0
	err = document.Elements(at.raw, func(item []byte) error {
		if count++; count > n {
			return nil
		}
		inner, err := follow(item, at.name+"["+strconv.Itoa(count-1)+"]", r.inner)
		if err != nil {
			return err
		}
		v, err := Vector(inner.raw)
		if err != nil {
			return fmt.Errorf("%s %w", inner.name, err)
		}
		vectors = append(vectors, v)
		return nil
	})
	if err != nil {
		return nil, err
	}
	if count != n {
		return nil, fmt.Errorf("%s must have %d items, one for each text, but has %d", at.name, n, count)
	}
	return vectors, nil
}

// found is a value in an answer, and its name for errors.
type found struct {
	raw  []byte
	name string
}

func follow(raw []byte, name string, steps []step) (found, error) {
	at := found{raw, name}
	for _, s := range steps {
		inner, err := at.step(s)
		if err != nil {
			return found{}, err
		}
		at = inner
	}
	return at, nil
}

var errFound = errors.New("found")

func (f found) step(s step) (found, error) {
	if s.index >= 0 {
		if len(f.raw) == 0 || f.raw[0] != '[' {
			return found{}, fmt.Errorf("%s must be an array, but is %s", f.name, shown(f.raw))
		}
		n := 0
		inner := found{name: f.name + "[" + strconv.Itoa(s.index) + "]"}
		err := document.Elements(f.raw, func(item []byte) error {
			if n++; n <= s.index {
				return nil
			}
			inner.raw = item
			return errFound
		})
		if err == nil {
			err = fmt.Errorf("%s has %d items, and none at index %d", f.name, n, s.index)
		}
		if err == errFound {
			err = nil
		}
		return inner, err
	}
	if len(f.raw) == 0 || f.raw[0] != '{' {
		return found{}, fmt.Errorf("%s must be an object, but is %s", f.name, shown(f.raw))
	}
	inner := found{name: f.name + "." + s.member}
	var near []string
	err := document.Fields(f.raw, func(name, item []byte) error {
		if string(name) == s.member {
			inner.raw = item
		} else if apierr.Distance(string(name), s.member) <= 2 && len(near) < 5 {
			near = append(near, "`"+string(name)+"`")
		}
		return nil
	})
	if err == nil && inner.raw == nil {
		hint := ""
		if near != nil {
			hint = ": did you mean " + strings.Join(near, " or ") + "?"
		}
		err = fmt.Errorf("%s has no member `%s`%s", f.name, s.member, hint)
	}
	return inner, err
}

// Vector reads an array of numbers from compact JSON. The error is a phrase that follows a name.
func Vector(raw []byte) ([]float32, error) {
	if len(raw) == 0 || raw[0] != '[' {
		return nil, fmt.Errorf("must be an array of numbers, but is %s", shown(raw))
	}
	vector := make([]float32, 0, bytes.Count(raw, []byte{','})+1)
	err := document.Elements(raw, func(item []byte) error {
		if c := item[0]; c != '-' && (c < '0' || c > '9') {
			return fmt.Errorf("must be an array of numbers, but has %s in it", shown(item))
		}
		x, err := strconv.ParseFloat(string(item), 64)
		if err != nil || math.Abs(x) > math.MaxFloat32 {
			return fmt.Errorf("has a number beyond 32 bits, %s, in it", shown(item))
		}
		vector = append(vector, float32(x))
		return nil
	})
	return vector, err
}

// shown is the start of a value, for errors.
func shown(raw []byte) string {
	const limit = 40
	s := string(raw)
	if len(s) > limit {
		s = strings.ToValidUTF8(s[:limit], "") + "…"
	}
	return s
}
