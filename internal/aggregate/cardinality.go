package aggregate

import (
	"encoding/binary"
	"math"
	"strconv"

	"github.com/axiomhq/hyperloglog"
	"github.com/cespare/xxhash/v2"

	"svc/internal/numeric"
	"svc/segment"
)

// cardinality is about how many different values an attribute has: a HyperLogLog (P. Flajolet and others 2007; sparse up to some thousand
// values, where it is all but exact) of 2¹⁴ registers, with a standard error of 0.8 %.
type cardinality struct {
	groups []*sketch // nil: empty
	source columnOf
	ords   []uint32
	hashes [2][]uint64 // by ordinal of the numbers and strings of the segment; 0: not known
}

// sketch is a HyperLogLog and the bytes charged for it.
type sketch struct {
	hyperloglog.Sketch
	inserted int
	charged  int
}

const (
	sketchBytes  = 512      // of an empty one
	insertBytes  = 8        // of a value in a sparse one
	densestBytes = 36 << 10 // at most
	// sparseValues is more values than a sparse sketch can hold. Inserting that many through the sparse form takes ten times as long.
	sparseValues = 10_000
)

func newCardinality(*Spec) node { return new(cardinality) }

// open forgets the hashes of the ordinals of the segment before.
func (c *cardinality) open(w *work, source columnOf) error {
	for i := range c.hashes {
		if err := w.hold(-8 * len(c.hashes[i])); err != nil {
			return err
		}
		c.hashes[i] = nil
	}
	c.source = source
	return nil
}

// group returns the sketch of a group, created on first use. most is the maximum number of groups, if known.
func (c *cardinality) group(w *work, g, most int) (*sketch, error) {
	if err := w.hold(grow(&c.groups, max(len(c.groups), most, g+1), 8)); err != nil {
		return nil, err
	}
	if c.groups[g] == nil {
		if err := w.hold(sketchBytes); err != nil {
			return nil, err
		}
		c.groups[g] = &sketch{Sketch: *hyperloglog.New14(), charged: sketchBytes}
	}
	return c.groups[g], nil
}

// dense makes the sketch of group 0 dense if it is empty.
func (c *cardinality) dense(w *work) error {
	s, err := c.group(w, 0, 1)
	if err != nil || s.inserted > 0 {
		return err
	}
	s.Sketch = *hyperloglog.NewNoSparse()
	return s.charge(w, densestBytes)
}

// charge charges the memory that a sketch may need after more values.
func (s *sketch) charge(w *work, more int) error {
	s.inserted = min(s.inserted+more, densestBytes)
	bytes := min(sketchBytes+insertBytes*s.inserted, densestBytes)
	if bytes <= s.charged {
		return nil
	}
	bytes = min(bytes+bytes/2, densestBytes)
	err := w.hold(bytes - s.charged)
	s.charged = bytes
	return err
}

// hashNumber returns 64 bits of a number, the same on all machines. They differ from the hash of a string with its digits.
func hashNumber(x numeric.Value) uint64 {
	var b [10]byte
	binary.LittleEndian.PutUint64(b[:], math.Float64bits(x.Float))
	binary.LittleEndian.PutUint16(b[8:], uint16(x.Rest))
	return max(xxhash.Sum64(b[:]), 1)
}

func hashString(s []byte) uint64 { return max(xxhash.Sum64(s)^0x9e3779b97f4a7c15, 1) }

