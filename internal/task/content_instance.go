package task

import (
	"encoding/json"
	"maps"
	"slices"

	"svc/internal/settings"
)

// CreateDump writes a dump. Keys are the API keys at the moment of the request, in the form of the dump.
type CreateDump struct {
	Keys        json.RawMessage `json:"keys,omitempty"`
	InstanceUID string          `json:"instanceUid,omitempty"`
}

func (CreateDump) Kind() Kind { return DumpCreation }

func (CreateDump) details(string, *outcome) json.RawMessage {
	return json.RawMessage(`{"dumpUid":null}`)
}

// CreateSnapshot writes a snapshot.
type CreateSnapshot struct{}

func (CreateSnapshot) Kind() Kind { return SnapshotCreation }

func (CreateSnapshot) details(string, *outcome) json.RawMessage { return nil }

// ExportIndex says what of the indexes that match a pattern is exported.
type ExportIndex struct {
	Filter           json.RawMessage `json:"filter"`
	OverrideSettings bool            `json:"overrideSettings"`
}

// ExportTo sends documents and settings to another instance.
type ExportTo struct {
	URL         string                 `json:"url"`
	APIKey      string                 `json:"apiKey,omitempty"`
	PayloadSize int64                  `json:"payloadSize,omitempty"` // bytes; 0: not given
	Indexes     map[string]ExportIndex `json:"indexes"`               // by pattern
}

func (ExportTo) Kind() Kind { return Export }

func (c ExportTo) details(string, *outcome) json.RawMessage {
	b := []byte(`{"url":`)
	b = appendString(b, settings.RedactURL(c.URL))
	if c.APIKey != "" {
		b = append(b, `,"apiKey":`...)
		b = appendString(b, settings.Redact(c.APIKey))
	}
	if c.PayloadSize > 0 {
		b = append(b, `,"payloadSize":`...)
		b = appendString(b, FormatSize(c.PayloadSize))
	}
	b = append(b, `,"indexes":{`...)
	for i, pattern := range slices.Sorted(maps.Keys(c.Indexes)) {
		if i > 0 {
			b = append(b, ',')
		}
		b = appendString(b, pattern)
		b = append(b, ':')
		x := c.Indexes[pattern]
		if x.Filter == nil {
			x.Filter = json.RawMessage("null")
		}
		b = append(b, encode(x)...)
	}
	return append(b, "}}"...)
}

// Upgrade brings the data directory of an older version up to date.
type Upgrade struct {
	From string `json:"from"` // "v1.41.0"
	To   string `json:"to"`
}

func (Upgrade) Kind() Kind { return UpgradeDatabase }

func (c Upgrade) details(string, *outcome) json.RawMessage {
	return encode(struct {
		From string `json:"upgradeFrom"`
		To   string `json:"upgradeTo"`
	}{c.From, c.To})
}

// ChangeTopology moves documents between the instances of a network. State belongs to the executor of the kind.
type ChangeTopology struct {
	State          json.RawMessage `json:"state,omitempty"`
	MovedDocuments int             `json:"movedDocuments"`
	Message        string          `json:"message"`
}

func (ChangeTopology) Kind() Kind { return NetworkTopologyChange }

func (c ChangeTopology) details(string, *outcome) json.RawMessage {
	return encode(struct {
		Moved   int    `json:"movedDocuments"`
		Message string `json:"message"`
	}{c.MovedDocuments, c.Message})
}

// ended drops the secret.
func (c ExportTo) ended() (Content, bool) {
	if c.APIKey == "" {
		return nil, false
	}
	c.APIKey = ""
	return c, true
}

// ended drops the state, which has keys in it.
func (c ChangeTopology) ended() (Content, bool) {
	c.State = nil
	return c, true
}
