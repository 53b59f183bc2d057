package index

import (
	"encoding/json"
	"fmt"
	"path"
	"slices"
	"time"

	"svc/internal/apierr"
	"svc/internal/commit"
	"svc/internal/vfs"
	"svc/segment"
)

// manifest is the content of a MANIFEST: one state of an index, whole.
type manifest struct {
	CreatedAt   time.Time
	UpdatedAt   time.Time
	PrimaryKey  string `json:",omitempty"`
	Settings    []byte `json:",omitempty"` // settings.Encode; none when they have a file
	Fields      []string
	Segments    []segmentEntry
	NextSegment uint64 // no file has this number or a higher one
	NextBatch   uint64 // task batches below it are applied
	Results     []result

	Embedders    []embedderEntry    `json:",omitempty"` // by ascending name
	NextEmbedder segment.EmbedderID `json:",omitempty"` // no embedder ever had this number or a higher one

	SettingsFile uint64 `json:",omitempty"` // number of the file of settings; 0: none

	half bool // settings name halfPrecision; not read from a file

	// For statistics, so that they need not open segments; nil if an earlier program wrote the manifest, or if it is not counted.
	Size  *Size  `json:",omitempty"`
	Tally *tally `json:",omitempty"`
}

// segmentEntry is what a manifest says of one segment.
type segmentEntry struct {
	Number     uint64
	Tombstones uint64   `json:",omitempty"` // number of a list of deleted rows; 0: none
	Deleted    []byte   `json:",omitempty"` // other deleted rows, a roaring bitmap in its portable form
	Columns    []uint64 `json:",omitempty"` // numbers of its files of columns
}

// result is an OpResult of the last batch, stored so that a batch interrupted after its commit finishes with its right counts.
type result struct {
	Code    apierr.Code  `json:",omitempty"`
	Message string       `json:",omitempty"`
	Indexed int          `json:",omitempty"`
	Deleted int          `json:",omitempty"`
	Edited  int          `json:",omitempty"`
	Patched *PatchResult `json:",omitempty"`
}

// encodeResults keeps the parts of an error that clients see: its code and message.
func encodeResults(results []OpResult) []result {
	out := make([]result, len(results))
	for i, r := range results {
		out[i] = result{Indexed: r.Indexed, Deleted: r.Deleted, Edited: r.Edited, Patched: r.Patched}
		if r.Err != nil {
			e := apierr.From(r.Err)
			out[i].Code, out[i].Message = e.Code, e.Message
		}
	}
	return out
}

// decodeResults is the opposite of encodeResults.
func decodeResults(results []result) []OpResult {
	out := make([]OpResult, len(results))
	for i, r := range results {
		out[i] = OpResult{Indexed: r.Indexed, Deleted: r.Deleted, Edited: r.Edited, Patched: r.Patched}
		if r.Code != "" {
			out[i].Err = &apierr.Error{Code: r.Code, Message: r.Message}
		}
	}
	return out
}

// encode returns the bytes of the file, sealed with a checksum and the lowest version that can express the
// content.
func (m *manifest) encode() ([]byte, error) {
	content, err := json.Marshal(m)
	if err != nil {
		return nil, err
	}
	return manifestSeal.wrapAs(m.version(), content), nil
}

// version returns the lowest format version that can express the manifest, so that older versions of svc can read the
// index.
func (m *manifest) version() uint32 {
	if m.half || slices.ContainsFunc(m.Embedders, embedderEntry.hasHalf) {
		return halfVersion
	}
	if m.SettingsFile != 0 {
		return settingsVersion
	}
	if slices.ContainsFunc(m.Embedders, func(e embedderEntry) bool { return len(e.Unfit) > 0 }) {
		return unfitVersion
	}
	if slices.ContainsFunc(m.Segments, func(e segmentEntry) bool { return len(e.Columns) > 0 }) {
		return besideVersion
	}
	return tombstonesVersion
}

// readManifest reads and checks the manifest in a directory. Damage is an *apierr.Corruption.
func readManifest(fsys vfs.FS, dir string) (*manifest, error) {
	name := path.Join(dir, manifestName)
	b, err := vfs.ReadFile(fsys, name)
	if err != nil {
		return nil, fmt.Errorf("cannot read %s: %w", name, err)
	}
	return decodeManifest(name, b)
}

// decodeManifest reads what encode wrote. name is for errors.
func decodeManifest(name string, b []byte) (*manifest, error) {
	content, err := manifestSeal.unwrap(name, b)
	if err != nil {
		return nil, err
	}
	m := new(manifest)
	if err := json.Unmarshal(content, m); err != nil {
		return nil, &apierr.Corruption{File: name, Offset: sealBytes, Reason: err.Error()}
	}
	var numbers []uint64
	m.eachFile(func(number uint64, _ func(uint64) string) { numbers = append(numbers, number) })
	slices.Sort(numbers)
	for i, n := range numbers {
		if n >= m.NextSegment || i > 0 && n == numbers[i-1] {
			return nil, &apierr.Corruption{File: name, Offset: -1, Reason: fmt.Sprintf("file %d is named twice or not below %d", n, m.NextSegment)}
		}
	}
	if len(m.Fields) > maxFields {
		return nil, &apierr.Corruption{File: name, Offset: -1, Reason: fmt.Sprintf("%d fields, want at most %d", len(m.Fields), maxFields)}
	}
	if err := m.checkTally(name); err != nil {
		return nil, err
	}
	return m, nil
}

// eachFile calls f with the number of each file that the manifest names, and a function that returns the name for it.
func (m *manifest) eachFile(f func(number uint64, name func(uint64) string)) {
	if m.SettingsFile != 0 {
		f(m.SettingsFile, settingsName)
	}
	for _, s := range m.Segments {
		f(s.Number, segmentName)
		if s.Tombstones != 0 {
			f(s.Tombstones, tombstonesName)
		}
		for _, c := range s.Columns {
			f(c, columnsName)
		}
	}
}

// files returns the names of the files that the manifest names, in the directory of its index.
func (m *manifest) files() (names []string) {
	m.eachFile(func(number uint64, name func(uint64) string) { names = append(names, name(number)) })
	return names
}

// change returns the change that makes b, an encoded manifest, that of the index in a directory.
func (m *manifest) change(dir string, b []byte) commit.Change {
	c := commit.Change{Kind: commit.Manifest, Name: path.Join(dir, manifestName), Data: b, Files: m.files()}
	for i, name := range c.Files {
		c.Files[i] = path.Join(dir, name)
	}
	return c
}

// FilesOf returns the names of the files that the manifest of an index names. name is the name of the manifest, for errors.
func FilesOf(name string, b []byte) ([]string, error) {
	m, err := decodeManifest(name, b)
	if err != nil {
		return nil, err
	}
	return m.files(), nil
}
