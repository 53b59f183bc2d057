package settings

import (
	"encoding/json"
	"fmt"
	"slices"
)

// JSON is the form of GET /settings: all settings that f opens, secrets redacted.
func (s *Settings) JSON(f Features) []byte { return encode(s.object(f, false)) }

// MarshalJSON is JSON without the settings of experimental features.
func (s *Settings) MarshalJSON() ([]byte, error) { return s.JSON(Features{}), nil }

// Full is the form of GET /settings with every setting and the secrets in clear, as dumps hold it.
func (s *Settings) Full() []byte {
	return encode(s.object(Features{ForeignKeys: true, Chat: true}, true))
}

// Patch is Full as a body of PATCH /settings, as exports send it. It omits settings that are not set if null would mean something
// else.
func (s *Settings) Patch() []byte {
	o := s.object(Features{ForeignKeys: true, Chat: true}, true)
	return encode(slices.DeleteFunc(o, func(p pair) bool { return table[byKey[p.key]].null != nil && string(encode(p.value)) == "null" }))
}

// One is the form of a sub-route's GET, secrets redacted.
func (s *Settings) One(route string) ([]byte, error) {
	row, ok := byRoute[route]
	if !ok {
		return nil, fmt.Errorf("no setting has the route %q", route)
	}
	return encode(table[row].show(s, false)), nil
}

func (s *Settings) object(f Features, secrets bool) object {
	o := make(object, 0, len(table))
	for i := range table {
		if t := &table[i]; t.shown(s, f) {
			o = append(o, pair{t.key, t.show(s, secrets)})
		}
	}
	return o
}

// encodingVersion is the version of Encode. A reader knows its own version and older ones.
const encodingVersion = 1

// stored is the form of settings in a manifest.
type stored struct {
	Version  int             `json:"version"`
	Settings json.RawMessage `json:"settings"`
}

// Encode is the form of settings in a manifest, secrets in clear. Equal settings have equal bytes.
func (s *Settings) Encode() []byte {
	o := s.object(Features{ForeignKeys: true, Chat: true}, true)
	for i := range o {
		if o[i].key == "embedders" {
			// As set, without the defaults, which another version may choose otherwise.
			o[i].value = dict(s.Embedders)
		}
	}
	return encode(stored{encodingVersion, encode(o)})
}

// Decode reads what Encode wrote.
func Decode(b []byte) (*Settings, error) {
	var st stored
	if err := json.Unmarshal(b, &st); err != nil {
		return nil, fmt.Errorf("cannot read stored settings: %w", err)
	}
	if st.Version < 1 || st.Version > encodingVersion {
		return nil, fmt.Errorf("cannot read stored settings: version %d is unknown, this svc writes version %d",
			st.Version, encodingVersion)
	}
	u, err := UnmarshalUpdate(st.Settings)
	if err != nil {
		return nil, err
	}
	s, err := Default().Apply(u)
	if err != nil {
		return nil, fmt.Errorf("cannot read stored settings: %w", err)
	}
	return s, nil
}
