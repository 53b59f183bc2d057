package index

import (
	"errors"
	"math"
	"sort"

	"svc/segment"
)

// docState is the state of one document in a batch. There may be millions.
type docState struct {
	id     segment.DocID // noDocID while it has none
	before int32         // in versions.stood: where it stood before the batch; −1: nowhere
	head   int32         // the last of its versions, or one of the marks below
	passed int32         // the last operation that named it and did not create it; −1: none
}

const (
	noDocID   = math.MaxUint32 // it is never given out
	noSegment = -1
)

// What of these takes in memory, in bytes.
const (
	docStateBytes     = 16
	packedSourceBytes = 16
	placeBytes        = 8
	idBytes           = 16 // about, with its place in an idTable
)

// Marks in the place of a version.
const (
	absent = -1 // there is no document
	stored = -2 // it is as it stands in base
)

// source is one version of a document in a payload.
type source struct {
	offset   int64
	bytes    uint32
	payload  int32
	before   int32 // the version before it: its number, stored, or absent
	replaces bool  // that version's fields go; else the fields of this one are laid over them
	vectors  bool  // it has a field _vectors
}

// place is a row of a segment of base.
type place struct {
	seg int32
	row segment.Row
}

// versions are the sources of a batch, numbered in the order in which they came.
type versions struct {
	all     chunked[packedSource]
	from    []payloadStart
	stood   chunked[place] // by docState.before
	vectors bool           // a source has some
}

// packedSource is a source without its payload, which many have that follow each other.
type packedSource struct {
	at     uint64 // offset << 2 | replaces << 1 | vectors
	bytes  uint32
	before int32
}

// payloadStart is the number of the first source of a payload, of those up to the next start.
type payloadStart struct{ first, payload int32 }

func (v *versions) len() int { return v.all.len() }

// add numbers a source.
func (v *versions) add(s source) (int32, error) {
	n := v.all.len()
	if n == math.MaxInt32 {
		return 0, errors.New("cannot apply a batch of more than 2³¹ documents")
	}
	if last := len(v.from) - 1; last < 0 || v.from[last].payload != s.payload {
		v.from = append(v.from, payloadStart{int32(n), s.payload})
	}
	at := uint64(s.offset) << 2
	if s.replaces {
		at |= 2
	}
	if s.vectors {
		at |= 1
		v.vectors = true
	}
	v.all.add(packedSource{at, s.bytes, s.before})
	return int32(n), nil
}

// source returns the source with a number.
func (v *versions) source(n int32) source {
	p := v.all.at(int(n))
	start := sort.Search(len(v.from), func(i int) bool { return v.from[i].first > n }) - 1
	return source{offset: int64(p.at >> 2), bytes: p.bytes, payload: v.from[start].payload, before: p.before, replaces: p.at&2 != 0, vectors: p.at&1 != 0}
}
