package main

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"io/fs"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"sync"
	"sync/atomic"
	"time"
)

// members is the cost of searches with members that other servers do not know. Each kind is measured with a newly started server, and
// all kinds of a part use the same words. The servers of a part are asked in turns: the same searches take 40% more processor time in
// one minute than in another, so kinds that are asked one after the other cannot be compared.
type members struct {
	parts [][]memberFigure
}

// memberKind is one kind of these searches. The others of a part are compared with the first.
type memberKind struct {
	name string
	make func(word string, i int) string // the body for a word, the i-th
}

// memberFigure is what a kind costs.
type memberFigure struct {
	name            string
	alone, updating *asked
}

const (
	memberWords  = 1200 // of a kind
	memberPages  = 8    // pages of all documents for each word: 1,200 of them take 0.2 s, in which there are 4 updates
	memberRounds = 2    // without updates; of a query, the least processor time counts, as other work on the machine only adds to it
	memberPrefix = `"aggregations":{"a":`

	// memberSettings are the settings for the documents of withObjects. The rule score has no effect without functions.
	memberSettings = `{"searchableAttributes":["name","summary","description","tags","maintainer"],` +
		`"filterableAttributes":["section","architecture","installedSize","tags",{"attributePatterns":["variants.*"],"features":{"filter":{"comparison":true},"elements":true}}],` +
		`"sortableAttributes":["installedSize","name"],` + scoreRules + `}`
	// scoreRules adds the rule for score functions to the default rules.
	scoreRules = `"rankingRules":["words","typo","score","proximity","attributeRank","sort","wordPosition","exactness"]`
)

// wordWith returns a function that makes the body of a search for a word with more members (more is "" for none).
func wordWith(more string) func(string, int) string {
	if more != "" {
		more = "," + more
	}
	return func(word string, _ int) string { return fmt.Sprintf(`{"q":%q%s}`, word, more) }
}

// allWith returns a function that makes the body of a search for all documents, with members that depend on its number.
func allWith(more func(i int) string) func(string, int) string {
	return func(_ string, i int) string { return `{"q":"",` + more(i) + `}` }
}

// priceOf and pageOf make a price and a page of the number of a body. No number below memberWords has the price of another one, and none
// below memberPages times as many has the page, as svc caches answers.
func priceOf(i int) string { return fmt.Sprintf("%.2f", 100*float64(i)/memberWords) }

func pageOf(i int) string { return fmt.Sprintf(`"offset":%d,"limit":%d`, i%900, 20+i/900) }

var memberParts = [][]memberKind{
	{
		{"one word", wordWith("")},
		{"one word, all candidates counted (`facets: []`)", wordWith(`"facets":[]`)},
		{"one word, stats", wordWith(memberPrefix + `{"stats":"installedSize"}}`)},
		{"one word, histogram", wordWith(memberPrefix + `{"histogram":"installedSize","interval":5000}}`)},
		{"one word, terms with two stats", wordWith(memberPrefix + `{"terms":"section","aggregations":{"a":{"stats":"installedSize"},"b":{"stats":"installedSize"}}}}`)},
		{"one word, groups", wordWith(`"groupBy":{"attribute":"section"}`)},
		{"one word, groups of one hit", wordWith(`"groupBy":{"attribute":"section","hitsPerGroup":1}`)},
		{"one word, two score functions", wordWith(`"scoreFunctions":[{"name":"large","function":"log","attribute":"installedSize","scale":1000000},{"name":"usual","function":"decay","attribute":"installedSize","origin":500,"scale":500}]`)},
	},
	{
		{"one word, color and size, flat", wordWith(`"filter":"variants.color = red AND variants.size = 40"`)},
		{"one word, color and size, one object", wordWith(`"filter":"variants.{color = red AND size = 40}"`)},
	},
	{
		{"all documents, a range of prices, flat", allWith(func(i int) string { return fmt.Sprintf(`"filter":"variants.price > %s"`, priceOf(i)) })},
		{"all documents, a range of prices, one object", allWith(func(i int) string { return fmt.Sprintf(`"filter":"variants.{price > %s}"`, priceOf(i)) })},
	},
	{
		{"all documents, color and price, flat", allWith(func(i int) string {
			return fmt.Sprintf(`"filter":"variants.color = red AND variants.price > %s"`, priceOf(i))
		})},
		{"all documents, color and price, one object", allWith(func(i int) string { return fmt.Sprintf(`"filter":"variants.{color = red AND price > %s}"`, priceOf(i)) })},
	},
	{
		{"all documents", allWith(pageOf)},
		{"all documents, stats", allWith(func(i int) string {
			return pageOf(i) + "," + memberPrefix + `{"stats":"installedSize"}}`
		})},
		{"all documents, percentiles", allWith(func(i int) string { return pageOf(i) + "," + memberPrefix + `{"percentiles":"installedSize"}}` })},
	},
}

