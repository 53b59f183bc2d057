package index

import (
	"errors"
	"fmt"
	"path"
	"sync/atomic"

	"svc/internal/apierr"
	"svc/internal/invariant"
	"svc/internal/query"
	"svc/internal/settings"
	"svc/internal/vfs"
	"svc/segment/synonym"
)

// Every commit rewrites the manifest, so the manifest contains only small settings. Larger settings have an immutable file of their
// own, which the manifest names. The file also contains the table of synonyms, which searches read from mapped memory.

// inlineSettingsBytes is the size up to which settings are in the manifest.
const inlineSettingsBytes = 4 << 10

// settingsFile is an open file of settings. Each view with these settings holds a reference, and so does its creator until
// the commit. The last release unmaps the file, and unlinks it if no manifest names it.
type settingsFile struct {
	*synonym.File
	ix      *Index
	number  uint64
	of      *likeness
	refs    atomic.Int64
	unnamed atomic.Bool // no manifest names it, or will
	spoiled atomic.Bool // damaged, or its table is of another version of the analysis: the next commit writes another file
}

// openSettings opens a file of the settings in like, with one reference.
func (ix *Index) openSettings(number uint64, like *likeness) (*settingsFile, error) {
	name := path.Join(ix.dir, settingsName(number))
	opened, err := synonym.Open(ix.options.FS, name)
	if err != nil {
		return nil, fmt.Errorf("cannot open the settings of index %s: %w", ix.UID(), asFormat(name, err))
	}
	f := &settingsFile{File: opened, ix: ix, number: number, of: like}
	f.OnFault(func(damage *apierr.Corruption) { f.damaged(damage) })
	f.refs.Store(1)
	ix.holds.Add(1)
	ix.catalog.files.Add(1)
	f.spoiled.Store(opened.Stamp() != like.stamp())
	if _, err := opened.Table(); err != nil {
		f.damaged(err)
	}
	return f, nil
}

// asFormat gives the error of a file of settings that another svc wrote the type that it has for all kinds of files.
func asFormat(name string, err error) error {
	if another := new(synonym.UnknownVersion); errors.As(err, &another) {
		return &unknownFormat{name, another.Version, seal{version: synonym.FormatVersion, oldest: synonym.FormatVersion}}
	}
	return err
}

// damaged receives damage of the file. Its settings are in memory too, and the next commit writes them again.
func (f *settingsFile) damaged(err error) {
	if !f.spoiled.Swap(true) {
		f.ix.options.Logger.Error("a file of settings is damaged; the next change of the index writes a new one", "index", f.ix.UID(), "error", err)
	}
}

// release gives up a reference, as file.release does.
func (f *settingsFile) release() {
	n := f.refs.Add(-1)
	if n > 0 {
		return
	}
	if n < 0 && invariant.Enabled {
		invariant.Fail("%s was released %d times too often", f.Name(), -n)
	}
	ix, name := f.ix, f.Name()
	if err := f.Close(); err != nil {
		ix.options.Logger.Error("cannot close a file of settings", "file", name, "error", err)
	}
	if f.unnamed.Load() {
		if err := ix.options.FS.Remove(name); err != nil {
			ix.options.Logger.Warn("cannot remove an unused file of settings; the next start will", "file", name, "error", err)
		}
	}
	ix.unhold()
	ix.catalog.files.Done()
}

// serves reports whether the table of the file belongs to the settings in like.
func (f *settingsFile) serves(like *likeness) bool {
	if f.spoiled.Load() {
		return false
	}
	return f.of == like || f.of.settings.Synonyms == like.settings.Synonyms && f.Stamp() == like.stamp()
}

// table returns the table of the file, or one in memory when it has none that is of use.
func (f *settingsFile) table(like *likeness) *synonym.Table {
	if f.serves(like) {
		if t, err := f.Table(); err == nil {
			return t
		}
	}
	return like.table()
}

// keep gives a view that is not yet shared a file of its settings; nil: none.
func (v *View) keep(f *settingsFile) {
	if f != nil {
		f.refs.Add(1)
	}
	v.kept = f
}

