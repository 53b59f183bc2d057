package index

import (
	"cmp"
	"encoding/binary"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"path"
	"slices"
	"strings"

	"github.com/RoaringBitmap/roaring/v2"
	"github.com/cespare/xxhash/v2"

	"svc/internal/apierr"
	"svc/internal/binfmt"
	"svc/internal/mapped"
	"svc/internal/settings"
	"svc/internal/vfs"
	"svc/segment"
	"svc/segment/synonym"
)

// Salvaged is the readable part of an index.
type Salvaged struct {
	UID      string
	View     *View // of the readable part; its segments are those of Segments. Never released
	Segments []*segment.Salvaged
	Lost     []*apierr.Corruption // what many documents suffer from
	Mended   []*apierr.Corruption // where one wrong bit of the manifest was turned back
}

// Close closes the files.
func (s *Salvaged) Close() error {
	var errs []error
	for _, r := range s.Segments {
		errs = append(errs, r.Close())
	}
	return errors.Join(errs...)
}

// SalvagedSegment is a segment file as an index of its own, with all of its rows.
func SalvagedSegment(r *segment.Salvaged) *Salvaged {
	return &Salvaged{View: &View{Segments: []segment.Live{{Reader: r.Reader}}}, Segments: []*segment.Salvaged{r}}
}

// SalvagedCatalog is the readable part of a catalog.
type SalvagedCatalog struct {
	Directories map[string]string // of the indexes, by uid
	Aliases     map[string]string // the uid behind each alias, also of indexes that are missing
	Lost        []*apierr.Corruption
	Mended      []*apierr.Corruption // where one wrong bit was turned back
	Steps       []uint64             // as Catalog.Batches, of the catalog and of the indexes whose manifest can be read
}

// SalvageCatalog reads the catalog in a directory that is not open and may be damaged. Without a catalog, the indexes are called lost-
// and a number, and the aliases are lost.
func SalvageCatalog(fsys vfs.FS, dir string) (*SalvagedCatalog, error) {
	c := &SalvagedCatalog{Directories: map[string]string{}}
	lose := func(name, reason string) {
		c.Lost = append(c.Lost, &apierr.Corruption{File: name, Offset: -1, Reason: reason})
	}
	names, err := fsys.List(dir)
	if errors.Is(err, fs.ErrNotExist) {
		lose(dir, "it is missing")
		return c, nil
	}
	if err != nil {
		return nil, fmt.Errorf("cannot list %s: %w", dir, err)
	}
	name := path.Join(dir, catalogName)
	content, mended, later, err := salvageSealed(fsys, name, catalogSeal, func(name string, b []byte) (content catalogContent, err error) {
		content, c.Aliases, err = decodeCatalog(name, b, baseReader(fsys, dir))
		return content, err
	})
	if err == nil {
		c.Mended, c.Lost = mended, append(c.Lost, later...)
		for uid, n := range content.indexes {
			at := path.Join(dir, directoryName(n))
			if !slices.Contains(names, directoryName(n)) {
				lose(at, "it is missing: all of index "+uid)
				continue
			}
			c.Directories[uid] = at
		}
		c.readSteps(fsys, content.last.Batch)
		return c, nil
	}
	c.Lost, c.Aliases = append(c.Lost, corruption(name, err)), nil
	lose(name, "the aliases, if there were any")
	for _, n := range names {
		if _, ok := number(n); ok {
			c.Directories["lost-"+n] = path.Join(dir, n)
			lose(name, "the uid of the index in "+n+", which is called lost-"+n)
		}
	}
	c.readSteps(fsys, 0)
	return c, nil
}

// readSteps sets Steps. own is that of the catalog, 0 if it is unknown.
func (c *SalvagedCatalog) readSteps(fsys vfs.FS, own uint64) {
	c.Steps = append(c.Steps, own)
	for _, dir := range c.Directories {
		m, _, _, err := salvageSealed(fsys, path.Join(dir, manifestName), manifestSeal, decodeManifest)
		if err == nil && m.NextBatch > 0 {
			c.Steps = append(c.Steps, m.NextBatch-1)
		}
	}
}

