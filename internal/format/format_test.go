package format

import (
	"encoding/json"
	"math"
	"slices"
	"strings"
	"testing"

	"svc/internal/index"
	"svc/internal/query"
	"svc/internal/settings"
	"svc/internal/text"
)

// outline returns what formatting knows of an index with these settings and fields.
func outline(t testing.TB, change string, fields ...string) *index.Outline {
	t.Helper()
	s := settings.Default()
	if change != "" {
		u, err := settings.ParseUpdate([]byte(change), settings.Features{})
		if err != nil {
			t.Fatal(err)
		}
		if s, err = s.Apply(u); err != nil {
			t.Fatal(err)
		}
	}
	return &index.Outline{Settings: s, Fields: settings.Resolve(fields, s, "id"), Analyzer: text.New(text.Config{StopWords: s.StopWords})}
}

// highlights builds the highlights of a query of ordinary words. A trailing star marks a prefix, quotes a phrase, and bars join several
// forms of one term.
func highlights(q string) *query.Highlights {
	h := &query.Highlights{}
	term := 0
	for q != "" {
		var part string
		if q[0] == '"' {
			part, q, _ = strings.Cut(q[1:], `"`)
			q = strings.TrimPrefix(q, " ")
			words := strings.Split(part, " ")
			h.Phrases = append(h.Phrases, query.Phrase{Words: words, First: term, Last: term + len(words) - 1})
			term += len(words)
			continue
		}
		part, q, _ = strings.Cut(q, " ")
		w := query.Words{Forms: map[string]struct{}{}, First: term, Last: term}
		term++
		w.Word, _, _ = strings.Cut(strings.ReplaceAll(part, "*", ""), "|")
		for form := range strings.SplitSeq(part, "|") {
			if prefix, ok := strings.CutSuffix(form, "*"); ok {
				if w.Chars == 0 {
					w.Chars = len([]rune(prefix))
				}
				w.Prefixes = append(w.Prefixes, prefix)
			} else {
				w.Forms[form] = struct{}{}
			}
		}
		slices.Sort(w.Prefixes)
		h.Words = append(h.Words, w)
	}
	return h
}

func plain() *Options {
	return &Options{CropLength: 10, Marker: "…", PreTag: "<em>", PostTag: "</em>"}
}

const saltRoad = `{"id":1,"title":"The salt road","author":{"name":"Ida Wren","born":{"place":"Cork","year":1950}},"editions":[{"year":1990,"note":"first"},{"year":2001,"note":"second"}],"secret":"salt cellar","a.b":"dotted"}`

