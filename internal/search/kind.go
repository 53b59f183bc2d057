package search

import (
	"cmp"
	"encoding/json"
	"strings"

	"svc/internal/apierr"
)

// Hybrid requests a search by meaning, in addition to the search by words.
type Hybrid struct {
	Embedder string
	Ratio    *float64 // weight of the semantic half, from 0 to 1; nil: 0.5
}

// kind is how a search finds documents.
type kind uint8

const (
	keyword kind = iota
	semantic
	hybrid
)

const defaultRatio = 0.5

// ratio is the weight of the semantic half.
func (r *Request) ratio() float64 {
	if r.Hybrid == nil {
		return 0
	}
	if r.Hybrid.Ratio == nil {
		return defaultRatio
	}
	return *r.Hybrid.Ratio
}

// kind returns how the request finds documents. A vector or media alone means a search by meaning, whatever the ratio.
func (r *Request) kind() kind {
	asked := strings.TrimSpace(r.Query) != ""
	given := r.Vector != nil || r.Media != nil
	switch ratio := r.ratio(); {
	case r.Hybrid == nil:
		return keyword
	case !asked && given:
		return semantic
	case !asked || ratio == 0:
		return keyword
	case ratio == 1:
		return semantic
	}
	return hybrid
}

// Check refuses combinations of parameters that no index allows.
func (r *Request) Check() error {
	if err := cmp.Or(r.checkCursor(), r.checkSuggest()); err != nil {
		return err
	}
	switch {
	case r.Media != nil && r.Vector != nil:
		return apierr.New("invalid_search_media_and_vector", "`media` and `vector` exclude each other. Send the input to embed, or its vector.")
	case r.Hybrid == nil && r.Media != nil:
		return apierr.New("missing_search_hybrid", "`hybrid` is missing: a search by `media` needs `hybrid.embedder`.")
	case r.Hybrid == nil && r.Vector != nil:
		return apierr.New("missing_search_hybrid", "`hybrid` is missing: a search by `vector` needs `hybrid.embedder`.")
	}
	return nil
}

// object reports whether a JSON text is an object.
func object(v json.RawMessage) bool { return len(v) > 0 && v[0] == '{' }
