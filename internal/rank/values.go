package rank

import (
	"bytes"
	"cmp"

	"svc/internal/numeric"
	"svc/segment"
)

// ValueClass orders kinds of values, in both directions of a sort: numbers before strings before no value.
type ValueClass uint8

const (
	OfNumber ValueClass = iota
	OfText
	OfPlace // a point, by its distance; a field of points has no other class
	OfNothing
)

// SortValue is the value by which a document, or all of a bucket, is sorted.
type SortValue struct {
	Class    ValueClass
	Rest     int16   // for a number: as in numeric.Value
	Number   float64 // likewise its Float; for a place the distance in metres
	Text     []byte  // normalised; memory of the view
	Lat, Lng float64 // of a place, in degrees
}

// NumberValue returns the sort value of a number.
func NumberValue(x numeric.Value) SortValue {
	return SortValue{Class: OfNumber, Rest: x.Rest, Number: x.Float}
}

// Numeric returns the number of one of OfNumber.
func (v *SortValue) Numeric() numeric.Value { return numeric.Value{Float: v.Number, Rest: v.Rest} }

// Compare orders values in the direction of a sort: smaller ones come first.
func (v *SortValue) Compare(o *SortValue, desc bool) int {
	if v.Class != o.Class {
		return cmp.Compare(v.Class, o.Class)
	}
	c := 0
	switch v.Class {
	case OfNumber, OfPlace:
		if c = cmp.Compare(v.Number, o.Number); c == 0 {
			c = int(v.Rest) - int(o.Rest)
		}
	case OfText:
		c = bytes.Compare(v.Text, o.Text)
	}
	if desc {
		return -c
	}
	return c
}

// ScoreKind says what a ScoreValue holds.
type ScoreKind uint8

const (
	ByRelevance  ScoreKind = iota // rules that look at how the query matched; consecutive ones count as one
	BySimilarity                  // of vectors
	ByField                       // the value of a field
	ByDistance                    // from a point
)

// IsScore reports whether it is a score from 0 to 1, the larger the better, and not the value of a sort.
func (k ScoreKind) IsScore() bool { return k <= BySimilarity }

// ScoreValue is one step in the comparison of hits of different rankings. A hit has a sequence of them, in the order of its rules.
type ScoreValue struct {
	Kind  ScoreKind
	Score float64   // of ByRelevance and BySimilarity
	Sort  SortValue // of ByField and ByDistance
	Desc  bool      // direction of ByField and ByDistance
}

// scoreMargin is the difference up to which scores count as equal: the distance from 1 to the next float64.
const scoreMargin = 0x1p-52

// CompareScores orders scores, larger ones first: it is negative if a comes before b.
func CompareScores(a, b float64) int {
	switch d := a - b; {
	case d > scoreMargin:
		return -1
	case d < -scoreMargin:
		return 1
	}
	return 0
}

// columnsOf returns the columns of a field by segment, nil for segments without one.
func columnsOf(ix *Index, field string) []*segment.Column {
	out := make([]*segment.Column, len(ix.Segments))
	if id, ok := ix.Fields.ID(field); ok {
		for i, seg := range ix.Segments {
			out[i] = seg.Column(id)
		}
	}
	return out
}

// emptyStrings returns how many ordinals stand for an empty string, which is not a value.
func emptyStrings(c *segment.Column) int {
	if c.Strings() > 0 && len(c.String(0)) == 0 {
		return 1
	}
	return 0
}