// salvageSealed reads a sealed file, and turns one wrong bit of it back. It reads a file of a later format as far as this program knows it,
// and returns later, which says so: nothing in that file is wrong, but it may have more.
func salvageSealed[T any](fsys vfs.FS, name string, s seal, decode func(name string, b []byte) (T, error)) (content T, mended, later []*apierr.Corruption, err error) {
	b, err := vfs.ReadFile(fsys, name)
	if err != nil {
		return content, nil, nil, err
	}
	content, err = decode(name, b)
	unknown := new(unknownFormat)
	if errors.As(err, &unknown) && unknown.version > s.version && unknown.version-s.version <= laterFormats {
		binary.LittleEndian.PutUint32(b[8:], s.version)
		later = []*apierr.Corruption{{File: name, Offset: 8, Reason: fmt.Sprintf(
			"what format version %d has beyond version %d, the last one that this svc knows", unknown.version, s.version)}}
		content, err = decode(name, b)
	}
	if err == nil || len(b) < sealBytes || len(b) > mendable {
		return content, nil, later, err
	}
	copy(b, s.wrap(nil)[:16])
	binary.LittleEndian.PutUint64(b[16:], uint64(len(b)-sealBytes))
	if !binfmt.MendBit(b[24:], func() bool { return binary.LittleEndian.Uint64(b[24:]) == xxhash.Sum64(b[sealBytes:]) }) {
		return content, nil, later, err
	}
	mended = []*apierr.Corruption{corruption(name, err)}
	content, err = decode(name, b)
	return content, mended, later, err
}

// laterFormats is how many format versions after the last known one are taken for those of later programs. A version above is damaged.
const laterFormats = 16

// mendable is the size in bytes of the largest sealed file in which a flipped bit is searched for: this takes a second.
const mendable = 64 << 10

// corruption returns an error in a file as damage of that file.
func corruption(name string, err error) *apierr.Corruption {
	var damage *apierr.Corruption
	if errors.As(err, &damage) {
		return damage
	}
	return &apierr.Corruption{File: name, Offset: -1, Reason: err.Error()}
}

// Salvage opens what is readable of the index in a directory that is not open. Without a manifest it uses all segments in the
// directory, and the version of each document in the highest segment. Recently deleted documents may reappear.
func Salvage(fsys vfs.FS, dir, uid string) (*Salvaged, error) {
	names, err := fsys.List(dir)
	if err != nil {
		return nil, fmt.Errorf("cannot list %s: %w", dir, err)
	}
	s := &Salvaged{UID: uid}
	name := path.Join(dir, manifestName)
	m, mended, later, err := salvageSealed(fsys, name, manifestSeal, decodeManifest)
	s.Mended, s.Lost = mended, later
	whole := err == nil
	if !whole {
		s.lose(corruption(name, err))
		s.lose(&apierr.Corruption{File: name, Offset: -1, Reason: "settings, and which documents were replaced or deleted last"})
		m = new(manifest)
		for _, n := range names {
			if base, is := strings.CutSuffix(n, segSuffix); is {
				if n, ok := number(base); ok {
					m.Segments = append(m.Segments, segmentEntry{Number: n})
				}
			}
		}
		slices.SortFunc(m.Segments, func(a, b segmentEntry) int { return int(int64(a.Number - b.Number)) })
	}
	v := &View{Outline: Outline{UID: uid, PrimaryKey: m.PrimaryKey, CreatedAt: m.CreatedAt, UpdatedAt: m.UpdatedAt, names: m.Fields}}
	s.View = v
	if v.Settings, err = s.salvageSettings(fsys, dir, m); err != nil && whole {
		s.lose(corruption(m.settingsPath(dir), fmt.Errorf("settings: %w", err)))
	}
	if v.embedders, err = embeddersOf(m.Embedders, m.NextEmbedder, v.Settings, nil); err != nil {
		s.lose(&apierr.Corruption{File: name, Offset: -1, Reason: err.Error()})
		v.embedders = nil
	}
	for _, e := range m.Segments {
		r, err := segment.Salvage(fsys, path.Join(dir, segmentName(e.Number)))
		if err != nil {
			s.lose(corruption(path.Join(dir, segmentName(e.Number)), err))
			continue
		}
		t, err := readTombstones(fsys, dir, &e, r.Rows())
		if err != nil {
			s.lose(corruption(name, err))
		}
		deleted := t.all
		if deleted == nil {
			deleted = roaring.New()
		}
		s.Lost = append(s.Lost, r.Lost...)
		if r.Unverified {
			s.lose(&apierr.Corruption{File: r.Name(), Offset: -1, Reason: fmt.Sprintf("the checksums of its %d documents, which are decoded without verification", r.Rows())})
		}
		s.Segments = append(s.Segments, r)
		v.Segments = append(v.Segments, segment.Live{Reader: r.Reader, Deleted: deleted})
	}
	if !whole {
		s.dropOlder()
		v.PrimaryKey = s.findPrimaryKey()
	}
	return s, nil
}