func TestFormatted(t *testing.T) {
	const (
		harbour = `{"id":1,"title":"A quiet harbour","note":"The harbour is quiet, QUIET as ever.","n":12}`
		values  = `{"id":7,"list":["red apple",7,true,null,["apple","fig"]],"nested":{"a":"apple","b":{"c":["an apple",1.50]}},"price":7.25,"flag":true,"none":null,"empty":"","emptyList":[],"emptyMap":{}}`
	)
	type list = []string
	tests := []struct {
		name      string
		doc       string
		settings  string
		query     string
		retrieve  list
		highlight list
		crop      list
		want      string // "" for none
	}{
		{"one attribute", harbour, "", "quiet harbour*", nil, list{"title"}, nil, `{"id":"1","title":"A <em>quiet</em> <em>harbour</em>","note":"The harbour is quiet, QUIET as ever.","n":"12"}`},
		{"all", harbour, "", "quiet harbour*", nil, list{"*"}, nil, `{"id":"1","title":"A <em>quiet</em> <em>harbour</em>","note":"The <em>harbour</em> is <em>quiet</em>, <em>QUIET</em> as ever.","n":"12"}`},
		{"nothing asked", harbour, "", "quiet", nil, nil, nil, ""},
		{"unknown", harbour, "", "quiet", nil, list{"unknown"}, nil, ""},
		{"number", harbour, "", "12*", list{}, list{"n"}, nil, `{"n":"<em>12</em>"}`},
		{"retrieved too", harbour, "", "quiet*", list{"note"}, list{"title"}, nil, `{"title":"A <em>quiet</em> harbour","note":"The harbour is quiet, QUIET as ever."}`},
		{"no query", harbour, "", "", list{}, list{"title"}, nil, `{"title":"A quiet harbour"}`},
		{"values", values, "", "apple*", nil, list{"*"}, nil, `{"id":"7","list":["red <em>apple</em>","7",true,null,["<em>apple</em>","fig"]],"nested":{"a":"<em>apple</em>","b":{"c":["an <em>apple</em>","1.5"]}},"price":"7.25","flag":true,"none":null,"empty":"","emptyList":[],"emptyMap":{}}`},
		{"decimals", values, "", "7*", list{}, list{"price"}, nil, `{"price":"<em>7</em>.25"}`},
		{"below", values, "", "apple*", list{"nested.b"}, list{"nested"}, nil, `{"nested":{"a":"<em>apple</em>","b":{"c":["an <em>apple</em>","1.5"]}}}`},
		{"nested path", values, "", "apple*", list{"nested.b"}, list{"nested.b.c"}, nil, `{"nested":{"b":{"c":["an <em>apple</em>","1.5"]}}}`},
		{"crop in arrays", values, "", "apple*", list{}, list{"list"}, list{"list:1"}, `{"list":["…<em>apple</em>","7",true,null,["<em>apple</em>","fig"]]}`},
		{"crop all", harbour, "", "quiet*", list{}, nil, list{"*:1", "note:2"}, `{"id":"1","title":"…quiet…","note":"…quiet, QUIET…","n":"12"}`},
		{"crop default", harbour, "", "quiet*", list{}, nil, list{"note:x"}, `{"note":"The harbour is quiet, QUIET as ever."}`},
		{"crop zero", harbour, "", "quiet*", list{}, nil, list{"note:0"}, `{"note":"The harbour is quiet, QUIET as ever."}`},
		{"displayed", saltRoad, `{"displayedAttributes":["id","title","author.name"]}`, "cellar*", list{"id"}, list{"*"}, nil, `{"id":"1","title":"The salt road","author":{"name":"Ida Wren"}}`},
		{"hidden", saltRoad, `{"displayedAttributes":["id","title","author.name"]}`, "salt*", list{"id"}, list{"secret"}, nil, ""},
		{"hidden one", saltRoad, `{"displayedAttributes":["id","title","author.name"]}`, "salt*", list{"id"}, list{"title", "secret"}, list{"title:1"}, `{"id":"1","title":"…<em>salt</em>…"}`},
		{"dotted key", saltRoad, "", "dotted*", list{}, list{"a.b"}, nil, `{"a.b":"<em>dotted</em>"}`},
		{"escapes", `{"t":"a \"quiet\"\n\u00e9t\u00e9 \\ "}`, "", "quiet ete*", nil, list{"t"}, nil, `{"t":"a \"<em>quiet</em>\"\n<em>été</em> \\ "}`},
		{"vectors", `{"id":1,"_vectors":{"e":[1,2]}}`, "", "1*", nil, list{"*"}, nil, `{"id":"<em>1</em>"}`},
	}
	fields := []string{"id", "title", "note", "n", "list", "nested", "nested.a", "nested.b.c", "price", "secret", "author.name", "a.b", "t", "_vectors"}
	for _, test := range tests {
		r := plain()
		r.Retrieve, r.Highlight, r.Crop = test.retrieve, test.highlight, test.crop
		f := New(outline(t, test.settings, fields...), r, highlights(test.query))
		if !f.Enabled {
			if test.want != "" {
				t.Errorf("%s: no _formatted", test.name)
			}
			continue
		}
		got, err := f.AppendFormatted(nil, 0, 0, []byte(test.doc), nil)
		if err != nil || test.want == "" || string(got) != test.want {
			t.Errorf("%s: %s, %v, want %s", test.name, got, err, test.want)
		}
	}
}

