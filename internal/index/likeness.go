package index

import (
	"crypto/sha256"
	"encoding/binary"
	"io"
	"runtime"
	"slices"
	"sync"
	"weak"

	"svc/internal/query"
	"svc/internal/settings"
	"svc/internal/text"
	"svc/segment/synonym"
)

// With thousands of indexes, most share their settings with many others. Data derived from settings is then computed and held once.

// likeness is derived from settings alone. It is immutable.
type likeness struct {
	settings *settings.Settings
	analyzer *text.Analyzer
	inline   []byte                // settings.Encode, as a manifest has them; nil when they are too large for it
	sum      [sha256.Size]byte     // of the settings
	table    func() *synonym.Table // of synonyms, in memory, for views without a file of settings
	stamp    func() uint64         // query.SynonymStamp
}

// form is how settings are stored.
type form struct {
	encoded  []byte            // settings.Encode, for a file without synonyms
	synonyms settings.Synonyms // of a file
	inFile   bool
}

// formOf returns how settings are to be stored.
func (c *Catalog) formOf(s *settings.Settings) form {
	rest := s.WithSynonyms("").Encode()
	if len(rest)+len(s.Synonyms) > c.options.inlineSettings {
		return form{rest, s.Synonyms, true}
	}
	return form{encoded: s.Encode()}
}

// decode reads the settings.
func (f *form) decode() (*settings.Settings, error) {
	s, err := settings.Decode(f.encoded)
	if err == nil && f.inFile {
		s = s.WithSynonyms(f.synonyms)
	}
	return s, err
}

// sum is the key under which indexes with the same settings share their decoded form.
func (f *form) sum() [sha256.Size]byte {
	h := sha256.New()
	h.Write(f.encoded)
	if f.inFile {
		h.Write([]byte{0}) // which JSON does not have
		_, _ = io.WriteString(h, string(f.synonyms))
	}
	return [sha256.Size]byte(h.Sum(nil))
}

// likenessOf returns the likeness of settings that are stored as f. If no open index has it, make creates it.
func (c *Catalog) likenessOf(f form, make func() (*settings.Settings, *text.Analyzer, error)) (*likeness, error) {
	sum := f.sum()
	return c.likenesses.of(sum, func() (*likeness, error) {
		s, a, err := make()
		if err != nil {
			return nil, err
		}
		l := &likeness{settings: s, analyzer: a, sum: sum}
		if !f.inFile {
			l.inline = f.encoded
		}
		l.table = sync.OnceValue(func() *synonym.Table { return query.Synonyms(s, a) })
		l.stamp = sync.OnceValue(func() uint64 { return query.SynonymStamp(s, a) })
		return l, nil
	})
}

// storedLikeness is likenessOf for settings as they are stored.
func (c *Catalog) storedLikeness(f form) (*likeness, error) {
	read := func() (*settings.Settings, *text.Analyzer, error) {
		s, err := f.decode()
		if err != nil {
			return nil, nil, err
		}
		return s, newAnalyzer(s), nil
	}
	if large := len(f.encoded)+len(f.synonyms) > c.options.inlineSettings; large == f.inFile {
		return c.likenessOf(f, read)
	}
	s, a, err := read() // an earlier program put large settings into the manifest
	if err != nil {
		return nil, err
	}
	return c.likenessOf(c.formOf(s), func() (*settings.Settings, *text.Analyzer, error) { return s, a, nil })
}

// fieldsOf is settings.Resolve for the settings of a.
func (c *Catalog) fieldsOf(a *likeness, names []string, primaryKey string) *settings.Fields {
	content := slices.Clone(a.sum[:])
	for _, name := range names {
		content = append(binary.AppendUvarint(content, uint64(len(name))), name...)
	}
	content = append(append(content, 0), primaryKey...) // no name is empty
	f, _ := c.fields.of(sha256.Sum256(content), func() (*settings.Fields, error) {
		return settings.Resolve(names, a.settings, primaryKey), nil
	})
	return f
}

// shared returns one value for equal content, identified by its checksum, while a holder keeps it alive.
type shared[T any] struct {
	mu     sync.Mutex
	values map[[sha256.Size]byte]weak.Pointer[T]
}

// of returns the value of some content. If there is none, make makes it; the error is that of make.
func (s *shared[T]) of(key [sha256.Size]byte, make func() (*T, error)) (*T, error) {
	if v := s.get(key); v != nil {
		return v, nil
	}
	made, err := make()
	if err != nil {
		return nil, err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if v := s.values[key].Value(); v != nil { // of another goroutine, meanwhile
		return v, nil
	}
	if s.values == nil {
		s.values = map[[sha256.Size]byte]weak.Pointer[T]{}
	}
	s.values[key] = weak.Make(made)
	runtime.AddCleanup(made, s.forget, key)
	return made, nil
}

// get returns the shared value of a key, or nil if it is no longer used.
func (s *shared[T]) get(key [sha256.Size]byte) *T {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.values[key].Value()
}

// forget is called when a value is no longer used.
func (s *shared[T]) forget(key [sha256.Size]byte) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.values[key].Value() == nil {
		delete(s.values, key)
	}
}

// newAnalyzer returns the analyzer of some settings. Most have the same one.
func newAnalyzer(s *settings.Settings) *text.Analyzer {
	c := text.Config{StopWords: s.StopWords, Separators: s.SeparatorTokens, NonSeparators: s.NonSeparatorTokens, Dictionary: s.Dictionary}
	if len(c.StopWords)+len(c.Separators)+len(c.NonSeparators)+len(c.Dictionary) == 0 {
		return plainAnalyzer()
	}
	return text.New(c)
}

var plainAnalyzer = sync.OnceValue(func() *text.Analyzer { return text.New(text.Config{}) })
