package rule

import (
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"maps"
	"path"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"svc/internal/apierr"
	"svc/internal/sealedjson"
	"svc/internal/vfs"
)

// Format versions of the file. A file with rules in newer forms has the second, so that an older svc refuses it.
const (
	formatVersion = 1
	formatObjects = 2
)

// Options of a store.
type Options struct {
	FS      vfs.FS
	File    string
	Kept    string // directory of imported rules, one per file; "": none
	Bounds  Bounds // the zero value stands for DefaultBounds
	Objects bool   // rules without actions are made in the form Objects, and not Mixed
	Log     *slog.Logger
}

// Store keeps the rules in a sealed JSON file, an array in the order of their uids, which a change replaces. Its methods are safe for
// concurrent use.
type Store struct {
	o    Options
	fs   vfs.FS
	file string

	mu  sync.Mutex // held while they are changed
	set atomic.Pointer[Set]
}

// Open reads the file, which may be missing. It imports the rules of Options.Kept and removes their files. Unreadable ones are logged
// and stay.
func Open(o Options) (*Store, error) {
	if o.Bounds == (Bounds{}) {
		o.Bounds = DefaultBounds
	}
	s := &Store{o: o, fs: o.FS, file: o.File}
	if err := s.Reload(); err != nil {
		return nil, err
	}
	if o.Kept == "" {
		return s, nil
	}
	if err := s.takeIn(o.Kept, o.Log); err != nil {
		return nil, fmt.Errorf("cannot import the search rules of %s: %w", o.Kept, err)
	}
	return s, nil
}

// Reload reads the file again after another program may have replaced it. After an error the old rules stay.
func (s *Store) Reload() error {
	s.mu.Lock()
	defer s.mu.Unlock()
	all, err := s.read()
	if err != nil {
		return fmt.Errorf("cannot read the search rules: %w", err)
	}
	s.set.Store(newSet(all, s.o.Bounds))
	return nil
}

// read reads the file. Rules are in the order of uids; another order is damage.
func (s *Store) read() ([]*Rule, error) {
	b, err := sealedjson.Read(s.fs, s.file, formatVersion, formatObjects)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	damaged := func(err error) error { return &apierr.Corruption{File: s.file, Offset: -1, Reason: err.Error()} }
	var raw []json.RawMessage
	if err := json.Unmarshal(b, &raw); err != nil {
		return nil, damaged(err)
	}
	all := make([]*Rule, len(raw))
	for i := range raw {
		if all[i], err = Read(raw[i]); err != nil {
			return nil, damaged(err)
		}
		if i > 0 && all[i-1].UID >= all[i].UID {
			return nil, damaged(fmt.Errorf("rule %q is out of order", all[i].UID))
		}
	}
	return all, nil
}

// takeIn adds the rules of a directory. A rule that is stored already is the newer one.
func (s *Store) takeIn(dir string, log *slog.Logger) error {
	names, err := s.fs.List(dir)
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err != nil {
		return err
	}
	slices.Sort(names)
	all := slices.Clone(s.Set().List())
	var files []string
	for _, name := range names {
		if !strings.HasSuffix(name, ".json") {
			continue
		}
		name = path.Join(dir, name)
		b, err := vfs.ReadFile(s.fs, name)
		if err != nil {
			return err
		}
		r, err := Read(b)
		if err != nil {
			log.Warn("an imported search rule is not valid and has no effect; svc keeps it and adds it to the next dump", "file", name, "error", err)
			continue
		}
		if i, found := find(all, r.UID); !found {
			all = slices.Insert(all, i, r)
		}
		files = append(files, name)
	}
	if len(files) == 0 {
		return nil
	}
	if err := s.replace(all); err != nil {
		return err
	}
	for _, name := range files {
		if err := s.fs.Remove(name); err != nil {
			return err
		}
	}
	log.Info("imported search rules are active", "rules", len(files))
	return s.fs.SyncDir(dir)
}

// find returns where the rule with a uid is, or belongs.
func find(all []*Rule, uid string) (int, bool) {
	return slices.BinarySearchFunc(all, uid, func(r *Rule, uid string) int { return strings.Compare(r.UID, uid) })
}

// Set returns the rules there are now.
func (s *Store) Set() *Set { return s.set.Load() }

