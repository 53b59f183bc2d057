package chat

import (
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"maps"
	"net/url"
	"path"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"unicode/utf8"

	"svc/internal/apierr"
	"svc/internal/sealedjson"
	"svc/internal/settings"
	"svc/internal/vfs"
)

// formatVersion is the version of the file format.
const formatVersion = 1

const (
	maxWorkspaces = 10_000
	maxNameBytes  = 1024
)

// Store keeps the workspaces in a sealed JSON file, an object of settings by name, which a change replaces. Its methods are safe for
// concurrent use.
type Store struct {
	fs   vfs.FS
	file string

	mu  sync.Mutex // held while they are changed
	all atomic.Pointer[map[string]*Settings]
}

// Open reads the file, which may be missing.
func Open(fsys vfs.FS, file string) (*Store, error) {
	s := &Store{fs: fsys, file: file}
	if err := s.Reload(); err != nil {
		return nil, err
	}
	return s, nil
}

// Reload reads the file again after another program may have replaced it. After an error the old workspaces stay.
func (s *Store) Reload() error {
	s.mu.Lock()
	defer s.mu.Unlock()
	all, err := s.read()
	if err != nil {
		return fmt.Errorf("cannot read the chat workspaces: %w", err)
	}
	s.all.Store(&all)
	return nil
}

// read reads the file, which may be missing.
func (s *Store) read() (map[string]*Settings, error) {
	all := map[string]*Settings{}
	b, err := sealedjson.Read(s.fs, s.file, formatVersion)
	if errors.Is(err, fs.ErrNotExist) {
		return all, nil
	}
	if err != nil {
		return nil, err
	}
	err = json.Unmarshal(b, &all)
	for name, w := range all {
		if w == nil {
			err = fmt.Errorf("the workspace %q is null", name)
		}
	}
	if err != nil {
		return nil, &apierr.Corruption{File: s.file, Offset: -1, Reason: err.Error()}
	}
	return all, nil
}

// Names returns the names of all workspaces in order.
func (s *Store) Names() []string { return slices.Sorted(maps.Keys(*s.all.Load())) }

// Get returns the settings of a workspace (chat_not_found).
func (s *Store) Get(name string) (*Settings, error) {
	if w := (*s.all.Load())[name]; w != nil {
		return w, nil
	}
	return nil, apierr.New("chat_not_found", "There is no chat workspace `%s`. PATCH /chats/%s/settings creates it.", name, url.PathEscape(name))
}

// All returns the settings of all workspaces by name.
func (s *Store) All() map[string]*Settings { return maps.Clone(*s.all.Load()) }

// Update changes the settings of a workspace, which need not exist yet, all or nothing. change gets a copy. It may replace texts in
// it, but must not modify them. Errors are bad_request, or those of change.
func (s *Store) Update(name string, change func(*Settings) error) (*Settings, error) {
	if name == "" || len(name) > maxNameBytes || !utf8.ValidString(name) {
		return nil, bad("The name of a chat workspace must be UTF-8 text of 1 to %d bytes.", maxNameBytes)
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	all := s.All()
	before := all[name]
	if before == nil {
		if len(all) >= maxWorkspaces {
			return nil, bad("There are %d chat workspaces, the maximum. Delete one first.", maxWorkspaces)
		}
		before = New()
	}
	after := *before
	if err := change(&after); err != nil {
		return nil, err
	}
	if after.BaseURL != nil && before.BaseURL != nil {
		restored := settings.RestoreURL(*after.BaseURL, *before.BaseURL)
		after.BaseURL = &restored
	}
	if err := after.check(); err != nil {
		return nil, err
	}
	// A key that is still the old text was not given again. A client that does not know it could have it sent to an address of its
	// own.
	if after.APIKey != nil && after.APIKey == before.APIKey && after.origin() != before.origin() {
		return nil, bad("The provider's address changes from %s to %s. Send `apiKey` again, or null: svc does not send a stored key to another address.",
			settings.RedactURL(before.origin()), settings.RedactURL(after.origin()))
	}
	all[name] = &after
	return &after, s.replace(all)
}

// Reset gives a workspace the settings of a new one (chat_not_found).
func (s *Store) Reset(name string) (*Settings, error) {
	w := New()
	return w, s.change(name, func(all map[string]*Settings) { all[name] = w })
}

// Delete deletes a workspace (chat_not_found).
func (s *Store) Delete(name string) error {
	return s.change(name, func(all map[string]*Settings) { delete(all, name) })
}

func (s *Store) change(name string, change func(map[string]*Settings)) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if _, err := s.Get(name); err != nil {
		return err
	}
	all := s.All()
	change(all)
	return s.replace(all)
}