func TestFormattedKeepsOrder(t *testing.T) {
	r := plain()
	r.Highlight = []string{"b", "a"}
	f := New(outline(t, "", "a", "b"), r, highlights("x"))
	got, err := f.AppendFormatted([]byte(">"), 0, 0, []byte(`{"b":"\u0041 x","c":1,"a":"\u0041"}`), nil)
	if want := `>{"b":"A <em>x</em>","c":"1","a":"A"}`; err != nil || string(got) != want {
		t.Errorf("%s, %v, want %s", got, err, want)
	}
}

func TestMatchesPosition(t *testing.T) {
	const moon = `{"id":1,"title":"Blue moon over blue hills","tags":["moon","the blue one","sky"],"deep":{"list":[{"t":"a moon"},{"t":"none"},{"t":["x","moons"]}]},"n":2024,"flag":true,"_vectors":{"e":[2024]}}`
	tests := []struct {
		doc, settings, query, want string
	}{
		{moon, "", "blue*", `{"tags":[{"start":4,"length":4,"indices":[1]}],"title":[{"start":0,"length":4},{"start":15,"length":4}]}`},
		{moon, "", "blue moon*", `{"deep.list.t":[{"start":0,"length":4,"indices":[2,1]}],"tags":[{"start":4,"length":4,"indices":[1]}],"title":[{"start":0,"length":4},{"start":5,"length":4},{"start":15,"length":4}]}`},
		{moon, "", `"blue moon"`, `{"title":[{"start":0,"length":9}]}`},
		{moon, "", "2024*", `{"n":[{"start":0,"length":4}]}`},
		{moon, "", "true", `{}`},
		{moon, "", "", `{}`},
		{moon, `{"displayedAttributes":["tags"]}`, "blue moon*", `{"tags":[{"start":4,"length":4,"indices":[1]}]}`},
		{`{"tags":[["blue",["nested blue"]],"b"]}`, "", "blue", `{"tags":[{"start":7,"length":4,"indices":[0,1,0]}]}`},
		{`{"t":["foo a","b","c foo foo"]}`, "", "foo", `{"t":[{"start":2,"length":3,"indices":[2]},{"start":6,"length":3,"indices":[2]}]}`},
		{`{"t":"éé café ☕ café"}`, "", "cafe", `{"t":[{"start":5,"length":5},{"start":15,"length":5}]}`},
	}
	for _, test := range tests {
		f := New(outline(t, test.settings), plain(), highlights(test.query))
		for range 2 { // state of one document must not affect the next
			got, err := f.AppendMatches(nil, []byte(test.doc))
			if err != nil || string(got) != test.want {
				t.Errorf("%s: %s, %v, want %s", test.query, got, err, test.want)
			}
		}
	}
}

