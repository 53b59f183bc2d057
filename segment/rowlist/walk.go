package rowlist

// Walk goes through the rows of a list once, some at a time.
type Walk struct {
	deltas deltas
	row    [1]uint32 // the next one of the deltas, where ahead is true
	ahead  bool

	roaring bool
	c       RoaringCursor
	from    uint32 // rows below were appended
}

// Walk begins a walk through the rows.
func (l List) Walk() Walk {
	if l.Code == Roaring {
		w := Walk{roaring: true}
		w.c.Init(l.P)
		return w
	}
	w := Walk{deltas: deltas{p: l.P, left: l.Count}}
	w.ahead = w.deltas.read(w.row[:]) > 0
	return w
}

// AppendBelow appends the rows below end that it has not appended before. Ends ascend.
func (w *Walk) AppendBelow(dst []uint32, end uint32) []uint32 {
	if !w.roaring {
		for w.ahead && w.row[0] < end {
			dst = append(dst, w.row[0])
			w.ahead = w.deltas.read(w.row[:]) > 0
		}
		return dst
	}
	if w.from >= end {
		return dst
	}
	for c := &w.c; c.container < c.containers && c.key <= (end-1)>>16; c.nextContainer() {
		from, to := uint32(0), uint32(0xffff)
		if c.key == w.from>>16 {
			from = w.from & 0xffff
		}
		if c.key == (end-1)>>16 {
			to = (end - 1) & 0xffff
		}
		if c.key >= w.from>>16 {
			dst = c.appendPart(dst, from, to)
		}
		if c.key == (end-1)>>16 {
			break // it may have more
		}
	}
	w.from = end
	return dst
}
