package rule

import (
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"path"
	"slices"
	"strings"
	"sync"
	"sync/atomic"

	"svc/internal/apierr"
	"svc/internal/sealedjson"
	"svc/internal/vfs"
)

// formatVersion is that of the file.
const formatVersion = 1

// Store keeps the rules in a sealed JSON file, an array in the order of their uids, which a change replaces.
// Its methods may be called at once.
type Store struct {
	fs   vfs.FS
	file string

	mu  sync.Mutex // held by who changes them
	set atomic.Pointer[Set]
}

// Open reads the file, which may be missing. kept is a directory with rules, a file each, that were imported before svc had
// any use for them: they are taken in, and their files removed. Those that cannot be understood stay, and log is told.
func Open(fsys vfs.FS, file, kept string, log *slog.Logger) (*Store, error) {
	s := &Store{fs: fsys, file: file}
	all, err := s.read()
	if err != nil {
		return nil, fmt.Errorf("cannot read the search rules: %w", err)
	}
	s.set.Store(newSet(all))
	if err := s.takeIn(kept, log); err != nil {
		return nil, fmt.Errorf("cannot take in the search rules of %s: %w", kept, err)
	}
	return s, nil
}

func (s *Store) read() ([]*Rule, error) {
	b, err := sealedjson.Read(s.fs, s.file, formatVersion)
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
			return nil, damaged(fmt.Errorf("rule %q is not where its uid belongs", all[i].UID))
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
			log.Warn("an imported search rule cannot be understood and has no effect; it is kept, and the next dump has it", "file", name, "error", err)
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
	log.Info("imported search rules are in effect", "rules", len(files))
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

// Change says what of a rule is given. A field that is given as nil loses its value.
type Change struct {
	Description *(*string)
	Priority    *(*uint64)
	Active      *bool
	Conditions  *[]Condition
	Actions     []Action // nil: not given
}

// Put changes a rule, or makes a new one, which needs actions (invalid_dynamic_search_rule_actions).
func (s *Store) Put(uid string, c Change) (r *Rule, created bool, err error) {
	if !ValidUID(uid) {
		return nil, false, NotFound(uid)
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	all := slices.Clone(s.Set().List())
	i, found := find(all, uid)
	r = &Rule{UID: uid, Active: true}
	if found {
		*r = *all[i]
	}
	if c.Description != nil {
		r.Description = *c.Description
	}
	if c.Priority != nil {
		r.Priority = *c.Priority
	}
	if c.Active != nil {
		r.Active = *c.Active
	}
	if c.Conditions != nil {
		r.Conditions = *c.Conditions
	}
	if c.Actions != nil {
		r.Actions = c.Actions
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

// replace makes all the rules of the file, and then those that Set returns.
func (s *Store) replace(all []*Rule) error {
	b := []byte{'['}
	for i, r := range all {
		if i > 0 {
			b = append(b, ',')
		}
		b = r.AppendJSON(b)
	}
	if err := sealedjson.Write(s.fs, s.file, formatVersion, append(b, ']')); err != nil {
		return fmt.Errorf("cannot store the search rules: %w", err)
	}
	s.set.Store(newSet(all))
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