// Restore makes workspaces of another instance the stored ones, all or nothing.
func (s *Store) Restore(all map[string]*Settings) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.replace(maps.Clone(all))
}

// replace makes all the workspaces of the file, and then those that others see. s.mu is held.
func (s *Store) replace(all map[string]*Settings) error {
	b, err := json.Marshal(all)
	if err == nil {
		err = sealedjson.Write(s.fs, s.file, formatVersion, b)
	}
	if err != nil {
		return fmt.Errorf("cannot store the chat workspaces: %w", err)
	}
	s.all.Store(&all)
	return nil
}

// Adopt imports the workspaces that earlier versions kept as files of dumps in a directory, and removes the files. Workspaces in the
// store take precedence. Unreadable files are logged and stay.
func (s *Store) Adopt(dir string, log *slog.Logger) error {
	names, err := s.fs.List(dir)
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err != nil {
		return fmt.Errorf("cannot list the chat workspaces of a dump: %w", err)
	}
	var taken []string
	s.mu.Lock()
	defer s.mu.Unlock()
	all := s.All()
	for _, file := range names {
		name, ok := WorkspaceOf(file)
		if !ok {
			continue
		}
		b, err := vfs.ReadFile(s.fs, path.Join(dir, file))
		if err != nil {
			return fmt.Errorf("cannot read a chat workspace of a dump: %w", err)
		}
		w, err := Parse(b)
		if err != nil {
			log.Warn("a chat workspace of an imported dump cannot be used; it stays in the directory of unknown entries", "workspace", name, "file", path.Join(dir, file), "error", err)
			continue
		}
		taken = append(taken, file)
		if all[name] == nil {
			all[name] = w
		}
	}
	if len(taken) == 0 {
		return nil
	}
	if err := s.replace(all); err != nil {
		return err
	}
	for _, file := range taken {
		if err := s.fs.Remove(path.Join(dir, file)); err != nil {
			return fmt.Errorf("cannot remove a chat workspace that was taken in: %w", err)
		}
	}
	log.Info("chat workspaces of an imported dump are now in use", "workspaces", len(taken))
	return s.fs.SyncDir(dir)
}

const fileEnd = ".json"

// FileOf returns the name of a workspace's file in dumps: its name, with URL escapes for characters that a file name cannot have, and
// for text that looks like an escape.
func FileOf(name string) string {
	var b strings.Builder
	for i := range len(name) {
		c := name[i]
		escape := c < ' ' || c == 0x7f || strings.IndexByte(`/\`, c) >= 0 || c == '.' && i == 0 || c == '%' && isEscape(name[i:])
		if escape {
			fmt.Fprintf(&b, "%%%02X", c)
		} else {
			b.WriteByte(c)
		}
	}
	return b.String() + fileEnd
}

// WorkspaceOf returns the workspace of a file name. ok is false for other files.
func WorkspaceOf(file string) (name string, ok bool) {
	escaped, ok := strings.CutSuffix(file, fileEnd)
	if !ok || escaped == "" {
		return "", false
	}
	var b strings.Builder
	for i := 0; i < len(escaped); i++ {
		if isEscape(escaped[i:]) {
			c, err := url.PathUnescape(escaped[i : i+3])
			if err != nil {
				return "", false
			}
			b.WriteString(c)
			i += 2
		} else {
			b.WriteByte(escaped[i])
		}
	}
	return b.String(), true
}

// isEscape reports whether s begins with % and two hexadecimal digits.
func isEscape(s string) bool {
	const hex = "0123456789abcdefABCDEF"
	return len(s) >= 3 && s[0] == '%' && strings.IndexByte(hex, s[1]) >= 0 && strings.IndexByte(hex, s[2]) >= 0
}
