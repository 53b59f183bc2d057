package settings

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"

	"svc/internal/apierr"
)

// Update is a change of settings: each is left alone, reset to its default, or
// given a value. It is immutable.
type Update struct {
	values []json.RawMessage // by row of the table: nil leaves it alone, null resets it (a null that was sent may mean something else)
}

func newUpdate() *Update { return &Update{values: make([]json.RawMessage, len(table))} }

var null = json.RawMessage("null")

// ParseUpdate reads the body of PATCH /settings. Errors are *apierr.Error with
// the field's code; unknown fields bad_request. foreignKeys and chat are refused
// unless enabled in f.
func ParseUpdate(body []byte, f Features) (*Update, error) {
	v, err := parse(body, "bad_request")
	if err != nil {
		return nil, err
	}
	members, err := v.members()
	if err != nil {
		return nil, err
	}
	u := newUpdate()
	for _, m := range members {
		row, ok := byKey[m.key]
		if !ok {
			if meant := apierr.Closest(m.key, settingNames()); meant != "" {
				return nil, apierr.New("bad_request", "There is no setting %.80q. Did you mean %q?", m.key, meant)
			}
			return nil, apierr.New("bad_request", "There is no setting %.80q: the known ones are %s.", m.key, strings.Join(settingNames(), ", "))
		}
		if err := u.set(row, m.value, f); err != nil {
			return nil, err
		}
	}
	return u, nil
}

func settingNames() []string {
	names := make([]string, len(table))
	for i := range table {
		names[i] = table[i].key
	}
	return names
}

// ParseOne reads the body of a sub-route's update.
func ParseOne(route string, body []byte, f Features) (*Update, error) {
	row, ok := byRoute[route]
	if !ok {
		return nil, fmt.Errorf("no setting has the route %q", route)
	}
	v, err := parse(body, table[row].code)
	if err != nil {
		return nil, err
	}
	u := newUpdate()
	return u, u.set(row, v, f)
}

// ParseNamed reads the body of a sub-route's update that names the setting: {"proximityPrecision": "byWord"}. Without
// the name nothing changes.
func ParseNamed(route string, body []byte, f Features) (*Update, error) {
	row, ok := byRoute[route]
	if !ok {
		return nil, fmt.Errorf("no setting has the route %q", route)
	}
	t := &table[row]
	v, err := parse(body, t.code)
	if err != nil {
		return nil, err
	}
	members, err := v.members()
	if err != nil {
		return nil, err
	}
	u := newUpdate()
	for _, m := range members {
		if m.key != t.key {
			return nil, v.fail("has the unknown field %q: the only one is %s.", m.key, t.key)
		}
		if err := u.set(row, m.value, f); err != nil {
			return nil, err
		}
	}
	return u, nil
}

// set checks a value by itself and keeps it.
func (u *Update) set(row int, v value, f Features) error {
	t := &table[row]
	v.code = t.code
	if !v.null() {
		if err := t.read(Default(), v); err != nil {
			return err
		}
		if t.open != nil {
			if err := t.open(v, f); err != nil {
				return err
			}
		}
	}
	if v.null() && t.null != nil {
		v.raw = t.null
	}
	u.values[row] = slices.Clone(v.raw)
	return nil
}

// ResetOne is what the DELETE of a sub-route means.
func ResetOne(route string) *Update {
	u := newUpdate()
	if row, ok := byRoute[route]; ok {
		u.values[row] = null
	}
	return u
}

// ResetAll is what DELETE /settings means.
func ResetAll() *Update {
	u := newUpdate()
	for i := range u.values {
		u.values[i] = null
	}
	return u
}

// MarshalJSON gives the keys that were sent, as task details echo them: sets sorted, rules with their
// features filled in, secrets redacted.
func (u *Update) MarshalJSON() ([]byte, error) { return u.json(false), nil }

// Full is the update in clear, as UnmarshalUpdate reads it.
func (u *Update) Full() []byte { return u.json(true) }