// salvageSettings reads the settings that a manifest contains or names. With an error it returns the readable part.
func (s *Salvaged) salvageSettings(fsys vfs.FS, dir string, m *manifest) (*settings.Settings, error) {
	stored, err := readSettings(fsys, dir, m)
	if err != nil && m.SettingsFile != 0 {
		if mended, e := mendSettings(fsys, m.settingsPath(dir)); e == nil {
			s.Mended = append(s.Mended, corruption(m.settingsPath(dir), err))
			stored, err = mended, nil
		}
	}
	return decodeSettings(stored, err)
}

// mendSettings reads a file of settings, and turns one wrong bit of it back.
func mendSettings(fsys vfs.FS, name string) (form, error) {
	b, err := vfs.ReadFile(fsys, name)
	if err != nil {
		return form{}, err
	}
	if len(b) > mendable || !synonym.Mend(b) {
		return form{}, fmt.Errorf("%s cannot be repaired", name)
	}
	encoded, synonyms, err := synonym.Parts(b)
	if err != nil {
		return form{}, err
	}
	return formFrom(name, encoded, synonyms)
}

// decodeSettings decodes settings as far as they were read.
func decodeSettings(stored form, err error) (*settings.Settings, error) {
	s, damage := stored.decode()
	if damage != nil {
		return settings.Default(), cmp.Or(err, damage)
	}
	return s, err
}

func (s *Salvaged) lose(damage *apierr.Corruption) { s.Lost = append(s.Lost, damage) }

// dropOlder deletes each document from all segments but the highest that has it.
func (s *Salvaged) dropOlder() {
	for i, l := range s.View.Segments {
		for row := range segment.Row(l.Rows()) {
			_ = mapped.Guard(func() error { // unreadable files do no harm
				id := l.ExternalID(row)
				for _, later := range s.View.Segments[i+1:] {
					if _, found := later.Lookup(id); found {
						l.Deleted.Add(uint32(row))
						break
					}
				}
				return nil
			})
		}
	}
}

// keyProbe is the number of documents from which the primary key is guessed.
const keyProbe = 100

// findPrimaryKey returns the only first-level field whose value is the id in all checked documents.
func (s *Salvaged) findPrimaryKey() string {
	var candidates map[string]bool
	seen := 0
probe:
	for _, l := range s.View.Segments {
		for row := range segment.Row(l.Rows()) {
			_ = mapped.Guard(func() error {
				id := string(l.ExternalID(row))
				doc, err := l.AppendDocument(nil, row)
				var fields map[string]json.RawMessage
				if err != nil || id == "" || json.Unmarshal(doc, &fields) != nil {
					return nil
				}
				first := candidates == nil
				if first {
					candidates = map[string]bool{}
				}
				for name, value := range fields {
					is := strings.Trim(string(value), `"`) == id
					if first && is {
						candidates[name] = true
					} else if !is {
						delete(candidates, name)
					}
				}
				maps.DeleteFunc(candidates, func(name string, _ bool) bool { return fields[name] == nil })
				seen++
				return nil
			})
			if seen == keyProbe {
				break probe
			}
		}
	}
	if len(candidates) != 1 {
		return ""
	}
	for name := range candidates {
		return name
	}
	return ""
}

// EachDocument calls f with the place of each live document, in the order of DocIDs.
func (s *Salvaged) EachDocument(f func(seg int, row segment.Row) error) error {
	streams := make([]rowStream, len(s.View.Segments))
	for i, l := range s.View.Segments {
		streams[i] = rowStream{live: l, rows: l.LiveRows().Iterator(), head: item{seg: int32(i)}}
		streams[i].advance()
	}
	d := storedDocs{streams: streams}
	for d.findLeast(); ; d.next() {
		it, ok := d.peek()
		if !ok {
			return nil
		}
		if err := f(int(it.seg), it.row); err != nil {
			return err
		}
	}
}
