package dump

import (
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"path"
	"slices"
	"strings"
	"time"

	"svc/internal/index"
	"svc/internal/settings"
)

// importedIndex is an index of a dump of any version.
type importedIndex struct {
	folder     string
	uid        string
	primaryKey string
	created    time.Time
	updated    time.Time
	settings   func() ([]byte, error)
}

// listV6 lists the indexes of the dump. A folder with documents and without metadata is an error, because its documents would be lost
// silently.
func (m *importer) listV6() ([]importedIndex, error) {
	var list []importedIndex
	for _, name := range slices.Sorted(maps.Keys(m.in.small)) {
		dir, base := path.Split(name)
		folder, inside := strings.CutPrefix(strings.TrimSuffix(dir, "/"), indexesDir+"/")
		if !inside || base != metadataName {
			continue
		}
		var meta struct {
			UID        string     `json:"uid"`
			PrimaryKey *string    `json:"primaryKey"`
			CreatedAt  *time.Time `json:"createdAt"`
			UpdatedAt  *time.Time `json:"updatedAt"`
		}
		if err := json.Unmarshal(m.in.small[name], &meta); err != nil {
			return nil, fmt.Errorf("%s: %w", name, err)
		}
		if meta.CreatedAt == nil || meta.UpdatedAt == nil {
			return nil, fmt.Errorf("%s: it lacks createdAt or updatedAt", name)
		}
		s := dir + settingsName
		if m.in.small[s] == nil && m.in.settings[s] == "" {
			return nil, fmt.Errorf("%s is missing", s)
		}
		if _, ok := m.in.documents[folder]; !ok {
			return nil, fmt.Errorf("%s is missing", dir+documentsName)
		}
		read := func() ([]byte, error) { return m.in.settingsOf(m.FS, s) }
		list = append(list, importedIndex{folder, meta.UID, textOf(meta.PrimaryKey), *meta.CreatedAt, *meta.UpdatedAt, read})
	}
	// Other files in a folder without metadata would be lost silently.
	for folder := range m.in.documents {
		if m.in.small[indexesDir+"/"+folder+"/"+metadataName] == nil {
			return nil, fmt.Errorf("%s/%s/%s is missing", indexesDir, folder, metadataName)
		}
	}
	return list, nil
}

// Step numbers of the changes of an import. Those of the queue's batches are all higher.
const (
	settingsStep  = 1
	documentsStep = 2
)

func (m *importer) indexes(list []importedIndex) (err error) {
	catalog, err := index.OpenCatalog(m.Place.Indexes, m.Index)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, catalog.Close()) }()
	for _, x := range list {
		if err := m.index(catalog, x); err != nil {
			return fmt.Errorf("index %q: %w", x.uid, err)
		}
	}
	if err := m.aliases(catalog); err != nil {
		return fmt.Errorf("%s: %w", aliasesName, err)
	}
	return nil
}

// aliases makes those of the dump.
func (m *importer) aliases(catalog *index.Catalog) error {
	raw := m.in.small[aliasesName]
	if raw == nil {
		return nil
	}
	var aliases map[string]string
	if err := json.Unmarshal(raw, &aliases); err != nil {
		return err
	}
	var moves []index.AliasMove
	for _, alias := range slices.Sorted(maps.Keys(aliases)) {
		if !index.ValidUID(alias) || aliases[alias] == "" {
			return fmt.Errorf("%q is not an alias of %q", alias, aliases[alias])
		}
		moves = append(moves, index.AliasMove{Alias: alias, UID: aliases[alias]})
	}
	return catalog.MoveAliases(moves)
}

// index creates an index with its settings and then its documents, so that documents are indexed once.
func (m *importer) index(catalog *index.Catalog, x importedIndex) error {
	if !index.ValidUID(x.uid) {
		return errors.New("this is not a valid index uid")
	}
	if catalog.Get(x.uid) != nil {
		return errors.New("the dump has two of them")
	}
	raw, err := x.settings()
	if err != nil {
		return fmt.Errorf("settings: %w", err)
	}
	update, unknown, err := settings.UnmarshalForeign(raw)
	if err != nil {
		return fmt.Errorf("settings: %w", err)
	}
	if len(unknown) > 0 {
		m.Logger.Warn("unknown settings of the dump are skipped", "index", x.uid, "settings", unknown)
	}
	update, refused := update.WithoutEmbedders()
	for name, err := range refused {
		m.Logger.Warn("an embedder of the dump cannot be used and is skipped; vectors stay in the documents", "index", x.uid, "embedder", name, "error", err)
	}
	ix, err := catalog.Create(x.uid, x.primaryKey, 0)
	if err != nil {
		return err
	}
	if !update.Empty() {
		if err := m.apply1(ix, settingsStep, index.UpdateSettings{Update: update}); err != nil {
			return fmt.Errorf("settings: %w", err)
		}
	}
	docs := m.in.documents[x.folder]
	if docs.count > 0 {
		err := m.apply1(ix, documentsStep, index.AddDocuments{Payload: docs.file, Documents: docs.count, PrimaryKey: x.primaryKey, Unfit: true})
		if err != nil {
			return fmt.Errorf("documents: %w", err)
		}
		if err := m.FS.Remove(docs.file); err != nil {
			return err
		}
	}
	if err := ix.SetTimes(x.created, x.updated); err != nil {
		return err
	}
	m.Logger.Info("index imported", "index", x.uid, "documents", docs.count)
	return nil
}

// apply1 applies one operation as a batch of its own.
func (m *importer) apply1(ix *index.Index, step uint64, op index.Op) error {
	results, err := ix.Apply(m.ctx, step, []index.Op{op}, nil)
	if err != nil {
		return err
	}
	return results[0].Err
}