func TestHighlight(t *testing.T) {
	tests := []struct{ query, text, want string }{
		// Prefixes are highlighted as far as typed, also in misspelt words; whole words entirely.
		{"planet*", "PLANETARY planetx planet", "<em>PLANET</em>ARY <em>planet</em>x <em>planet</em>"},
		{"planet|planets", "planets PLANETARY", "<em>planets</em> PLANETARY"},
		{"plamet|planet*", "planets", "<em>planet</em>s"}, // below
		{"sunflowr*|sunflower*", "Sunflower seeds and sunflowers", "<em>Sunflowe</em>r seeds and <em>sunflowe</em>rs"},
		{"wonderfull*|wonderful*", "wonderful wonderfuls", "<em>wonderful</em> <em>wonderful</em>s"},
		{"cafe*", "CAFÉTERIA œuf", "<em>CAFÉ</em>TERIA œuf"},
		{"o*", "œuf", "<em>œ</em>uf"},
		{"plan*|plane*|planet*", "planx planet plane", "planx <em>plan</em>et <em>plan</em>e"}, // below
		// Phrases.
		{`"sun flower"`, "sun, flower. sun\nFLOWER sun", "<em>sun, flower</em>. <em>sun\nFLOWER</em> sun"},
		{`sunflower* "sun flower"`, "sun flower, sun-flower sunflower", "<em>sun flower</em>, <em>sun-flower</em> <em>sunflower</em>"},
		{`"new york city" nyc`, "New York City, NYC; new york", "<em>New York City</em>, <em>NYC</em>; new york"},
		{`"head of class"`, "head of class, head class, head of the class", "<em>head of class</em>, head class, head of the class"},
		// Stop words in the text are highlighted only in phrases.
		{`city* who* wh*`, "Who is whoever in the city", "Who is <em>who</em>ever in the <em>city</em>"},
		{`"who is" is who`, "Who is who", "<em>Who is</em> who"},
		{`"red wine" wine`, "red red wine wine red", "red <em>red wine</em> <em>wine</em> red"},
		{`"red red" red`, "red red red", "<em>red red</em> <em>red</em>"},
		// Adjacent tokens are highlighted separately, a word with its article.
		{"北京 大学", "北京大学", "<em>北京</em><em>大学</em>"},
		// Inner words may span two tokens, unless the first one is highlighted already.
		{"学生", "大学生和学生", "大<em>学生</em>和<em>学生</em>"}, {"学*", "大学生", "大<em>学</em>生"}, {"大学 学生", "大学生", "<em>大学</em><em>生</em>"},
		{"大学 学*", "大学生", "<em>大学</em>生"}, {"大* 学生", "大学生", "<em>大</em><em>学生</em>"}, {"机場", "飛機場", "飛機場"}, {"机场", "飛機場", "飛<em>機場</em>"},
		{`"机场 附近"`, "飞机场附近", "飞<em>机场附近</em>"}, {`"学生"`, "大学生", "大<em>学生</em>"}, {"学生", "大学\u00ad生", "大<em>学\u00ad生</em>"},
		{"سلام*", "السلام السلامة سلام", "<em>السلام</em> <em>السلام</em>ة <em>سلام</em>"},
		{"كتاب", "الكتاب", "<em>الكتاب</em>"}, {"الك*", "الكتاب", "<em>الكتاب</em>"}, {"ספר", "הספר ספר", "<em>הספר</em> <em>ספר</em>"},
		{"", "plain", "plain"},
	}
	for _, test := range tests {
		h := highlights(test.query)
		switch test.query {
		case "plamet|planet*":
			h.Words[0].Chars = 6
		case "plan*|plane*|planet*": // the typed word is not in the index
			h.Words[0].Prefixes = h.Words[0].Prefixes[1:]
		}
		r := plain()
		r.Highlight = []string{"t"}
		f := New(outline(t, `{"stopWords":["who","is"]}`, "t"), r, h)
		if got, err := f.format([]byte(test.text), f.optionsOf([]byte("t"))); err != nil || string(got) != test.want {
			t.Errorf("%s: %q, want %q", test.query, got, test.want)
		}
	}
}

