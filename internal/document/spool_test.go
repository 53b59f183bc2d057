package document

import (
	"bytes"
	"fmt"
	"io"
	"math/rand/v2"
	"path/filepath"
	"strings"
	"testing"

	"svc/internal/mapped"
	"svc/internal/numeric"
	"svc/internal/vfs"
)

// spooling is a writer that can spool large documents.
type spooling struct {
	bytes.Buffer
	dir   string
	count int
}

func (s *spooling) Spool() (*mapped.Spool, error) {
	s.count++
	return mapped.NewSpool(vfs.OS, filepath.ToSlash(filepath.Join(s.dir, fmt.Sprint(s.count))))
}

// TestSpooledDocuments converts large and small documents through files and in memory: the results must be equal.
func TestSpooledDocuments(t *testing.T) {
	open := mapped.Count()
	text := func(n int) string { return strings.Repeat("so much text, ", n/14) }
	for name, payload := range map[string]string{
		"one":                 `{"id":1,"text":"` + text(5<<20) + `"}`,
		"spaces":              `{"id":1, "text": "` + text(3<<20) + `", "more" : [ ` + strings.Repeat("1, ", 1<<20) + `1 ] }`,
		"small ones after it": `{"id":1,"text":"` + text(2<<20) + "\"}\n" + strings.Repeat("{\"id\": 2}\n", 300_000),
		"several":             `{"id":1,"text":"` + text(3<<20) + `"} {"id":2,"text":"` + text(4<<20) + "\"}\n{\"id\":3}\n" + `{"id":4,"text": "` + text(9<<20) + `"}`,
		"a key twice":         `{"id":1,"text":"a","text":"` + text(3<<20) + `"} {"id":2}`,
		"cut off":             `{"id":1,"text":"` + text(3<<20),
		"wrong at the end":    `{"id":1,"text":"` + text(3<<20) + "\"]",
		"wrong within":        `{"id":1,"text":"` + text(3<<20) + "\", 3, " + text(1<<20),
		"just the window":     `{"id":1,"text":"` + strings.Repeat("x", spoolBytes) + `"}{"id":2}`,
	} {
		t.Run(name, func(t *testing.T) {
			for _, f := range []Format{NDJSON, JSON} {
				if f == JSON {
					payload = "[" + strings.NewReplacer("} {", "},{", "}\n{", "},{", "}{", "},{").Replace(payload) + "]"
				}
				var want bytes.Buffer
				n, wantErr := Convert(&want, strings.NewReader(payload), f, 0)
				got := &spooling{dir: t.TempDir()}
				m, err := Convert(got, io.Reader(&pieces{r: rand.New(rand.NewPCG(1, 2)), text: payload}), f, 0)
				if fmt.Sprint(err) != fmt.Sprint(wantErr) {
					t.Fatalf("%v: %v, in memory %v", f, err, wantErr)
				}
				if err == nil && (m != n || !bytes.Equal(got.Bytes(), want.Bytes())) {
					t.Fatalf("%v: %d documents of %d bytes, in memory %d of %d", f, m, got.Len(), n, want.Len())
				}
				if got.count == 0 {
					t.Errorf("%v: no spool was needed", f)
				}
				if left, err := vfs.OS.List(filepath.ToSlash(got.dir)); err != nil || len(left) > 0 {
					t.Errorf("%v: files left: %v, %v", f, left, err)
				}
			}
		})
	}
	if n := mapped.Count(); n != open {
		t.Errorf("%d mappings are open, %d were before", n, open)
	}
}

// pieces is a reader that returns pieces of any size.
type pieces struct {
	r    *rand.Rand
	text string
}

func (p *pieces) Read(b []byte) (int, error) {
	if p.text == "" {
		return 0, io.EOF
	}
	n := copy(b[:min(len(b), 1+p.r.IntN(200_000))], p.text)
	p.text = p.text[n:]
	return n, nil
}

// textOf is a Visitor that keeps strings, and a Spooler if it has a directory.
type textOf struct {
	texts []string
	empty int
}

func (v *textOf) Field([]byte) int                         { return 0 }
func (v *textOf) Visit(int)                                {}
func (v *textOf) String(_ int, text []byte, _ []int)       { v.texts = append(v.texts, string(text)) }
func (v *textOf) Number(int, []byte, numeric.Value, []int) {}
func (v *textOf) Bool(int, bool, []int)                    {}
func (v *textOf) Null(int)                                 {}
func (v *textOf) Empty(int)                                { v.empty++ }

type spooledText struct {
	textOf
	spooling
}

// TestLargeStringsAreUnescaped walks strings with random escapes through a file and in memory: the results must be equal.
func TestLargeStringsAreUnescaped(t *testing.T) {
	rng := rand.New(rand.NewPCG(7, 8))
	for _, parts := range [][]string{
		{`\n`}, {`\ud83d\ude00`}, {`\u00e9`}, {`\\`}, {`\"`, "a"},
		{`\n`, `\ud83d\ude00`, `\u00e9`, `\\`, `\"`, "a", "é", `\/`, `\ud83d`, `\ude00`, "a longer piece of text "},
		{strings.Repeat("x", windowSize-1), `\ud83d\ude00`, `\u0041`, "y"},
	} {
		var b strings.Builder
		b.WriteString(`{"text":"`)
		for b.Len() < 3*spoolBytes {
			b.WriteString(parts[rng.IntN(len(parts))])
		}
		b.WriteString(`","more":["\n"]}`)
		want, got := new(textOf), &spooledText{spooling: spooling{dir: t.TempDir()}}
		if err := Walk([]byte(b.String()), want); err != nil {
			t.Fatal(err)
		}
		if err := Walk([]byte(b.String()), got); err != nil {
			t.Fatal(err)
		}
		if got.count != 1 || len(got.texts) != 2 || got.texts[0] != want.texts[0] || got.texts[1] != want.texts[1] {
			t.Errorf("%q: the text differs, %d spools", parts, got.count)
		}
	}
}
