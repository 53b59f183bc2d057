package webhook

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"slices"
	"strings"
	"sync"
	"sync/atomic"

	"github.com/google/uuid"

	"svc/internal/apierr"
	"svc/internal/sealedjson"
	"svc/internal/settings"
	"svc/internal/vfs"
)

// formatVersion is the version of the file format.
const formatVersion = 1

// Store keeps the webhooks in a sealed JSON file, an array, which each change replaces. Its methods are safe for concurrent use.
type Store struct {
	fs       vfs.FS
	file     string
	launched *Webhook // nil: there is none

	mu    sync.Mutex                 // held while the webhooks are changed
	all   atomic.Pointer[[]*Webhook] // in the order of their UUIDs; never modified in place
	begin func(uuid.UUID) error      // called before a webhook is stored; nil: there is no sender yet
}

// follow has begin called before a webhook is stored.
func (s *Store) follow(begin func(uuid.UUID) error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.begin = begin
}

// Open reads the file, which may be missing. launched is the webhook of the command line, or nil. It is not stored.
func Open(fsys vfs.FS, file string, launched *Webhook) (*Store, error) {
	s := &Store{fs: fsys, file: file, launched: launched}
	if err := s.Reload(); err != nil {
		return nil, err
	}
	return s, nil
}

// Reload reads the file again after another program may have replaced it. After an error the old webhooks stay.
func (s *Store) Reload() error {
	s.mu.Lock()
	defer s.mu.Unlock()
	all, err := s.read()
	if err != nil {
		return fmt.Errorf("cannot read the webhooks: %w", err)
	}
	s.publish(all)
	return nil
}

// read reads the file, which may be missing.
func (s *Store) read() ([]*Webhook, error) {
	all := []*Webhook{}
	b, err := sealedjson.Read(s.fs, s.file, formatVersion)
	if errors.Is(err, fs.ErrNotExist) {
		return all, nil
	}
	if err != nil {
		return nil, err
	}
	if err := json.Unmarshal(b, &all); err != nil {
		return nil, &apierr.Corruption{File: s.file, Offset: -1, Reason: err.Error()}
	}
	for _, w := range all {
		if w == nil || w.UUID == uuid.Nil {
			return nil, &apierr.Corruption{File: s.file, Offset: -1, Reason: "a webhook without a UUID"}
		}
	}
	return all, nil
}

// publish makes the stored webhooks and that of the command line visible.
func (s *Store) publish(all []*Webhook) {
	if s.launched != nil {
		all = append(all, s.launched)
	}
	slices.SortFunc(all, func(a, b *Webhook) int { return bytes.Compare(a.UUID[:], b.UUID[:]) })
	s.all.Store(&all)
}

// List returns all webhooks in the order of their UUIDs, that of the command line first.
func (s *Store) List() []*Webhook { return *s.all.Load() }

// Get returns a webhook (webhook_not_found).
func (s *Store) Get(id uuid.UUID) (*Webhook, error) {
	for _, w := range s.List() {
		if w.UUID == id {
			return w, nil
		}
	}
	return nil, apierr.New("webhook_not_found", "There is no webhook `%s`. `GET /webhooks` lists them.", id)
}

// Change has the given properties of a webhook.
type Change struct {
	UUID         uuid.UUID // of a new webhook; zero: a random one
	URL          *string
	Headers      map[string]*string // nil removes a header
	ClearHeaders bool               // applied before Headers
}