func TestCrop(t *testing.T) {
	const (
		fox   = "The brown fox, quick and sly. It jumps over seven lazy dogs - then rests. It never wakes."
		clock = "In the old town there is a clock tower. It strikes once, every hour, on the hour; and a wooden figure walks out of a small door. Tourists wait below! The clock was made in 1510 by a locksmith who also built the harbour crane."
	)
	tests := []struct {
		query  string
		length int
		text   string
		want   string
	}{
		{"jumps", 1, fox, "…jumps…"}, {"jumps", 2, fox, "…It jumps…"}, {"jumps", 3, fox, "…It jumps over…"},
		{"jumps", 8, fox, "…It jumps over seven lazy dogs - then rests…"}, {"jumps", 9, fox, "…sly. It jumps over seven lazy dogs - then rests…"},
		{"sly jumps dogs", 7, fox, "…sly. It jumps over seven lazy dogs…"}, {"", 5, fox, "The brown fox, quick and…"},
		{"clock", 10, clock, "In the old town there is a clock tower. It…"}, {"locksmith", 10, clock, "…made in 1510 by a locksmith who also built the…"},
		{"wooden figure", 10, clock, "… and a wooden figure walks out of a small door…"}, {"clock locksmith", 10, clock, "…The clock was made in 1510 by a locksmith who…"},
		{"old", 10, clock, "In the old town there is a clock tower. It…"}, {"crane", 10, clock, "…1510 by a locksmith who also built the harbour crane."},
		{"tower", 1, clock, "…tower…"}, {"tower", 2, clock, "…clock tower…"}, {"tower", 3, clock, "…a clock tower…"}, {"tower", 5, clock, "…there is a clock tower…"},
		{"tower", 100, clock, clock}, {"clock", 10, "clock", "clock"}, {"", 10, "short text here", "short text here"}, {"x", 3, "", ""}, {"x", 3, " - ", " - "},
		{"clock made", 6, clock, "… The clock was made in 1510…"}, {`"clock was made"`, 5, clock, "…The clock was made in…"},
		// A phrase longer than the window shows its first words.
		{`"clock was made in"`, 2, clock, "…clock was…"}, {`"the harbour crane"`, 2, clock, "…the harbour…"},
		{`"the harbour crane" old`, 2, clock, "…the old…"},
		{"tower", math.MaxInt, clock, clock}, {"", math.MaxInt, clock, clock}, {`"clock was made" tower`, math.MaxInt - 1, clock, clock},
	}
	for _, test := range tests {
		r := plain()
		r.Crop, r.CropLength = []string{"t"}, test.length
		f := New(outline(t, "", "t"), r, highlights(test.query))
		if got, err := f.format([]byte(test.text), f.optionsOf([]byte("t"))); err != nil || string(got) != test.want {
			t.Errorf("%s %d: %q, want %q", test.query, test.length, got, test.want)
		}
	}
}

// TestFormattingFollowsTheIndex checks that the locales of a field tokenize its texts.
func TestFormattingFollowsTheIndex(t *testing.T) {
	r := plain()
	r.Highlight = []string{"t"}
	v := outline(t, `{"localizedAttributes":[{"attributePatterns":["t"],"locales":["swe"]}]}`, "t")
	f := New(v, r, highlights("räka"))
	got, err := f.AppendFormatted(nil, 0, 0, []byte(`{"t":"Räka raka"}`), nil)
	if want := `{"t":"<em>Räka</em> raka"}`; err != nil || string(got) != want {
		t.Errorf("%s, %v, want %s", got, err, want)
	}
}

func FuzzFormat(f *testing.F) {
	for _, doc := range []string{saltRoad, `{"t":"a b c"}`, `{}`, `{"a":[1,{"b":[]}]}`, `{"a":`, `[`, `{"a":}`, `{"a":1,}`, `{"a" :1}`, `{"a":[}]}`} {
		f.Add([]byte(doc), uint8(1))
	}
	f.Fuzz(func(t *testing.T, doc []byte, length uint8) {
		r := plain()
		r.Highlight, r.Crop, r.CropLength = []string{"*"}, []string{"*"}, int(length)
		fm := New(outline(t, ""), r, highlights(`salt a* "the salt"`))
		out, err := fm.AppendFormatted(nil, 0, 0, doc, nil)
		if err == nil && json.Valid(doc) && !json.Valid(out) {
			t.Errorf("%s gives %s", doc, out)
		}
		out, err = fm.AppendMatches(nil, doc)
		if err == nil && !json.Valid(out) {
			t.Errorf("%s gives %s", doc, out)
		}
	})
}