// keepSettings gives next, the successor of cur, the file of its settings. If the settings are large and new, it writes one and
// returns it with a reference for the caller. committing is held.
func (ix *Index) keepSettings(cur, next *View) (made *settingsFile, err error) {
	switch like := next.likeness; {
	case like.inline != nil:
		return nil, nil
	case cur.kept != nil && cur.likeness == like && !cur.kept.spoiled.Load():
		next.keep(cur.kept)
		return nil, nil
	case cur.kept != nil && cur.kept.serves(like):
		t, err := cur.kept.Table()
		if err != nil {
			return nil, err
		}
		made, err = ix.writeSettings(like, t)
		if err != nil {
			return nil, err
		}
	default:
		made, err = ix.writeSettings(like, query.Synonyms(like.settings, like.analyzer))
		if err != nil {
			return nil, err
		}
	}
	next.keep(made)
	return made, nil
}

// file returns the content of a file of the settings with their table of synonyms.
func (l *likeness) file(t *synonym.Table) []byte {
	c := synonym.Content{Stamp: l.stamp(), Settings: l.settings.WithSynonyms("").Encode(), Synonyms: []byte(l.settings.Synonyms), Table: t}
	return c.Encode()
}

// copied returns the file for a copy of the index below dir: from memory if it is damaged.
func (f *settingsFile) copied(dir string) CopiedFile {
	c := CopiedFile{Name: path.Join(dir, settingsName(f.number)), Path: f.Name()}
	if err := f.Check(); err != nil {
		f.damaged(err)
		c.Path, c.Data = "", f.of.file(f.of.table())
	}
	return c
}

// inspectSettings checks the file of the current settings, and has another one written if it is damaged.
func (ix *Index) inspectSettings(v *View) {
	if v.kept == nil {
		return
	}
	damage := v.kept.Check()
	if damage == nil {
		return
	}
	v.kept.damaged(damage)
	if ix.catalog.follows.Load() {
		return // searches use the table in memory, and the next change of the settings writes another one
	}
	if err := ix.commit(&change{base: v}); err != nil {
		ix.options.Logger.Error("cannot rewrite a damaged file of settings; the next change of the index retries", "index", v.UID, "error", err)
	}
}

// writeSettings writes a file of settings and opens it.
func (ix *Index) writeSettings(like *likeness, t *synonym.Table) (*settingsFile, error) {
	number := ix.nextSegment.Add(1) - 1
	if number == 0 { // in a manifest 0 means no file
		number = ix.nextSegment.Add(1) - 1
	}
	name := path.Join(ix.dir, settingsName(number))
	if err := vfs.WriteFile(ix.options.FS, name, like.file(t)); err != nil {
		return nil, err
	}
	f, err := ix.openSettings(number, like)
	if err == nil && f.spoiled.Load() {
		_, err = f.Table()
		f.unnamed.Store(true)
		f.release()
		return nil, misread(err)
	}
	if err != nil {
		_ = ix.options.FS.Remove(name) // or the next open does it
	}
	if apierr.IsCorruption(err) {
		err = misread(err)
	}
	return f, err
}

// readSettings reads the settings that a manifest has or names. With an error it returns what of them is sound.
func readSettings(fsys vfs.FS, dir string, m *manifest) (form, error) {
	if m.SettingsFile == 0 {
		return form{encoded: m.Settings}, nil
	}
	name := m.settingsPath(dir)
	f, err := synonym.Open(fsys, name)
	if err != nil {
		return form{}, fmt.Errorf("cannot open %s: %w", name, asFormat(name, err))
	}
	defer f.Close()
	return formIn(f)
}

// formIn reads the settings in a file. Their synonyms stay encoded.
func formIn(f *synonym.File) (form, error) {
	encoded, err := f.Settings()
	if err != nil {
		return form{}, err
	}
	synonyms, err := f.Synonyms()
	if err != nil {
		return form{encoded: encoded, inFile: true}, err
	}
	return formFrom(f.Name(), encoded, synonyms)
}

// formFrom returns the settings that the file called name has.
func formFrom(name string, encoded, synonyms []byte) (stored form, err error) {
	stored = form{encoded: encoded, inFile: true}
	if stored.synonyms, err = settings.ParseSynonyms(synonyms); err != nil {
		return stored, &apierr.Corruption{File: name, Offset: -1, Reason: err.Error()}
	}
	return stored, nil
}

// settingsPath returns the name of the file that has the settings.
func (m *manifest) settingsPath(dir string) string {
	if m.SettingsFile == 0 {
		return path.Join(dir, manifestName)
	}
	return path.Join(dir, settingsName(m.SettingsFile))
}
