package fastapi

import (
	"bytes"
	"encoding/base64"
	"encoding/json"
	flags "flag"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	"time"
)

var (
	dashboardDocuments = flags.Int("dashboard.documents", 3000, "how many documents are generated to type over and to look at")
	dashboardTyped     = flags.String("dashboard.typed", "kalomi terpan suvero dinkalo", "what TestTypingOverManyDocuments types")
)

// shownTitles makes a page record the title of each first hit that it shows.
const shownTitles = `
	window.shown = [];
	addEventListener("DOMContentLoaded", () => new MutationObserver(() => {
		const title = document.querySelector(".hit h2")?.lastChild.textContent;
		if (title && title !== window.shown.at(-1)) window.shown.push(title);
	}).observe(document.body, {childList: true, subtree: true}));`

// deafToAborts makes a page receive the answers of requests that it aborted, and counts them.
const deafToAborts = `
	const send = fetch;
	window.answered = 0;
	window.fetch = async (path, options) => {
		const answer = await send(path, {...options, signal: undefined}), text = await answer.text();
		if (String(path).endsWith("/search")) setTimeout(() => setTimeout(() => window.answered++, 20), 0);
		return new Response(text, {status: answer.status});
	};`

// TestTypingShowsTheLatestAnswerOnly delays the answers and delivers them in different orders: the page must not show an older answer
// after a newer one, even if aborted requests are answered.
func TestTypingShowsTheLatestAnswerOnly(t *testing.T) {
	b := startChromium(t)
	c, url := openPage(t, Options{})
	c.wait(c.json("POST", "/indexes/films/documents", `[{"id": 1, "title": "metropolis"}]`))
	for _, test := range []struct {
		name   string
		script string
		order  []int // order in which the queries "", m, me, met are answered
		shown  string
	}{
		{"aborted", "", []int{3, 2, 1, 0}, "answer to met"},
		{"answered", deafToAborts, []int{3, 2, 1, 0}, "answer to met"},
		{"answered out of order", deafToAborts, []int{1, 0, 3, 2}, "answer to met"},
		{"answered in order", deafToAborts, []int{0, 1, 2, 3}, "answer to met"},
	} {
		t.Run(test.name, func(t *testing.T) {
			tab := b.open()
			tab.t = t
			tab.do("Page.addScriptToEvaluateOnNewDocument", values{"source": shownTitles + test.script}, nil)
			tab.do("Fetch.enable", values{"patterns": []values{{"urlPattern": "*/search"}}}, nil)
			tab.listen("Fetch.requestPaused")
			tab.do("Page.navigate", values{"url": url + "/#/search?index=films"}, nil)
			var ids, queries []string
			held := func() {
				var request struct {
					RequestID string
					Request   struct{ PostData string }
				}
				tab.next(&request)
				var body struct{ Q string }
				if err := json.Unmarshal([]byte(request.Request.PostData), &body); err != nil {
					t.Fatal(err)
				}
				ids, queries = append(ids, request.RequestID), append(queries, body.Q)
			}
			held()
			tab.until(`document.activeElement.type === "search"`)
			for _, letter := range []string{"m", "e", "t"} {
				tab.typeIn(letter)
				held()
			}
			if want := []string{"", "m", "me", "met"}; !slices.Equal(queries, want) {
				t.Fatalf("asked %q, want %q", queries, want)
			}
			for _, i := range test.order {
				body := fmt.Sprintf(`{"hits":[{"id":1,"title":"answer to %s"}],"query":%q,"page":1,"hitsPerPage":20,"totalPages":1,"totalHits":1,"processingTimeMs":0}`, queries[i], queries[i])
				answer := <-b.send(tab.session, "Fetch.fulfillRequest", values{"requestId": ids[i], "responseCode": 200,
					"responseHeaders": []values{{"name": "Content-Type", "value": "application/json"}}, "body": base64.StdEncoding.EncodeToString([]byte(body))})
				if answer.Error != nil && test.script != "" {
					t.Fatal(answer.Error.Message) // an aborted request no longer exists
				}
			}
			tab.until(`shown.includes("answer to met")`)
			if test.script != "" {
				tab.until("answered === 4")
			}
			var shown []string
			if tab.eval("shown", &shown); !slices.Equal(shown, []string{test.shown}) {
				t.Errorf("the page showed %q", shown)
			}
		})
	}
}

// manyDocuments returns documents with titles of a few words out of many, one per line.
func manyDocuments(n int) []byte {
	r := rand.New(rand.NewPCG(1, 2))
	syllables := []string{"ka", "lo", "mi", "ter", "pan", "su", "ve", "ro", "din", "gra"}
	words := rand.NewZipf(r, 1.2, 4, 9999)
	word := func() string {
		x := words.Uint64()
		return syllables[x%10] + syllables[x/10%10] + syllables[x/100%10] + syllables[x/1000%10]
	}
	var b bytes.Buffer
	for id := range n {
		title := make([]string, 3+r.IntN(4))
		for i := range title {
			title[i] = word()
		}
		text := make([]string, 40)
		for i := range text {
			text[i] = word()
		}
		fmt.Fprintf(&b, `{"id":%d,"title":%q,"text":%q,"tags":[%q,%q],"size":%d,"year":%d}`+"\n", id, strings.Join(title, " "), strings.Join(text, " "),
			syllables[r.IntN(10)], syllables[r.IntN(10)]+"a", r.IntN(1e6), 1950+r.IntN(76))
	}
	return b.Bytes()
}