// walk inserts the values of each row. A value is hashed once per segment, by its ordinal.
func (c *cardinality) walk(w *work, p pairs) error {
	column := c.source.column
	if column == nil {
		return nil
	}
	for kind, row := range []func([]uint32, segment.Row) []uint32{column.RowNumbers, column.RowStrings} {
		size := column.Numbers()
		if kind == 1 {
			size = column.Strings()
		}
		if size == 0 {
			continue
		}
		if c.hashes[kind] == nil {
			if err := w.hold(8 * size); err != nil {
				return err
			}
			c.hashes[kind] = make([]uint64, size)
		}
		for i, r := range p.rows {
			if i == 0 || r != p.rows[i-1] {
				c.ords = row(c.ords[:0], segment.Row(r))
			}
			if len(c.ords) == 0 {
				continue
			}
			s, err := c.group(w, int(p.group(i)), 0)
			if err != nil {
				return err
			}
			for _, ord := range c.ords {
				if int(ord) >= size { // a forged segment may name others
					continue
				}
				h := &c.hashes[kind][ord]
				if *h == 0 {
					*h = c.hash(kind == 1, int(ord))
				}
				s.InsertHash(*h)
			}
			if err := s.charge(w, len(c.ords)); err != nil {
				return err
			}
		}
	}
	return nil
}

func (c *cardinality) hash(strings bool, ord int) uint64 {
	if strings {
		return hashString(c.source.column.String(ord))
	}
	return hashNumber(c.source.column.Number(ord))
}

// tally inserts each distinct value once, if reading the counts of all values costs less than walking the
// rows.
func (c *cardinality) tally(w *work) (bool, error) {
	column := c.source.column
	if column == nil {
		return true, nil
	}
	if !c.source.tallies(column.Numbers()+column.Strings(), walkedKey) {
		return false, nil
	}
	for kind, size := range []int{column.Numbers(), column.Strings()} {
		if size == 0 {
			continue
		}
		counts := c.source.counts(kind == 1)
		if counts.distinct() > sparseValues {
			if err := c.dense(w); err != nil {
				return true, err
			}
		}
		err := counts.Each(func(ords, _ []uint32) error {
			s, err := c.group(w, 0, 1)
			if err != nil {
				return err
			}
			for _, ord := range ords {
				s.InsertHash(c.hash(kind == 1, int(ord)))
			}
			if err := s.charge(w, len(ords)); err != nil {
				return err
			}
			return w.step()
		})
		if err != nil {
			return true, err
		}
	}
	return true, nil
}

// merge adds the sketches of another part. to has the group here of each group there.
func (c *cardinality) merge(w *work, from node, to []uint32) error {
	o := from.(*cardinality)
	for i, g := range to {
		if i >= len(o.groups) || o.groups[i] == nil {
			continue
		}
		s, err := c.group(w, int(g), 0)
		if err != nil {
			return err
		}
		if err := s.charge(w, o.groups[i].inserted); err != nil {
			return err
		}
		if err := s.Merge(&o.groups[i].Sketch); err != nil {
			return err
		}
	}
	return nil
}

func (c *cardinality) appendJSON(r *render, group int) {
	n := uint64(0)
	if group < len(c.groups) && c.groups[group] != nil {
		n = c.groups[group].Estimate()
	}
	r.dst = append(strconv.AppendUint(append(r.dst, `{"value":`...), n, 10), '}')
}

func (c *cardinality) appendPeer(w *work, dst []byte, groups int) []byte {
	for g := range groups {
		w.rest(g)
		if g >= len(c.groups) || c.groups[g] == nil {
			dst = append(dst, 0)
			continue
		}
		b, err := c.groups[g].MarshalBinary()
		if err != nil { // of an empty one
			b = nil
		}
		dst = appendText(dst, b)
	}
	return dst
}

// readPeer reads sketches. It checks their length and precision first, because the library trusts its input.
func (c *cardinality) readPeer(w *work, r Reader, groups int) error {
	for g := range groups {
		if err := r.Step(); err != nil {
			return err
		}
		text := r.Text()
		if len(text) == 0 {
			continue
		}
		const precision = 14
		if len(text) < 2 || len(text) > densestBytes || text[1] != precision {
			r.Spoil()
			return nil
		}
		s, err := c.group(w, g, groups)
		if err != nil {
			return err
		}
		if err := s.charge(w, len(text)); err != nil { // a value takes a byte at least
			return err
		}
		if s.UnmarshalBinary(text) != nil {
			r.Spoil()
			return nil
		}
	}
	return nil
}
