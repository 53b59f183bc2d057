package index

import (
	"encoding/json"
	"maps"
	"slices"
	"strconv"

	"svc/internal/jsontext"
)

// appendJSON appends the content as package json does, which would allocate for each entry: members in the order of the type, names of a
// map in their own order.
func (f *catalogFile) appendJSON(b []byte) ([]byte, error) {
	rest, err := json.Marshal(struct {
		Next uint64
		Last catalogChange
		Base uint64 `json:",omitempty"`
	}{f.Next, f.Last, f.Base})
	if err != nil {
		return nil, err
	}
	b = slices.Grow(b, f.entries.bytes()+len(rest)+64)
	b = appendEntries(append(b, `{"Indexes":`...), f.Indexes, func(b []byte, n uint64) []byte { return strconv.AppendUint(b, n, 10) })
	if len(f.Aliases) > 0 {
		b = appendEntries(append(b, `,"Aliases":`...), f.Aliases, jsontext.AppendQuoted[string])
	}
	return append(append(b, ','), rest[1:]...), nil
}

// appendEntries appends the entries of one kind.
func appendEntries[T any](b []byte, all map[string]*T, value func([]byte, T) []byte) []byte {
	b = append(b, '{')
	for i, name := range slices.Sorted(maps.Keys(all)) {
		if i > 0 {
			b = append(b, ',')
		}
		b = append(jsontext.AppendQuoted(b, name), ':')
		if v := all[name]; v != nil {
			b = value(b, *v)
		} else {
			b = append(b, "null"...)
		}
	}
	return append(b, '}')
}
