package task

import (
	"encoding/json"

	"svc/internal/settings"
)

// UpdateSettings changes the settings of an index.
type UpdateSettings struct {
	Update    *settings.Update
	Reset     bool // all of the update are resets, asked with DELETE
	MayCreate bool // false for resets
}

func (UpdateSettings) Kind() Kind { return SettingsUpdate }

func (c UpdateSettings) details(string, *outcome) json.RawMessage {
	b, err := c.Update.MarshalJSON()
	if err != nil {
		return json.RawMessage("{}")
	}
	return b
}

// CreateIndex creates an index.
type CreateIndex struct {
	PrimaryKey string `json:"primaryKey,omitempty"`
	EmptyKey   bool   `json:"emptyKey,omitempty"` // the request had an empty primary key: none is set, and the details show it
}

func (CreateIndex) Kind() Kind { return IndexCreation }

func (c CreateIndex) details(string, *outcome) json.RawMessage {
	return encode(struct {
		PrimaryKey *string `json:"primaryKey"`
	}{keyOrNull(c.PrimaryKey, c.EmptyKey)})
}

// UpdateIndex sets the primary key of an index, or renames it, or both.
type UpdateIndex struct {
	PrimaryKey string `json:"primaryKey,omitempty"`
	EmptyKey   bool   `json:"emptyKey,omitempty"` // as in CreateIndex
	NewUID     string `json:"newUid,omitempty"`
}

func (UpdateIndex) Kind() Kind { return IndexUpdate }

func (c UpdateIndex) details(indexUID string, _ *outcome) json.RawMessage {
	if c.NewUID == "" {
		return CreateIndex{PrimaryKey: c.PrimaryKey, EmptyKey: c.EmptyKey}.details(indexUID, nil)
	}
	return encode(struct {
		PrimaryKey *string `json:"primaryKey"`
		Old        string  `json:"oldIndexUid"`
		New        string  `json:"newIndexUid"`
	}{keyOrNull(c.PrimaryKey, c.EmptyKey), indexUID, c.NewUID})
}

// DeleteIndex deletes an index.
type DeleteIndex struct{}

func (DeleteIndex) Kind() Kind { return IndexDeletion }

func (DeleteIndex) details(_ string, o *outcome) json.RawMessage { return deletedDetails(o) }

// Swap swaps two index uids, or renames the first to the second.
type Swap struct {
	Indexes [2]string `json:"indexes"`
	Rename  bool      `json:"rename"`
}

// SwapIndexes exchanges the uids of indexes: all pairs or none.
type SwapIndexes struct {
	Swaps []Swap `json:"swaps"`
}

func (SwapIndexes) Kind() Kind { return IndexSwap }

func (c SwapIndexes) details(string, *outcome) json.RawMessage {
	if c.Swaps == nil {
		c.Swaps = []Swap{}
	}
	return encode(c)
}

// CompactIndex merges the segments of an index.
type CompactIndex struct{}

func (CompactIndex) Kind() Kind { return IndexCompaction }

func (CompactIndex) details(_ string, o *outcome) json.RawMessage {
	if o == nil || o.failed {
		return json.RawMessage("{}")
	}
	return encode(struct {
		Before string `json:"preCompactionSize"`
		After  string `json:"postCompactionSize"`
	}{FormatSize(o.before), FormatSize(o.after)})
}

// keyOrNull is a primary key as details show it.
func keyOrNull(key string, empty bool) *string {
	if empty {
		return &key
	}
	return textOrNull(key)
}

func (UpdateSettings) class() class      { return settingsClass }
func (c UpdateSettings) mayCreate() bool { return c.MayCreate }

func (DeleteIndex) class() class { return indexDeletion }
func (DeleteIndex) freesDisk()   {}

func (c UpdateIndex) touches() []string {
	if c.NewUID == "" {
		return nil
	}
	return []string{c.NewUID}
}

func (c UpdateIndex) renames(indexUID string) []Swap {
	if c.NewUID == "" {
		return nil
	}
	return []Swap{{Indexes: [2]string{indexUID, c.NewUID}, Rename: true}}
}

func (c SwapIndexes) touches() (uids []string) {
	for _, s := range c.Swaps {
		uids = append(uids, s.Indexes[0], s.Indexes[1])
	}
	return uids
}

func (c SwapIndexes) renames(string) []Swap { return c.Swaps }
