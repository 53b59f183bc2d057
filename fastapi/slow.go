package fastapi

import (
	"log/slog"
	"strings"
	"sync"
	"time"

	"github.com/valyala/fasthttp"

	"svc/internal/search"
)

// slowSearches logs slow searches, one line each. It limits the lines of a server that is slow as a whole.
type slowSearches struct {
	after time.Duration // from this duration on a search is slow; 0: none is logged
	log   *slog.Logger

	mu      sync.Mutex
	second  int64 // since 1970, of the lines that lines counts
	lines   int
	leftOut int // lines dropped since the last one written
}

// slowPerSecond is how many slow searches are logged in a second.
const slowPerSecond = 10

// slowQueries is how many queries of a multi-search are logged.
const slowQueries = 20

// slowTextBytes bounds what of a query or a filter is logged.
const slowTextBytes = 512

// may reports whether a line may be written now, and how many were dropped before it.
func (l *slowSearches) may(now time.Time) (ok bool, leftOut int) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if second := now.Unix(); second != l.second {
		l.second, l.lines = second, 0
	}
	if l.lines >= slowPerSecond {
		l.leftOut++
		return false, 0
	}
	l.lines++
	leftOut, l.leftOut = l.leftOut, 0
	return true, leftOut
}

// due reports whether a search that ends now was slow.
func (l *slowSearches) due(ctx *fasthttp.RequestCtx) bool {
	return l.after > 0 && time.Since(arrival(ctx)) >= l.after
}

// tellMany logs a multi-search if it was slow: its indexes and queries in one line.
func (l *slowSearches) tellMany(ctx *fasthttp.RequestCtx, queries []queryInput) {
	if !l.due(ctx) {
		return
	}
	var uids, texts, filters []string
	for i := range queries[:min(len(queries), slowQueries)] {
		q := &queries[i]
		uids, texts, filters = append(uids, q.uid), append(texts, shortenTo([]byte(q.Search.Query), slowTextBytes)), append(filters, shortenTo(q.sentFilter, slowTextBytes))
	}
	all := &searchInput{sentFilter: []byte(strings.Join(filters, " | "))}
	all.Search.Query = strings.Join(texts, " | ")
	l.tell(ctx, strings.Join(uids, " | "), all, nil)
}

// tell logs a search in an index if it was slow. found is nil if the search failed. The filter is that of the client: filters of
// tenant tokens and headers are not logged.
func (l *slowSearches) tell(ctx *fasthttp.RequestCtx, uid string, in *searchInput, found *search.Response) {
	if !l.due(ctx) {
		return
	}
	now := time.Now()
	took := now.Sub(arrival(ctx))
	ok, leftOut := l.may(now)
	if !ok {
		return
	}
	waited := requestOf(ctx).idle()
	attributes := []slog.Attr{
		slog.String("index", shortenTo([]byte(uid), slowTextBytes)), slog.String("q", shortenTo([]byte(in.Search.Query), slowTextBytes)),
		slog.String("filter", shortenTo(in.sentFilter, slowTextBytes)), slog.Duration("took", took), slog.Duration("waited", waited),
	}
	if found != nil {
		stages := []any{}
		for name, took := range found.Stages() {
			stages = append(stages, slog.Duration(name, took))
		}
		attributes = append(attributes, slog.Group("stages", stages...), slog.Int("hits", found.Hits()), slog.Bool("degraded", found.Degraded()))
	}
	if leftOut > 0 {
		attributes = append(attributes, slog.Int("left_out", leftOut))
	}
	l.log.LogAttrs(ctx, slog.LevelWarn, "slow search", attributes...)
}
