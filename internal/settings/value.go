package settings

import (
	"bytes"
	"encoding/json"
	"math"
	"slices"
	"strconv"
	"strings"
	"unicode/utf8"

	"github.com/bytedance/sonic"
	"github.com/bytedance/sonic/ast"

	"svc/internal/apierr"
)

// value is a part of a request body, with the data for its error messages: its path and the code of its setting. Object keys are
// matched exactly, which encoding/json does not do for structs.
type value struct {
	raw  json.RawMessage
	path string // as in .typoTolerance.enabled; "" for the body
	code apierr.Code
}

// member is one member of an object.
type member struct {
	key string
	value
}

// parse checks that body is JSON.
func parse(body []byte, code apierr.Code) (value, error) {
	body = bytes.TrimSpace(body)
	if len(body) == 0 {
		return value{}, apierr.New("missing_payload", "The request has no body: send the settings as JSON.")
	}
	if !utf8.Valid(body) {
		return value{}, apierr.New("malformed_payload", "The body is not valid UTF-8.")
	}
	var compact bytes.Buffer
	if err := json.Compact(&compact, body); err != nil {
		return value{}, apierr.New("malformed_payload", "The body is not valid JSON: %v.", err)
	}
	return value{raw: compact.Bytes(), code: code}, nil
}

func (v value) fail(format string, args ...any) error {
	where := "The body"
	if v.path != "" {
		where = "`" + v.path + "`"
	}
	return apierr.New(v.code, where+" "+format, args...)
}

// wrong says that v should have been something else.
func (v value) wrong(want string) error {
	return v.fail("must be %s, but is %s.", want, v.shown())
}

// shown is the value as an error message shows it: its start.
func (v value) shown() string {
	const limit = 60
	if len(v.raw) <= limit {
		return string(v.raw)
	}
	cut := limit
	for !utf8.RuneStart(v.raw[cut]) {
		cut--
	}
	return string(v.raw[:cut]) + "…"
}

func (v value) null() bool { return len(v.raw) > 0 && v.raw[0] == 'n' }

func (v value) text() (string, error) {
	if n := len(v.raw); v.raw[0] == '"' && bytes.IndexByte(v.raw, '\\') < 0 {
		return string(v.raw[1 : n-1]), nil
	}
	var s string
	if v.raw[0] != '"' || json.Unmarshal(v.raw, &s) != nil {
		return "", v.wrong("a string")
	}
	return s, nil
}

func (v value) boolean() (bool, error) {
	switch v.raw[0] {
	case 't':
		return true, nil
	case 'f':
		return false, nil
	}
	return false, v.wrong("true or false")
}

// whole reads an integer from 0 to limit.
func (v value) whole(limit uint64) (uint64, error) {
	n, err := strconv.ParseUint(string(v.raw), 10, 64)
	if err != nil || n > limit {
		want := "a whole number that is not negative"
		if limit < math.MaxInt {
			want = "a whole number from 0 to " + strconv.FormatUint(limit, 10)
		}
		return 0, v.wrong(want)
	}
	return n, nil
}

// count reads an integer that is held as an int.
func (v value) count() (int, error) {
	n, err := v.whole(math.MaxUint64)
	return int(min(n, math.MaxInt)), err
}

func (v value) number() (float64, error) {
	var x float64
	if json.Unmarshal(v.raw, &x) != nil || v.null() {
		return 0, v.wrong("a number")
	}
	return x, nil
}

// choice reads one of a few names and returns its place among them.
func (v value) choice(names ...string) (int, error) {
	if s, err := v.text(); err == nil {
		if i := slices.Index(names, s); i >= 0 {
			return i, nil
		}
	}
	return 0, v.wrong("one of \"" + strings.Join(names, "\", \"") + "\"")
}

// items splits an array.
func (v value) items() ([]value, error) {
	var raws []json.RawMessage
	if v.raw[0] != '[' || json.Unmarshal(v.raw, &raws) != nil {
		return nil, v.wrong("an array")
	}
	items := make([]value, len(raws))
	for i, raw := range raws {
		items[i] = value{raw, v.path + "[" + strconv.Itoa(i) + "]", v.code}
	}
	return items, nil
}

// texts reads an array of strings; never nil.
func (v value) texts() ([]string, error) {
	items, err := v.items()
	if err != nil {
		return nil, v.wrong("an array of strings")
	}
	texts := make([]string, len(items))
	for i, item := range items {
		if texts[i], err = item.text(); err != nil {
			return nil, err
		}
	}
	return texts, nil
}

// set reads an array of strings as a sorted list of unique ones; never nil.
func (v value) set() ([]string, error) {
	texts, err := v.texts()
	if err != nil {
		return nil, err
	}
	return sortedSet(texts), nil
}

func sortedSet(texts []string) []string {
	slices.Sort(texts)
	return slices.Compact(texts)
}

// members splits an object, in the order of the body. sonic is less strict, but splits input that encoding/json has accepted in the
// same way (FuzzMembers).
func (v value) members() ([]member, error) {
	if v.raw[0] != '{' {
		return nil, v.wrong("an object")
	}
	node, err := sonic.Get(v.raw)
	if err != nil {
		return nil, v.wrong("an object")
	}
	pairs, err := node.Properties()
	if err != nil {
		return nil, v.wrong("an object")
	}
	var members []member
	for p := new(ast.Pair); pairs.Next(p); {
		raw, err := p.Value.Raw()
		if err != nil {
			return nil, v.wrong("an object")
		}
		key := strings.Clone(p.Key) // it may be a part of the body
		members = append(members, member{key, value{json.RawMessage(raw), v.path + "." + key, v.code}})
	}
	return members, nil
}

// fields reads an object of known members: each has its reader. Others are refused.
func (v value) fields(readers map[string]func(value) error) error {
	members, err := v.members()
	if err != nil {
		return err
	}
	for _, m := range members {
		read, ok := readers[m.key]
		if !ok {
			return v.unknown(m.key, sortedKeys(readers))
		}
		if err := read(m.value); err != nil {
			return err
		}
	}
	return nil
}

func (v value) unknown(key string, known []string) error {
	if meant := apierr.Closest(key, known); meant != "" {
		return v.fail("has no member %.80q. Did you mean %q?", key, meant)
	}
	return v.fail("has no member %.80q: the known ones are %s.", key, strings.Join(known, ", "))
}

func sortedKeys[V any](m map[string]V) []string {
	keys := make([]string, 0, len(m))
	for k := range m {
		keys = append(keys, k)
	}
	slices.Sort(keys)
	return keys
}

// object is a JSON object that is written in the order given.
type object []pair

type pair struct {
	key   string
	value any
}

// MarshalJSON keeps the order of members.
func (o object) MarshalJSON() ([]byte, error) {
	b := []byte{'{'}
	for i, p := range o {
		if i > 0 {
			b = append(b, ',')
		}
		b = append(b, encode(p.key)...)
		b = append(b, ':')
		b = append(b, encode(p.value)...)
	}
	return append(b, '}'), nil
}

// encode writes JSON without escaping what only HTML needs escaped. Its
// arguments are built by this package from types that can always be encoded.
func encode(v any) json.RawMessage {
	var b bytes.Buffer
	e := json.NewEncoder(&b)
	e.SetEscapeHTML(false)
	if err := e.Encode(v); err != nil {
		panic("settings: cannot encode: " + err.Error())
	}
	return bytes.TrimSuffix(b.Bytes(), []byte("\n"))
}
