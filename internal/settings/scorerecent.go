package settings

import (
	"bytes"
	"encoding/json"
	"hash/maphash"
	"sync/atomic"

	"svc/internal/apierr"
)

// recentScores are functions of recent requests, by the hash of their text. An application sends the same ones with each search, and
// reading them takes a tenth of the time of the search.
var (
	recentScores [32]atomic.Pointer[recentScore]
	recentSeed   = maphash.MakeSeed()
)

// maxRecentScore is the maximum number of bytes of the text of functions that are cached.
const maxRecentScore = 4 << 10

type recentScore struct {
	text      []byte
	functions *ScoreFunctions
}

// ParseScoreFunctions reads the request parameter that replaces the setting. The caller must not modify the result, which may be
// shared. Errors are *apierr.Error with the code. They name the member by its path, which begins with path.
func ParseScoreFunctions(text []byte, path string, code apierr.Code) (*ScoreFunctions, error) {
	recent := &recentScores[maphash.Bytes(recentSeed, text)%uint64(len(recentScores))]
	if r := recent.Load(); r != nil && bytes.Equal(r.text, text) {
		return r.functions, nil
	}
	var compact bytes.Buffer
	if err := json.Compact(&compact, text); err != nil {
		return nil, apierr.New(code, "`%s` is not valid JSON: %v.", path, err)
	}
	s, err := readScores(value{compact.Bytes(), path, code})
	if err == nil && len(text) <= maxRecentScore {
		recent.Store(&recentScore{bytes.Clone(text), s})
	}
	return s, err
}