// drawFigures returns those of these searches that need no objects, as kinds of queries. They use the words of the searches for one
// word.
func drawFigures(kinds []queryKind) ([]queryKind, error) {
	words, err := wordsOf(kinds)
	if err != nil {
		return nil, err
	}
	var out []queryKind
	for _, k := range slices.Concat(memberParts[0][1:], memberParts[len(memberParts)-1][1:]) {
		kind := queryKind{name: k.name}
		for i, word := range words {
			kind.bodies = append(kind.bodies, []byte(k.make(word, i)))
		}
		out = append(out, kind)
	}
	return out, nil
}

// withObjects gives each document one to three objects of a color, a size and a price.
func withObjects(d *dataset) *dataset {
	g := rand.New(rand.NewPCG(3, 3))
	colors := []string{"red", "green", "blue", "white", "black", "grey", "brown", "yellow"}
	var b bytes.Buffer
	b.Grow(len(d.payload) + 128*d.documents)
	for line := range bytes.Lines(d.payload) {
		b.Write(bytes.TrimRight(line, "}\n"))
		b.WriteString(`, "variants": [`)
		for i := range 1 + g.IntN(3) {
			if i > 0 {
				b.WriteString(", ")
			}
			fmt.Fprintf(&b, `{"color": %q, "size": %d, "price": %.2f}`, colors[g.IntN(len(colors))], 36+g.IntN(12), 100*g.Float64())
		}
		b.WriteString("]}\n")
	}
	return &dataset{name: d.name, title: d.title, documents: d.documents, payload: b.Bytes(), objects: true}
}

// runMembers imports the documents and asks all kinds.
func (m *measurement) runMembers(ctx context.Context) (*members, error) {
	n := memberWords
	if m.Quick {
		n /= 20
	}
	kinds, err := drawQueries(m.data, n, true)
	if err != nil {
		return nil, err
	}
	words, err := wordsOf(kinds)
	if err != nil {
		return nil, err
	}
	m.data = withObjects(m.data)
	p := &program{name: "svc", measurement: m}
	if _, err := p.fill(ctx); err != nil {
		return nil, err
	}
	defer p.kill()
	if err := p.stop(); err != nil {
		return nil, err
	}
	f := &members{}
	for _, part := range memberParts {
		figures := make([]memberFigure, len(part))
		for i, k := range part {
			figures[i].name = k.name
		}
		f.parts = append(f.parts, figures)
	}
	for round := range memberRounds {
		for i, part := range memberParts {
			bodies := make([][][]byte, len(part))
			for j := range part {
				bodies[j] = memberBodies(i, j, words)
			}
			all, err := m.askInTurns(ctx, bodies)
			if err != nil {
				return nil, fmt.Errorf("%s: %w", part[0].name, err)
			}
			for j, a := range all {
				figure := &f.parts[i][j]
				if round == 0 {
					figure.alone = a
				}
				for n, cpu := range a.turns {
					figure.alone.turns[n] = min(figure.alone.turns[n], cpu)
				}
				progress("%s: %.0f a second", figure.name, a.rate())
			}
		}
	}
	for i, part := range memberParts { // at the end: updates leave segments of their own
		for j, k := range part {
			a, err := m.askBeside(ctx, memberBodies(i, j, words))
			if err != nil {
				return nil, fmt.Errorf("%s: %w", k.name, err)
			}
			f.parts[i][j].updating = a
			progress("%s, beside updates: %.0f a second", k.name, a.rate())
		}
	}
	return f, nil
}

// memberBodies makes the bodies of a kind of a part.
func memberBodies(part, kind int, words []string) [][]byte {
	times := 1
	if part == len(memberParts)-1 {
		times = memberPages
	}
	bodies := make([][]byte, times*len(words))
	for n := range bodies {
		bodies[n] = []byte(memberParts[part][kind].make(words[n%len(words)], n))
	}
	return bodies
}

// wordsOf returns the words of the searches of one word.
func wordsOf(kinds []queryKind) ([]string, error) {
	var words []string
	for _, body := range kinds[slices.IndexFunc(kinds, func(k queryKind) bool { return k.name == "one word" })].bodies {
		var r request
		if err := json.Unmarshal(body, &r); err != nil {
			return nil, fmt.Errorf("cannot read the query %s: %w", body, err)
		}
		words = append(words, r.Q)
	}
	return words, nil
}

