package filter

import (
	"errors"
	"fmt"
	"slices"

	"github.com/RoaringBitmap/roaring/v2"

	"svc/internal/apierr"
	"svc/internal/settings"
	"svc/segment"
)

// maxForeign is the maximum number of documents of one foreign index that all _foreign parts of a filter may select together.
const maxForeign = 1000

// Foreign is an index that a foreign key leads to. It is used during Bind only.
type Foreign struct {
	Fields    *settings.Fields
	Segments  []segment.Live
	Embedders []Embedder
}

// bindForeign evaluates the inner filter on the foreign index. The result is a test of the field for the ids of the matching
// documents. It first checks whether the index exists, so that this error does not depend on the other settings.
func (env *Env) bindForeign(f *foreign) (bound, error) {
	uid, err := f.index(env.ForeignKeys, env.Code)
	if err != nil {
		return nil, err
	}
	target, err := env.Foreign(uid)
	if err != nil {
		return nil, fmt.Errorf("cannot read the foreign index %s: %w", uid, err)
	}
	if target == nil {
		return nil, f.missing()
	}
	inner := Env{Fields: target.Fields, Code: env.Code, Contains: env.Contains, Embedders: target.Embedders, Stop: env.Stop}
	kid, err := inner.bind(f.kid)
	if err != nil {
		return nil, inForeign(uid, err)
	}
	ids, err := env.foreignIDs(f, uid, target, &Bound{root: kid})
	if err != nil {
		return nil, err
	}
	return env.bindCondition(f.test(ids))
}

// index returns the index that the field leads to.
func (f *foreign) index(keys []settings.ForeignKey, code apierr.Code) (uid string, err error) {
	key := slices.IndexFunc(keys, func(k settings.ForeignKey) bool { return k.FieldName == f.field })
	if key < 0 {
		return "", apierr.New(code, "%s: The attribute `%s` is not a foreign key: add it to foreignKeys of the index.", f.at, f.field)
	}
	return keys[key].ForeignIndexUID, nil
}

// missing returns the error of an index that does not exist. If the index exists but the caller may not read it, the error is the
// same and does not reveal the name.
func (f *foreign) missing() error {
	return apierr.New("index_not_found", "%s: The index of the foreign key `%s` does not exist, or your key has no access to it. See foreignKeys in the settings of the index.", f.at, f.field)
}

// inForeign is an error of the inner filter.
func inForeign(uid string, err error) error {
	e := apierr.From(err)
	return apierr.New(e.Code, "In the foreign index `%s`: %s", uid, e.Message)
}

// tooMany is the error of parts that select count documents of a foreign index.
func (f *foreign) tooMany(uid string, count uint64, code apierr.Code) error {
	return apierr.New(code, "%s: `_foreign` selects %d documents of the index `%s`, but a filter may select at most %d of a foreign index. Narrow it.",
		f.at, count, uid, maxForeign)
}

// test keeps the documents that name one of the foreign documents.
func (f *foreign) test(ids []string) *condition {
	return &condition{attr: f.field, at: f.at, op: in, values: ids}
}

// MostForeign is how many ids find has to return to Resolve: one more than a filter may select, so that Resolve can refuse it.
const MostForeign = maxForeign + 1

// HasForeign reports whether a filter, which may be nil, has a part that filters a foreign index.
func (e *Expr) HasForeign() bool {
	if e == nil {
		return false
	}
	found := false
	_ = walk(e.root, func(n node) error {
		_, is := n.(*foreign)
		found = found || is
		return nil
	})
	return found
}

// Resolve returns an equivalent filter that does not need foreign indexes: their parts become tests for ids. find returns the ids
// that an inner filter selects in a foreign index, at most MostForeign. known is false if there is no such index for the caller. keys
// are the foreign keys of the index. Errors are those of Bind, with the same code.
func (e *Expr) Resolve(keys []settings.ForeignKey, code apierr.Code, find func(uid string, inner *Expr) (ids []string, known bool, err error)) (*Expr, error) {
	selected := map[string]map[string]bool{} // by index
	var resolve func(n node) (node, error)
	resolve = func(n node) (node, error) {
		switch n := n.(type) {
		case *junction:
			kids := make([]node, len(n.kids))
			for i, k := range n.kids {
				var err error
				if kids[i], err = resolve(k); err != nil {
					return nil, err
				}
			}
			return &junction{n.or, kids}, nil
		case *not:
			kid, err := resolve(n.kid)
			return &not{kid}, err
		case *elements:
			kid, err := resolve(n.kid)
			return &elements{n.at, n.path, kid}, err
		case *foreign:
			uid, err := n.index(keys, code)
			if err != nil {
				return nil, err
			}
			ids, known, err := find(uid, &Expr{n.kid, e.code})
			switch {
			case err != nil && errors.As(err, new(*apierr.Error)):
				return nil, inForeign(uid, err)
			case err != nil:
				return nil, err
			case !known:
				return nil, n.missing()
			}
			if selected[uid] == nil {
				selected[uid] = map[string]bool{}
			}
			for _, id := range ids {
				selected[uid][id] = true
			}
			if count := len(selected[uid]); count > maxForeign {
				return nil, n.tooMany(uid, uint64(count), code)
			}
			return n.test(ids), nil
		}
		return n, nil
	}
	root, err := resolve(e.root)
	if err != nil {
		return nil, err
	}
	return &Expr{root, e.code}, nil
}

// foreignIDs returns the ids of the foreign documents that match, and counts those that no part before has selected.
func (env *Env) foreignIDs(f *foreign, uid string, target *Foreign, b *Bound) ([]string, error) {
	if env.selected == nil {
		env.selected = make(map[string][]*roaring.Bitmap)
	}
	if env.selected[uid] == nil {
		env.selected[uid] = make([]*roaring.Bitmap, len(target.Segments))
		for i := range target.Segments {
			env.selected[uid][i] = roaring.New()
		}
	}
	found := make([]*roaring.Bitmap, len(target.Segments))
	count := uint64(0)
	for i, s := range target.Segments {
		found[i] = b.live(source{Live: s, stop: env.Stop})
		all := env.selected[uid][i]
		all.Or(found[i])
		count += all.GetCardinality()
	}
	if count > maxForeign {
		return nil, f.tooMany(uid, count, env.Code)
	}
	var ids []string
	for i, s := range target.Segments {
		for it := found[i].Iterator(); it.HasNext(); {
			ids = append(ids, string(s.ExternalID(segment.Row(it.Next()))))
		}
	}
	return ids, nil
}
