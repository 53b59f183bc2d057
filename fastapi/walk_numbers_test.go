package fastapi

import (
	"bytes"
	"encoding/json"
	"math"
	"math/big"
	"strconv"
	"strings"
)

// walkNumber is a number exactly: integers of 64 bits as they are written, any other number as the float64 next to it.
type walkNumber struct{ *big.Rat }

func walkFloat(f float64) walkNumber { return walkNumber{new(big.Rat).SetFloat64(f)} }

// parseWalkNumber reads what documents and filters write.
func parseWalkNumber(s string) (walkNumber, bool) {
	if n, ok := new(big.Int).SetString(s, 10); ok && (n.IsInt64() || n.IsUint64()) {
		return walkNumber{new(big.Rat).SetInt(n)}, true
	}
	f, err := strconv.ParseFloat(s, 64)
	if err != nil || math.IsInf(f, 0) || math.IsNaN(f) {
		return walkNumber{}, false
	}
	return walkFloat(f), true
}

// large reports whether float64 have no room for all integers as large.
func (x walkNumber) large() bool {
	return x.IsInt() && x.Num().CmpAbs(big.NewInt(1<<53)) >= 0 && (x.Num().IsInt64() || x.Num().IsUint64())
}

// text is what facets show.
func (x walkNumber) text() string {
	if x.large() {
		return x.Num().String()
	}
	f, _ := x.Float64()
	return strconv.FormatFloat(f, 'f', -1, 64)
}

// value is what stands in an answer, as decodeExactly gives it.
func (x walkNumber) value() any {
	if x.large() {
		return largeMark + x.Num().String()
	}
	f, _ := x.Float64()
	return f
}

// largeMark begins the texts that stand for large integers.
const largeMark = "#"

// decodeExactly decodes JSON with texts in the place of integers that are large, which encoding/json would round.
func decodeExactly(body string, into any) error {
	d := json.NewDecoder(strings.NewReader(body))
	d.UseNumber()
	var all any
	if err := d.Decode(&all); err != nil {
		return err
	}
	raw, err := json.Marshal(markLarge(all))
	if err != nil {
		return err
	}
	return json.NewDecoder(bytes.NewReader(raw)).Decode(into)
}

func markLarge(v any) any {
	switch v := v.(type) {
	case map[string]any:
		for key, member := range v {
			v[key] = markLarge(member)
		}
	case []any:
		for i := range v {
			v[i] = markLarge(v[i])
		}
	case json.Number:
		if x, ok := parseWalkNumber(string(v)); ok && x.large() {
			return largeMark + x.Num().String()
		}
	}
	return v
}

// plainID is the id of a document in an answer.
func plainID(id string) string { return strings.TrimPrefix(id, largeMark) }
