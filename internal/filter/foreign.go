package filter

import (
	"fmt"
	"slices"

	"github.com/RoaringBitmap/roaring/v2"

	"svc/internal/apierr"
	"svc/internal/settings"
	"svc/segment"
)

// maxForeign is how many documents of one foreign index all _foreign parts of a filter may select.
const maxForeign = 1000

// Foreign is an index that a foreign key leads to. It is used during Bind only.
type Foreign struct {
	Fields    *settings.Fields
	Segments  []segment.Live
	Embedders []Embedder
}

// bindForeign evaluates the inner filter on the foreign index: what is left is a test of the field for the ids of the
// documents found. Whether there is such an index is asked first, so that it does not depend on the other settings.
func (env *Env) bindForeign(f *foreign) (bound, error) {
	key := slices.IndexFunc(env.ForeignKeys, func(k settings.ForeignKey) bool { return k.FieldName == f.field })
	if key < 0 {
		return nil, apierr.New(env.Code, "%s: The attribute `%s` is no foreign key: add it to foreignKeys of the index.", f.at, f.field)
	}
	uid := env.ForeignKeys[key].ForeignIndexUID
	target, err := env.Foreign(uid)
	if err != nil {
		return nil, fmt.Errorf("cannot look into the foreign index %s: %w", uid, err)
	}
	if target == nil {
		// It may be there, and not for this caller, who does not learn its name either.
		return nil, apierr.New("index_not_found", "%s: There is no index to which the foreign key `%s` leads, or it is not for your key. See foreignKeys in the settings of the index.", f.at, f.field)
	}
	inner := Env{Fields: target.Fields, Code: env.Code, Contains: env.Contains, Embedders: target.Embedders, Stop: env.Stop}
	kid, err := inner.bind(f.kid)
	if err != nil {
		e := apierr.From(err)
		return nil, apierr.New(e.Code, "In the foreign index `%s`: %s", uid, e.Message)
	}
	ids, err := env.foreignIDs(f, uid, target, &Bound{root: kid})
	if err != nil {
		return nil, err
	}
	return env.bindCondition(&condition{attr: f.field, at: f.at, op: in, values: ids})
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
		found[i] = b.live(source{s, nil, env.Stop})
		all := env.selected[uid][i]
		all.Or(found[i])
		count += all.GetCardinality()
	}
	if count > maxForeign {
		return nil, apierr.New(env.Code, "%s: `_foreign` selects %d documents of the index `%s`, but a filter may select %d of a foreign index at most: narrow it.",
			f.at, count, uid, maxForeign)
	}
	var ids []string
	for i, s := range target.Segments {
		for it := found[i].Iterator(); it.HasNext(); {
			ids = append(ids, string(s.ExternalID(segment.Row(it.Next()))))
		}
	}
	return ids, nil
}