// json returns the update as tasks show it. Settings of svc alone that are reset with all others are left
// out, as clients of the reference do not know them.
func (u *Update) json(secrets bool) []byte {
	o := object{}
	all := !slices.ContainsFunc(u.values, func(raw json.RawMessage) bool { return raw == nil })
	for i, raw := range u.values {
		if raw == nil {
			continue
		}
		t := &table[i]
		v := value{raw, "." + t.key, t.code}
		if t.own && v.null() && !secrets && all {
			continue
		}
		p := pair{t.key, any(raw)}
		switch {
		case v.null() && t.starts():
			p.value = []string{"*"}
		case v.null():
		case t.echo != nil:
			p.value = t.echo(v, secrets)
		}
		o = append(o, p)
	}
	return encode(o)
}

// UnmarshalUpdate reads what Full wrote. Values are checked when they are applied.
func UnmarshalUpdate(b []byte) (*Update, error) {
	u, unknown, err := UnmarshalForeign(b)
	if err == nil && len(unknown) > 0 {
		return nil, fmt.Errorf("cannot read a settings update: no setting %q", unknown[0])
	}
	return u, err
}

// UnmarshalForeign is UnmarshalUpdate for the output of another engine or version: it skips unknown settings and returns their names.
func UnmarshalForeign(b []byte) (u *Update, unknown []string, err error) {
	v, err := parse(b, "bad_request")
	if err != nil {
		return nil, nil, fmt.Errorf("cannot read a settings update: %w", err)
	}
	members, err := v.members()
	if err != nil {
		return nil, nil, fmt.Errorf("cannot read a settings update: %w", err)
	}
	u = newUpdate()
	for _, m := range members {
		row, ok := byKey[m.key]
		if !ok {
			unknown = append(unknown, m.key)
			continue
		}
		u.values[row] = slices.Clone(m.raw)
	}
	return u, unknown, nil
}

// WithoutEmbedders returns the update without the embedders that cannot be applied to new settings, and the error of each. Another
// engine may accept what svc refuses, such as an empty model.
func (u *Update) WithoutEmbedders() (sound *Update, refused map[string]error) {
	row := byKey["embedders"]
	if u.values[row] == nil {
		return u, nil
	}
	members, err := value{raw: u.values[row]}.members()
	if err != nil { // null, or invalid as a whole
		return u, nil
	}
	var kept object
	for _, m := range members {
		one := newUpdate()
		one.values[row] = encode(object{{m.key, m.raw}})
		if _, err := Default().Apply(one); err != nil {
			if refused == nil {
				refused = make(map[string]error)
			}
			refused[m.key] = err
			continue
		}
		kept = append(kept, pair{m.key, m.raw})
	}
	if refused == nil {
		return u, nil
	}
	sound = &Update{values: slices.Clone(u.values)}
	sound.values[row] = encode(kept)
	return sound, refused
}

// Empty reports whether the update leaves everything alone.
func (u *Update) Empty() bool {
	return !slices.ContainsFunc(u.values, func(raw json.RawMessage) bool { return raw != nil })
}

// Each calls f for each setting that the update changes, in the order in which the API shows them, with an update of that one
// alone.
func (u *Update) Each(f func(key string, one *Update) error) error {
	for i, raw := range u.values {
		if raw == nil {
			continue
		}
		one := newUpdate()
		one.values[i] = raw
		if err := f(table[i].key, one); err != nil {
			return err
		}
	}
	return nil
}

// Apply returns the settings after u, and does not change s. The error (*apierr.Error) says why the result would be invalid.
func (s *Settings) Apply(u *Update) (*Settings, error) {
	next, defaults := *s, Default()
	for i, raw := range u.values {
		if raw == nil {
			continue
		}
		t := &table[i]
		v := value{raw, "." + t.key, t.code}
		if v.null() {
			t.reset(&next, defaults)
		} else if err := t.read(&next, v); err != nil {
			return nil, err
		}
		if t.valid != nil {
			if err := t.valid(&next, t.code); err != nil {
				return nil, err
			}
		}
	}
	return &next, nil
}