// Create stores a new webhook (invalid_webhooks, invalid_webhook_url, invalid_webhook_headers). If a webhook has the UUID of the
// change, an earlier try of the same request created it, and Create returns it.
func (s *Store) Create(c Change) (*Webhook, error) {
	w := &Webhook{UUID: c.UUID, Headers: map[string]string{}}
	if c.UUID == uuid.Nil {
		w.UUID = uuid.New()
	}
	if c.URL != nil {
		w.URL = *c.URL
	}
	for name, v := range c.Headers {
		w.Headers[name] = ""
		if v != nil {
			w.Headers[name] = *v
		}
	}
	if err := w.check(); err != nil {
		return nil, err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if made, err := s.Get(w.UUID); err == nil {
		return made, nil
	}
	stored := s.editable()
	if len(stored) >= maxWebhooks {
		return nil, apierr.New("invalid_webhooks", "There are %d webhooks, the maximum. Delete one first.", maxWebhooks)
	}
	if s.begin != nil {
		if err := s.begin(w.UUID); err != nil {
			return nil, err
		}
	}
	return w, s.replace(append(stored, w))
}

// keepSecrets refuses a change of the host that would send it the headers of the old one: any of them may hold a secret.
func (c *Change) keepSecrets(before *Webhook) error {
	if c.URL == nil || checkURL(*c.URL) != nil || settings.Origin(*c.URL) == settings.Origin(before.URL) {
		return nil
	}
	var missing []string
	for name := range before.Headers {
		if _, given := c.Headers[name]; !given {
			missing = append(missing, "`"+name+"`")
		}
	}
	if len(missing) == 0 {
		return nil
	}
	slices.Sort(missing)
	return apierr.New("invalid_webhook_headers",
		"The new `url` leads to another host, and svc does not send it the stored headers %s. Send each of them again, or as null, or set `headers` to null.",
		strings.Join(missing, ", "))
}

// Update changes a webhook, all or nothing (webhook_not_found, immutable_webhook, invalid_webhook_url, invalid_webhook_headers).
func (s *Store) Update(id uuid.UUID, c Change) (*Webhook, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	before, err := s.target(id)
	if err != nil {
		return nil, err
	}
	w := &Webhook{UUID: id, URL: before.URL, Headers: map[string]string{}}
	if c.URL != nil {
		w.URL = settings.RestoreURL(*c.URL, before.URL)
	}
	if !c.ClearHeaders {
		if err := c.keepSecrets(before); err != nil {
			return nil, err
		}
		maps.Copy(w.Headers, before.Headers)
	}
	for name, v := range c.Headers {
		if v == nil {
			delete(w.Headers, name)
		} else {
			w.Headers[name] = *v
		}
	}
	if err := w.check(); err != nil {
		return nil, err
	}
	stored := s.editable()
	stored[slices.Index(stored, before)] = w
	return w, s.replace(stored)
}

// Delete deletes a webhook (webhook_not_found, immutable_webhook). It is not notified of batches that end later.
func (s *Store) Delete(id uuid.UUID) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	w, err := s.target(id)
	if err != nil {
		return err
	}
	stored := s.editable()
	i := slices.Index(stored, w)
	return s.replace(slices.Delete(stored, i, i+1))
}

// target returns the webhook to change.
func (s *Store) target(id uuid.UUID) (*Webhook, error) {
	if id == uuid.Nil {
		return nil, apierr.New("immutable_webhook", "The webhook `%s` comes from the command line. Change it there.", id)
	}
	return s.Get(id)
}

// editable returns a copy of the array of stored webhooks.
func (s *Store) editable() []*Webhook {
	return slices.DeleteFunc(slices.Clone(s.List()), func(w *Webhook) bool { return !w.Editable() })
}

// replace writes stored to the file and then publishes it.
func (s *Store) replace(stored []*Webhook) error {
	b, err := json.Marshal(stored)
	if err == nil {
		err = sealedjson.Write(s.fs, s.file, formatVersion, b)
	}
	if err != nil {
		return fmt.Errorf("cannot store the webhooks: %w", err)
	}
	s.publish(stored)
	return nil
}

// Restore replaces the stored webhooks by those of another instance, all or nothing (invalid_webhooks, invalid_webhook_url,
// invalid_webhook_headers).
func (s *Store) Restore(webhooks []*Webhook) error {
	if len(webhooks) > maxWebhooks {
		return apierr.New("invalid_webhooks", "There are %d webhooks, but at most %d can be stored.", len(webhooks), maxWebhooks)
	}
	for _, w := range webhooks {
		if !w.Editable() {
			return apierr.New("invalid_webhooks", "A webhook has the UUID `%s` of the webhook on the command line.", w.UUID)
		}
		if err := w.check(); err != nil {
			return err
		}
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.replace(slices.Clone(webhooks))
}