// askInTurns asks servers that were just started, one a kind, each of the bodies of its kind once. The servers share the segment files, so
// none reads them into memory for the others.
func (m *measurement) askInTurns(ctx context.Context, bodies [][][]byte) (_ []*asked, err error) {
	servers, all := make([]*server, len(bodies)), make([]*asked, len(bodies))
	for i := range servers {
		own := *m
		own.dir = fmt.Sprint(m.dir, i)
		defer func() { err = cmp.Or(err, os.RemoveAll(own.dir)) }()
		if err := linkData(own.dir, m.dir); err != nil {
			return nil, err
		}
		if servers[i], err = own.start(ctx); err != nil {
			return nil, err
		}
		defer servers[i].kill()
		all[i] = &asked{}
	}
	var settling sync.WaitGroup
	for _, s := range servers {
		settling.Go(s.settle)
	}
	settling.Wait()
	for turn, n := 0, len(bodies[0]); turn*turnQueries < n; turn++ {
		for i := range servers {
			k := (turn + i) % len(servers)
			for _, body := range bodies[k][turn*turnQueries : min((turn+1)*turnQueries, n)] {
				if _, err := all[k].once(servers[k], body); err != nil {
					return nil, err
				}
			}
		}
	}
	for _, s := range servers {
		if err := s.stop(); err != nil {
			return nil, err
		}
	}
	return all, nil
}

// linkData makes a data directory with what another one has, which no server uses. The segment files are the same.
func linkData(to, from string) error {
	return filepath.WalkDir(from, func(name string, e fs.DirEntry, err error) error {
		if err != nil {
			return fmt.Errorf("cannot read the data directory: %w", err)
		}
		below, err := filepath.Rel(from, name)
		if err != nil {
			return fmt.Errorf("cannot find %s below %s: %w", name, from, err)
		}
		target := filepath.Join(to, below)
		switch {
		case e.IsDir():
			err = os.MkdirAll(target, 0o700)
		case filepath.Ext(name) == ".seg": // never changed
			err = os.Link(name, target)
		default:
			var content []byte
			if content, err = os.ReadFile(name); err == nil {
				err = os.WriteFile(target, content, 0o600)
			}
		}
		if err != nil {
			return fmt.Errorf("cannot copy the data directory: %w", err)
		}
		return nil
	})
}

// askBeside asks a server that was just started each of the bodies once, while one more client changes 20 documents a second.
func (m *measurement) askBeside(ctx context.Context, bodies [][]byte) (*asked, error) {
	s, err := m.start(ctx)
	if err != nil {
		return nil, err
	}
	defer s.kill()
	s.settle()
	var (
		changing sync.WaitGroup
		over     atomic.Bool
		failed   error
	)
	p := &program{measurement: m, server: s}
	changing.Go(func() { _, failed = p.keepChanging(over.Load) })
	a := &asked{}
	for _, body := range bodies {
		if _, err = a.once(s, body); err != nil {
			break
		}
	}
	over.Store(true)
	changing.Wait()
	if err := cmp.Or(err, failed); err != nil {
		return nil, err
	}
	return a, s.stop()
}

// cpu returns the processor time, in milliseconds, that a share of the first queries take at most.
func (a *asked) cpu(share float64) float64 {
	sorted := slices.Sorted(slices.Values(a.turns))
	return sorted[min(int(share*float64(len(sorted))), len(sorted)-1)]
}

// rate returns how many first queries one client got a second.
func (a *asked) rate() float64 {
	var sum time.Duration
	for _, took := range a.first {
		sum += took
	}
	return float64(len(a.first)) / sum.Seconds()
}

// table is the figures as Markdown.
func (f *members) table() []byte {
	var b bytes.Buffer
	b.WriteString("| search | CPU p50, ms | p90, ms | p50 ⁄ the first row of its part | queries/s of one client | beside 20 updates a second | share |\n| --- | --- | --- | --- | --- | --- | --- |\n")
	for _, part := range f.parts {
		for i, k := range part {
			ratio := ""
			if i > 0 {
				ratio = fmt.Sprintf("%.2f", k.alone.cpu(.5)/part[0].alone.cpu(.5))
			}
			fmt.Fprintf(&b, "| %s | %.3f | %.3f | %s | %.0f | %.0f | %.2f |\n", k.name, k.alone.cpu(.5), k.alone.cpu(.9), ratio,
				k.alone.rate(), k.updating.rate(), k.updating.rate()/k.alone.rate())
		}
	}
	return b.Bytes()
}