// Get returns one (dynamic_search_rule_not_found).
func (s *Store) Get(uid string) (*Rule, error) {
	all := s.Set().List()
	if i, found := find(all, uid); found {
		return all[i], nil
	}
	return nil, NotFound(uid)
}

// Put changes or makes a rule in the form Lists. A rule without actions is refused (invalid_dynamic_search_rule_actions), and so is a
// change of a rule in a newer form that leaves a part of it which Lists cannot express (bad_request).
func (s *Store) Put(uid string, c Change) (r *Rule, created bool, err error) {
	if !ValidUID(uid) {
		return nil, false, NotFound(uid)
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	all := slices.Clone(s.Set().List())
	i, found := find(all, uid)
	var old *Rule
	if found {
		old = all[i]
	}
	if r, err = c.changed(uid, old); err != nil {
		return nil, false, err
	}
	if len(r.Actions) == 0 {
		return nil, false, noActions()
	}
	if found {
		all[i] = r
	} else {
		all = slices.Insert(all, i, r)
	}
	return r, !found, s.replace(all)
}

// Update is a change of one rule that was accepted as a task.
type Update struct {
	UID     string
	Rule    json.RawMessage // as ReadChange takes it; nil: the rule is deleted, if there is one
	AskedAt time.Time
}

// Apply applies updates in order and stores them together. refused has an error for each update that does not apply. If the file cannot
// be written, err says so and no update applies.
func (s *Store) Apply(updates []Update) (refused []error, err error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	byUID := make(map[string]*Rule, len(s.Set().List()))
	for _, r := range s.Set().List() {
		byUID[r.UID] = r
	}
	refused = make([]error, len(updates))
	changed := false
	for i, u := range updates {
		if u.Rule == nil {
			changed = changed || byUID[u.UID] != nil
			delete(byUID, u.UID)
			continue
		}
		r, err := s.updated(u, byUID[u.UID])
		if err != nil {
			refused[i] = err
			continue
		}
		byUID[u.UID] = r
		changed = true
	}
	if !changed {
		return refused, nil
	}
	all := slices.SortedFunc(maps.Values(byUID), func(a, b *Rule) int { return strings.Compare(a.UID, b.UID) })
	return refused, s.replace(all)
}

// updated returns the rule after an update; old is nil for a new rule.
func (s *Store) updated(u Update, old *Rule) (*Rule, error) {
	if !ValidUID(u.UID) {
		return nil, NotFound(u.UID)
	}
	c, err := ReadChange(u.Rule)
	if err != nil {
		return nil, err
	}
	if !c.shaped && old == nil && s.o.Objects {
		c.Form = Objects
	}
	r, err := c.changed(u.UID, old)
	if err == nil {
		r.UpdatedAt = u.AskedAt.UTC()
	}
	return r, err
}

// Clear deletes all rules and returns how many there were.
func (s *Store) Clear() (int, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	n := len(s.Set().List())
	if n == 0 {
		return 0, nil
	}
	return n, s.replace(nil)
}

// Delete deletes a rule (dynamic_search_rule_not_found).
func (s *Store) Delete(uid string) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	all := s.Set().List()
	i, found := find(all, uid)
	if !found {
		return NotFound(uid)
	}
	return s.replace(slices.Delete(slices.Clone(all), i, i+1))
}

// replace replaces all rules of the file, and then those that Set returns. It prepares the rules for matching, so that no search
// waits for this.
func (s *Store) replace(all []*Rule) error {
	b := []byte{'['}
	version := formatVersion
	for i, r := range all {
		if i > 0 {
			b = append(b, ',')
		}
		if r.Form != Lists {
			version = formatObjects
		}
		b = r.AppendJSON(b)
	}
	if err := sealedjson.Write(s.fs, s.file, version, append(b, ']')); err != nil {
		return fmt.Errorf("cannot store the search rules: %w", err)
	}
	s.set.Store(newSet(all, s.o.Bounds))
	return nil
}

// Dump returns each rule as dumps have it, in the order of uids.
func (s *Store) Dump() [][]byte {
	all := s.Set().List()
	dumped := make([][]byte, len(all))
	for i, r := range all {
		dumped[i] = r.AppendJSON(nil)
	}
	return dumped
}
