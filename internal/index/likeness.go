package index

import (
	"crypto/sha256"
	"encoding/binary"
	"runtime"
	"sync"
	"weak"

	"svc/internal/settings"
	"svc/internal/text"
)

// Where there are thousands of indexes, most have the settings that many others have. What is made of settings is then made and held once.

// likeness is what is made of settings alone. It is not modified.
type likeness struct {
	settings *settings.Settings
	analyzer *text.Analyzer
	encoded  []byte // settings.Encode
}

// likenessOf returns what is made of encoded settings, by make where no index has it.
func (c *Catalog) likenessOf(encoded []byte, make func() (*settings.Settings, *text.Analyzer, error)) (*likeness, error) {
	return c.likenesses.of(encoded, func() (*likeness, error) {
		s, a, err := make()
		return &likeness{s, a, encoded}, err
	})
}

// fieldsOf is settings.Resolve for the settings of a.
func (c *Catalog) fieldsOf(a *likeness, names []string, primaryKey string) *settings.Fields {
	content := binary.AppendUvarint(nil, uint64(len(a.encoded)))
	content = append(content, a.encoded...)
	for _, name := range names {
		content = append(binary.AppendUvarint(content, uint64(len(name))), name...)
	}
	content = append(append(content, 0), primaryKey...) // no name is empty
	f, _ := c.fields.of(content, func() (*settings.Fields, error) {
		return settings.Resolve(names, a.settings, primaryKey), nil
	})
	return f
}

// shared hands out one value for one content, as long as somebody has it.
type shared[T any] struct {
	mu     sync.Mutex
	values map[[sha256.Size]byte]weak.Pointer[T]
}

// of returns the value of some content, which make makes where nobody has it; whatever goes wrong there is its error.
func (s *shared[T]) of(content []byte, make func() (*T, error)) (*T, error) {
	key := sha256.Sum256(content)
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

func (s *shared[T]) get(key [sha256.Size]byte) *T {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.values[key].Value()
}

// forget is called when a value is gone.
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
