package fastapi

import (
	"iter"
	"time"

	"github.com/valyala/fasthttp"

	"svc/internal/budget"
)

// growingAnswer is an answer that is built in pieces. Each piece is charged to the request. The work stops on a timeout or when the
// client disconnects. Long work yields to searches and to other long work.
type growingAnswer struct {
	body  []byte
	turn  *turn
	meter budget.Meter
	room  *budget.Room // of the largest piece
}

func (s *Server) grow(ctx *fasthttp.RequestCtx) *growingAnswer {
	r := requestOf(ctx)
	t := (&turn{work: r.context(), request: r, slots: s.slots, since: time.Now()}).charged()
	return &growingAnswer{turn: t, meter: budget.NewMeter(t.Account(), 0), room: roomFor(ctx)}
}

// roomFor returns a room that charges the largest item that a request reads for its answer, and a copy of it.
func roomFor(ctx *fasthttp.RequestCtx) *budget.Room {
	room := budget.NewRoom(requestOf(ctx).bytes())
	return &room
}

// end gives back what the work held.
func (g *growingAnswer) end() { g.turn.slots.giveBack(g.turn) }

// grown is to be called after each piece.
func (g *growingAnswer) grown() error {
	if err := g.meter.Grown(len(g.body)); err != nil {
		return err
	}
	return g.turn.Yield()
}

// add appends v as JSON.
func (g *growingAnswer) add(v any) error {
	if n := jsonBytes(v); n > budget.Step {
		if err := g.room.Hold(n); err != nil {
			return err
		}
	}
	if own, ok := v.(interface{ AppendJSON([]byte) []byte }); ok {
		g.body = own.AppendJSON(g.body)
		return g.grown()
	}
	b, err := encoding.Marshal(v)
	if err != nil {
		return err
	}
	g.body = append(g.body, b...)
	return g.grown()
}

// answerList sends an object with the items of a list as results, read while the answer grows, and the members of rest, an object.
func answerList[T any](s *Server, ctx *fasthttp.RequestCtx, results iter.Seq2[T, error], rest any) error {
	g := s.grow(ctx)
	defer g.end()
	g.body = append(g.body, `{"results":[`...)
	empty := len(g.body)
	for item, err := range results {
		if err != nil {
			return err
		}
		if len(g.body) > empty {
			g.body = append(g.body, ',')
		}
		if err := g.add(item); err != nil {
			return err
		}
	}
	g.body = append(g.body, ']')
	after := len(g.body)
	if err := g.add(rest); err != nil {
		return err
	}
	g.body[after] = ',' // of rest, the brace
	answerRaw(ctx, g.body)
	return nil
}

// answerPage sends a page of all: at most limit items from offset on, as view shows them. If an item no longer exists, view returns
// false.
func answerPage[T, V any](s *Server, ctx *fasthttp.RequestCtx, all []T, offset, limit int, view func(T) (shown V, ok bool)) error {
	p := cut(all, offset, limit)
	return answerList(s, ctx, func(yield func(V, error) bool) {
		for _, item := range p.Results {
			if shown, ok := view(item); ok && !yield(shown, nil) {
				return
			}
		}
	}, struct {
		Offset int `json:"offset"`
		Limit  int `json:"limit"`
		Total  int `json:"total"`
	}{p.Offset, p.Limit, p.Total})
}