// busy returns the seconds of processor time that the thread of the page has used, by purpose.
func (p *tab) busy() map[string]float64 {
	p.t.Helper()
	var answer struct {
		Metrics []struct {
			Name  string
			Value float64
		}
	}
	p.do("Performance.getMetrics", values{}, &answer)
	seconds := map[string]float64{}
	for _, m := range answer.Metrics {
		seconds[m.Name] = m.Value
	}
	return seconds
}

// longestWait is the number of milliseconds after an answer within which its hits must be drawn, with -dashboard.every.
const longestWait = 50

// TestTypingOverManyDocuments types ten letters per second and checks that hits are drawn only for the query that is in the box. It logs
// how long after an answer its hits were painted and visible; with -dashboard.every, on an idle machine, it enforces a bound.
func TestTypingOverManyDocuments(t *testing.T) {
	tab := startChromium(t).open()
	c, url := openPage(t, Options{PayloadLimit: 1 << 30})
	lines, facets, sorts := manyLines(t)
	fillIndex(t, c, "many", `{"filterableAttributes":`+facets+`,"sortableAttributes":`+sorts+`}`, lines)
	// Each answer records when its text arrived, whose hits the next change draws, and when the browser had painted the first hit and
	// shown it. Later drawing below the screen and around the hits does not count.
	tab.do("Page.addScriptToEvaluateOnNewDocument", values{"source": `
		const send = fetch;
		window.came = []; window.drawn = [];
		window.fetch = async (path, options) => {
			const answer = await send(path, options);
			if (!String(path).endsWith("/search")) return answer;
			const body = JSON.parse(options.body);
			if (body.limit === 0 || body.suggest) return answer; // no hits: the page requests it when typing pauses
			const text = await answer.text();
			came.push({q: body.q, at: performance.now(), total: JSON.parse(text).totalHits});
			return new Response(text, {status: answer.status});
		};
		new PerformanceObserver(list => {
			for (const seen of list.getEntries()) {
				const entry = drawn.find(entry => entry.number === Number(seen.identifier));
				entry.painted = seen.paintTime - entry.at;
				entry.seen = seen.renderTime - entry.at;
			}
		}).observe({type: "element"});
		addEventListener("DOMContentLoaded", () => new MutationObserver(() => {
			const total = Number((document.querySelector(".summary")?.textContent ?? "").replace(/ found.*/, "").replace(/\D/g, "") || -1);
			if (total < 0 || drawn.at(-1)?.number === came.length) return;
			const {q, at, total: wanted} = came.at(-1);
			drawn.push({number: came.length, q, at, box: document.querySelector("input[type=search]").value, total, wanted});
			document.querySelector("section[aria-label=Hits] :is(h2, p)").setAttribute("elementtiming", came.length);
		}).observe(document.body, {childList: true, subtree: true, characterData: true}));`}, nil)
	tab.do("Page.navigate", values{"url": url + "/#/search?index=many"}, nil)
	tab.until(`document.querySelectorAll(".hit").length > 1 && document.activeElement.type === "search"`)
	typed := *dashboardTyped
	tab.do("Performance.enable", values{"timeDomain": "threadTicks"}, nil)
	began := tab.busy()
	every := time.NewTicker(100 * time.Millisecond)
	defer every.Stop()
	for _, letter := range typed {
		<-every.C
		tab.typeIn(string(letter))
	}
	tab.until(fmt.Sprintf(`drawn.at(-1)?.q === %q && drawn.at(-1).seen !== undefined`, typed))
	busy := tab.busy()
	var drawn []struct {
		Q, Box        string
		Total, Wanted int
		Painted, Seen float64 // 0 if the next page came before this one was painted
	}
	tab.eval("drawn", &drawn)
	var painted, seen []float64
	for i, d := range drawn {
		if d.Total != d.Wanted || i > 0 && len(d.Q) < len(drawn[i-1].Q) || !strings.HasPrefix(typed, d.Q) {
			t.Errorf("with %q in the box, hits of %q were drawn: %+v", d.Box, d.Q, d)
		}
		if d.Seen > 0 {
			painted, seen = append(painted, d.Painted), append(seen, d.Seen)
		}
	}
	slices.Sort(painted)
	slices.Sort(seen)
	t.Logf("%d documents, %d letters, %d pages of hits; from the answer until its hits are painted: median %.1f ms, at most %.1f ms; until they are on the screen: median %.1f ms, at most %.1f ms",
		bytes.Count(lines, []byte("\n")), len(typed), len(drawn), painted[len(painted)/2], painted[len(painted)-1], seen[len(seen)/2], seen[len(seen)-1])
	for _, name := range []string{"TaskDuration", "ScriptDuration", "RecalcStyleDuration", "LayoutDuration"} {
		t.Logf("%s: %.1f ms of processor time per page", name, (busy[name]-began[name])*1000/float64(len(drawn)))
	}
	if *everyLook && seen[len(seen)-1] > longestWait {
		t.Errorf("hits were drawn later than %d ms after their answer", longestWait)
	}
}
