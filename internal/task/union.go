package task

import (
	"bytes"
	"encoding/json"
	"strconv"
	"strings"

	"github.com/bytedance/sonic"
	"github.com/bytedance/sonic/ast"

	"svc/internal/jsontext"
)

// union merges the details of a batch's tasks. Counters add up, filters join with "&", swaps are appended, the last value
// of a setting wins (embedders merge by name), and of anything else the first value stays.
type union struct {
	keys     []string // in order of appearance
	values   map[string]json.RawMessage
	settings map[string]bool // keys of settings, where null means a reset
	filters  []string        // joined at the end: there may be many
}

// counters are the keys of details whose numbers add up.
var counters = map[string]bool{
	"receivedOperations": true, "changedDocuments": true, "skippedDocuments": true, "failedDocuments": true,
	"receivedDocuments": true, "indexedDocuments": true, "providedIds": true, "deletedDocuments": true, "editedDocuments": true,
	"matchedTasks": true, "canceledTasks": true, "deletedTasks": true, "movedDocuments": true, "updatedRules": true,
}

var null = json.RawMessage("null")

// add merges the details of one more task. Keys keep the order of their first occurrence.
func (u *union) add(k Kind, details json.RawMessage) {
	if len(details) == 0 {
		return
	}
	if u.values == nil {
		u.values, u.settings = map[string]json.RawMessage{}, map[string]bool{}
	}
	eachDetail(details, func(key string, value json.RawMessage) {
		if key == "originalFilter" && k != SettingsUpdate && !bytes.Equal(value, null) {
			var text string
			if sonic.Unmarshal(value, &text) == nil {
				u.filters = append(u.filters, text)
			}
		}
		if key == "failures" { // they have positions within a single payload
			return
		}
		old, seen := u.values[key]
		if !seen {
			u.keys = append(u.keys, key)
		}
		if k == SettingsUpdate {
			u.settings[key] = true
		}
		switch {
		case !seen || bytes.Equal(old, null):
			u.values[key] = value
		case k == SettingsUpdate && key == "embedders":
			u.values[key] = mergeObjects(old, value)
		case k == SettingsUpdate:
			u.values[key] = value
		case bytes.Equal(value, null):
		case counters[key]:
			u.values[key] = addNumbers(old, value)
		case key == "swaps":
			u.values[key] = joinArrays(old, value)
		}
	})
}

// json gives the merged object. A finished batch has no nulls, apart from settings.
func (u *union) json(finished bool) json.RawMessage {
	b := []byte{'{'}
	for _, key := range u.keys {
		value := u.values[key]
		if key == "originalFilter" && len(u.filters) > 1 {
			value = appendString(nil, strings.Join(u.filters, "&"))
		}
		if finished && !u.settings[key] && bytes.Equal(value, null) {
			continue
		}
		if len(b) > 1 {
			b = append(b, ',')
		}
		b = appendString(b, key)
		b = append(b, ':')
		b = append(b, value...)
	}
	return append(b, '}')
}

// eachDetail walks the fields of details, which this package wrote: they are compact, and their names need no escapes.
func eachDetail(details json.RawMessage, f func(key string, value json.RawMessage)) {
	_ = jsontext.EachMember(details, func(key, value []byte) error {
		f(string(key[1:len(key)-1]), value)
		return nil
	})
}

// eachField walks the fields of an object that a client wrote.
func eachField(object json.RawMessage, f func(key string, value json.RawMessage)) {
	node, err := sonic.Get(object)
	if err != nil {
		return
	}
	node.ForEach(func(path ast.Sequence, n *ast.Node) bool {
		if raw, err := n.Raw(); err == nil && path.Key != nil {
			f(*path.Key, json.RawMessage(raw))
		}
		return true
	})
}

func addNumbers(a, b json.RawMessage) json.RawMessage {
	x, _ := strconv.ParseInt(string(a), 10, 64)
	y, _ := strconv.ParseInt(string(b), 10, 64)
	return strconv.AppendInt(nil, x+y, 10)
}

func joinArrays(a, b json.RawMessage) json.RawMessage {
	switch {
	case len(a) == 2:
		return b
	case len(b) == 2:
		return a
	}
	joined := append(bytes.Clone(a[:len(a)-1]), ',')
	return append(joined, b[1:]...)
}

// mergeObjects merges the fields of b into those of a. null replaces a value.
func mergeObjects(a, b json.RawMessage) json.RawMessage {
	if a[0] != '{' || b[0] != '{' {
		return b
	}
	fields := map[string]json.RawMessage{}
	for _, object := range []json.RawMessage{a, b} {
		eachField(object, func(key string, value json.RawMessage) { fields[key] = value })
	}
	merged := []byte{'{'}
	for i, key := range sortedKeys(fields) {
		if i > 0 {
			merged = append(merged, ',')
		}
		merged = appendString(merged, key)
		merged = append(merged, ':')
		merged = append(merged, fields[key]...)
	}
	return append(merged, '}')
}
