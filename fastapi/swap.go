package fastapi

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/valyala/fasthttp"

	"svc/internal/apierr"
	"svc/internal/task"
)

type swapPair struct {
	task.Swap
	given bool // indexes were
}

var swapParams = []param[swapPair]{
	{name: "indexes", code: "invalid_swap_indexes", kind: list, shape: schema{"type": "array", "items": uidShape, "minItems": 2, "maxItems": 2}, set: func(p *swapPair, a *arg) error {
		if len(a.list) != 2 {
			return a.expected("an array of two index uids")
		}
		for _, uid := range a.list {
			if !validUID(uid) {
				return a.expected("an array of two index uids (letters from a to z in either case, digits, - and _, at most 400 characters)")
			}
		}
		p.Indexes, p.given = [2]string(a.list), true
		return nil
	}},
	{name: "rename", code: "invalid_swap_rename", kind: flag, set: func(p *swapPair, a *arg) error { p.Rename = a.flag; return nil }},
}

// swapIndexes enqueues all swaps and renames of the body as one task. An index may be in one pair only, whether by its uid or by an
// alias.
func (s *Server) swapIndexes(ctx *fasthttp.RequestCtx) error {
	body, err := s.readJSON(ctx, nil)
	if err != nil {
		return err
	}
	if !body.array() {
		return apierr.New("bad_request", "The body must be an array of objects such as `{\"indexes\": [\"a\", \"b\"]}`, but it is %s.", body.kind())
	}
	swaps := []task.Swap{}
	seen := map[string]string{} // by uid, as it was named
	for element := range body.elements() {
		var p swapPair
		path := fmt.Sprintf("[%d].", len(swaps))
		if err := decode(&p, element, swapParams, object{path: path, code: "bad_request"}); err != nil {
			return err
		}
		if !p.given {
			return apierr.New("missing_swap_indexes", "`%sindexes` is missing: name the two indexes to swap.", path)
		}
		for i, named := range p.Indexes {
			uid := named
			if i == 0 || !p.Rename { // else it is a new name
				uid = aliasesOf(ctx).Index(named)
			}
			if seen[uid] != "" {
				return apierr.New("invalid_swap_duplicate_index_found", "The index `%s` is named twice. It can be in only one pair of a request.", named)
			}
			p.Indexes[i], seen[uid] = uid, named
		}
		swaps = append(swaps, p.Swap)
	}
	for uid, named := range seen {
		if c := caller(ctx); !c.Reaches(uid) {
			return c.Forbidden(named)
		}
	}
	concerns(ctx, strings.Join(slices.Sorted(maps.Keys(seen)), ", "))
	return s.enqueue(ctx, task.New{Content: task.SwapIndexes{Swaps: swaps}}, fasthttp.StatusAccepted)
}
