package fastapi

import (
	"bytes"
	"encoding/json"
	"math"
	"math/big"
	"strconv"
	"strings"
)

// walkNumber is an exact number: 64-bit integers as written, other numbers as the nearest float64.
type walkNumber struct{ *big.Rat }

func walkFloat(f float64) walkNumber { return walkNumber{new(big.Rat).SetFloat64(f)} }

// parseWalkNumber parses a number of a document or filter.
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

// large reports whether float64 cannot represent all integers of this size.
func (x walkNumber) large() bool {
	return x.IsInt() && x.Num().CmpAbs(big.NewInt(1<<53)) >= 0 && (x.Num().IsInt64() || x.Num().IsUint64())
}

// text is the form in facets.
func (x walkNumber) text() string {
	if x.large() {
		return x.Num().String()
	}
	f, _ := x.Float64()
	return strconv.FormatFloat(f, 'f', -1, 64)
}

// value is the form in an answer, as returned by decodeExactly.
func (x walkNumber) value() any {
	if x.large() {
		return largeMark + x.Num().String()
	}
	f, _ := x.Float64()
	return f
}

// largeMark starts the texts that represent large integers.
const largeMark = "#"

// decodeExactly decodes JSON with texts in place of large integers, which encoding/json would round.
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
