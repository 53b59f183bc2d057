package filter

import (
	"slices"
	"strings"

	"github.com/RoaringBitmap/roaring/v2"

	"svc/internal/apierr"
	"svc/segment"
)

// Embedder is an embedder of an index as filters on _vectors know it. It is used during Bind only.
type Embedder struct {
	Name      string
	IDs       []segment.EmbedderID // under which documents have vectors
	Fragments map[string]uint16    // numbers of its indexing fragments, by name; empty: it embeds a template
}

// vectorsMatch tests for vectors of some embedders, made in one way.
type vectorsMatch struct {
	embedders []segment.EmbedderID
	kind      vectorKind
	fragment  uint16
}

// bindVectors checks that the index has the embedder and the fragment.
func (env *Env) bindVectors(v *vectors) (bound, error) {
	m := vectorsMatch{kind: v.kind}
	if v.embedder == "" {
		for _, e := range env.Embedders {
			m.embedders = append(m.embedders, e.IDs...)
		}
		return m, nil
	}
	i := slices.IndexFunc(env.Embedders, func(e Embedder) bool { return e.Name == v.embedder })
	if i < 0 {
		var names []string
		for _, e := range env.Embedders {
			names = append(names, e.Name)
		}
		return nil, apierr.New(env.Code, "%s: The index has no embedder `%s`.%s", v.at, v.embedder, known(v.embedder, names))
	}
	e := &env.Embedders[i]
	m.embedders = e.IDs
	switch {
	case v.kind == documentTemplate && len(e.Fragments) > 0:
		return nothing{}, nil
	case v.kind == fragment:
		number, ok := e.Fragments[v.fragment]
		if !ok {
			var names []string
			for name := range e.Fragments {
				names = append(names, name)
			}
			slices.Sort(names)
			return nil, apierr.New(env.Code, "%s: The embedder `%s` has no indexing fragment `%s`.%s", v.at, v.embedder, v.fragment, known(v.fragment, names))
		}
		m.fragment = number
	}
	return m, nil
}

// known ends the message about an unknown name with the one that was probably meant, or with all there are.
func known(name string, names []string) string {
	meant := apierr.Closest(name, names)
	switch {
	case meant != "":
		return " Did you mean `" + meant + "`?"
	case len(names) == 0:
		return " It has none."
	case len(names) > maxNames:
		return ""
	}
	return " There are `" + strings.Join(names, "`, `") + "`."
}

// maxNames is how many names a message lists at most.
const maxNames = 10

// rows returns the rows that have vectors of the kind, of any of the embedders.
func (m vectorsMatch) rows(s source, among *roaring.Bitmap) *roaring.Bitmap {
	found := roaring.New()
	for _, id := range m.embedders {
		v := s.Vectors(id)
		if v == nil {
			continue
		}
		switch m.kind {
		case anyVector:
			found.Or(v.Rows())
		case userProvided:
			found.Or(v.Given())
		case documentTemplate:
			found.Or(roaring.AndNot(v.Rows(), v.Given()))
		case regenerate:
			found.Or(v.Regenerate())
		case fragment:
			found.Or(v.Fragment(m.fragment))
		}
	}
	return within(found, among)
}

func (m vectorsMatch) size(s source) int {
	n := 0
	for _, id := range m.embedders {
		if v := s.Vectors(id); v != nil {
			n += int(v.Rows().GetCardinality())
		}
	}
	return min(n, s.Rows())
}
