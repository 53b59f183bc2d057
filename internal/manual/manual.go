// Package manual makes pages of the documents for people, and the page of error codes. They load nothing but pictures of their
// own server, and have no script: the navigation is a list of links, and the search is a form that the server answers.
package manual

import (
	"bytes"
	"crypto/sha256"
	"encoding/base64"
	"fmt"
	"io/fs"
	"maps"
	"net/url"
	"path"
	"slices"
	"strings"

	"github.com/yuin/goldmark"
	"github.com/yuin/goldmark/ast"
	"github.com/yuin/goldmark/extension"
	east "github.com/yuin/goldmark/extension/ast"
	"github.com/yuin/goldmark/parser"
	"github.com/yuin/goldmark/text"

	documents "svc"
)

// Root is where the pages are served, the README first.
const Root = "/docs"

// Page is what is served under a path.
type Page struct {
	Type string // media type
	Body []byte
}

// Manual has all pages, and finds what they say.
type Manual struct {
	pages  map[string]Page
	titles map[string]string // of documents, by their files
	found  *searcher
}

// New makes all pages: the documents, their pictures, and the page of errors.
func New(uses Uses) (*Manual, error) {
	return render(documents.Documents, uses)
}

// Page returns the page of a path, as people type it.
func (m *Manual) Page(at string) (Page, bool) {
	if page, ok := m.pages[at]; ok {
		return page, true
	}
	for name, page := range m.pages {
		if strings.EqualFold(name, at) {
			return page, true
		}
	}
	return Page{}, false
}

// Paths lists where pages are, in order.
func (m *Manual) Paths() []string { return slices.Sorted(maps.Keys(m.pages)) }

// readme is the document that Root shows, and that stands for its folder elsewhere.
const readme = "README.md"

// pathOf is where a document is served.
func pathOf(file string) string {
	switch dir, name := path.Split(file); {
	case file == readme:
		return Root
	case name == readme:
		return Root + "/" + path.Base(dir)
	}
	return Root + "/" + strings.TrimSuffix(path.Base(file), ".md")
}

// document is a parsed page.
type document struct {
	file     string
	body     string // HTML
	headings []heading
}

// heading is a heading of a document, with the text below it up to the next one.
type heading struct {
	level     int // 1: the title
	id, title string
	text      string

	row bool // of a table below the heading before, with a name in code: an option, a setting, a metric
}

func render(files fs.FS, uses Uses) (*Manual, error) {
	paths := map[string]string{errorsFile: pathOf(errorsFile)} // of a file
	err := fs.WalkDir(files, ".", func(file string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() {
			return err
		}
		paths[file] = pathOf(file)
		return nil
	})
	if err != nil {
		return nil, fmt.Errorf("cannot list the documents: %w", err)
	}
	m := &Manual{pages: map[string]Page{}, titles: map[string]string{}}
	var all []*document
	for _, file := range slices.Sorted(maps.Keys(paths)) {
		at := paths[file]
		b := []byte(nil)
		if file == errorsFile {
			b = errorsPage(uses)
		} else if b, err = fs.ReadFile(files, file); err != nil {
			return nil, fmt.Errorf("cannot read the document %s: %w", file, err)
		}
		if m.pages[at].Body != nil {
			return nil, fmt.Errorf("two documents are served as %s", at)
		}
		switch path.Ext(file) {
		case ".md":
			d, err := parse(file, b, paths)
			if err != nil {
				return nil, fmt.Errorf("cannot make a page of %s: %w", file, err)
			}
			m.titles[file] = d.headings[0].title
			all = append(all, d)
		case ".png":
			m.pages[at] = Page{"image/png", b}
		default:
			m.pages[at] = Page{"text/plain; charset=utf-8", b}
		}
	}
	for _, d := range all {
		m.pages[pathOf(d.file)] = Page{htmlType, m.frame(m.titles[d.file]+" · svc", d.file, "", contents(d.headings), d.body)}
	}
	m.found = newSearcher(all)
	return m, nil
}

const htmlType = "text/html; charset=utf-8"

// parse makes HTML of a document, in which HTML is left out, and takes it apart by its headings.
func parse(file string, source []byte, paths map[string]string) (*document, error) {
	markdown := goldmark.New(goldmark.WithExtensions(extension.GFM), goldmark.WithParserOptions(parser.WithAutoHeadingID(), parser.WithAttribute()))
	tree := markdown.Parser().Parse(text.NewReader(source))
	var lost []*ast.Link // to what is no document
	err := ast.Walk(tree, func(n ast.Node, entering bool) (ast.WalkStatus, error) {
		if !entering {
			return ast.WalkContinue, nil
		}
		switch n := n.(type) {
		case *ast.Link:
			to, ok := resolve(file, string(n.Destination), paths)
			if !ok {
				lost = append(lost, n)
			}
			n.Destination = []byte(to)
		case *ast.Image:
			at, _ := resolve(file, string(n.Destination), paths)
			if !strings.HasPrefix(at, Root+"/") {
				return ast.WalkStop, fmt.Errorf("the picture %s is not among the documents", n.Destination)
			}
			n.Destination = []byte(at)
		}
		return ast.WalkContinue, nil
	})
	if err != nil {
		return nil, err
	}
	for _, n := range lost { // their text stays
		parent := n.Parent()
		for child := n.FirstChild(); child != nil; child = n.FirstChild() {
			parent.InsertBefore(parent, n, child)
		}
		parent.RemoveChild(parent, n)
	}
	d := &document{file: file, headings: headingsOf(tree, source)}
	var b bytes.Buffer
	if err := markdown.Renderer().Render(&b, source, tree); err != nil {
		return nil, err
	}
	// Keys scroll what is wider than the page. Documents have no such tags of their own.
	d.body = strings.NewReplacer("<pre>", `<pre tabindex="0">`, "<table>", `<div class="scroll" tabindex="0"><table>`, "</table>", "</table></div>").Replace(b.String())
	return d, nil
}

// headingsOf takes a document apart. The first heading is its title, even if it has none.
func headingsOf(tree ast.Node, source []byte) []heading {
	all := []heading{{level: 1, title: "svc"}}
	var b strings.Builder
	var rows []heading
	end := func() {
		all[len(all)-1].text = strings.Join(strings.Fields(b.String()), " ")
		all = append(all, rows...)
		rows = nil
		b.Reset()
	}
	for n := tree.FirstChild(); n != nil; n = n.NextSibling() {
		h, ok := n.(*ast.Heading)
		if !ok {
			writeText(&b, n, source)
			rows = append(rows, namedRows(n, all[len(all)-1], source)...)
			continue
		}
		var title strings.Builder
		writeText(&title, n, source)
		id := ""
		if v, ok := n.AttributeString("id"); ok {
			id = fmt.Sprintf("%s", v)
		}
		own := heading{level: h.Level, id: id, title: strings.TrimSpace(title.String())}
		if h.Level == 1 && len(all) == 1 && b.Len() == 0 {
			all[0] = own
		} else {
			end()
			all = append(all, own)
		}
	}
	end()
	return all
}

// namedRows are the rows of a table that are about something with a name in code.
func namedRows(table ast.Node, under heading, source []byte) (rows []heading) {
	if table.Kind() != east.KindTable {
		return nil
	}
	for row := table.FirstChild(); row != nil; row = row.NextSibling() {
		name := row.FirstChild()
		if row.Kind() != east.KindTableRow || name == nil || name.FirstChild() == nil || name.FirstChild().Kind() != ast.KindCodeSpan {
			continue
		}
		var title, rest strings.Builder
		writeText(&title, name, source)
		for cell := name.NextSibling(); cell != nil; cell = cell.NextSibling() {
			writeText(&rest, cell, source)
		}
		rows = append(rows, heading{level: under.level, id: under.id, title: strings.TrimSpace(title.String()), text: strings.Join(strings.Fields(rest.String()), " "), row: true})
	}
	return rows
}

// writeText writes the words of a part of a document, without its marks.
func writeText(b *strings.Builder, n ast.Node, source []byte) {
	_ = ast.Walk(n, func(n ast.Node, entering bool) (ast.WalkStatus, error) {
		switch n := n.(type) {
		case *ast.Text:
			if entering {
				b.Write(n.Segment.Value(source))
				if n.SoftLineBreak() || n.HardLineBreak() {
					b.WriteByte(' ')
				}
			}
		case *ast.String:
			if entering {
				b.Write(n.Value)
			}
		default:
			if n.Type() == ast.TypeBlock {
				b.WriteByte(' ')
				if entering && n.IsRaw() {
					b.Write(n.Lines().Value(source))
				}
			}
		}
		return ast.WalkContinue, nil
	})
}

// resolve turns a link of a document into one of the pages. ok is false when it leads to a file that is no document.
func resolve(file, to string, paths map[string]string) (at string, ok bool) {
	u, err := url.Parse(to)
	if err != nil || u.IsAbs() || u.Path == "" {
		return to, true
	}
	if at, ok = paths[path.Join(path.Dir(file), u.Path)]; ok && u.Fragment != "" {
		at += "#" + u.Fragment
	}
	return at, ok
}

// Policy is the Content-Security-Policy of pages: pictures of their own server, their one style, the search, and nothing else.
var Policy = func() string {
	sum := sha256.Sum256([]byte(style))
	return "default-src 'none'; img-src 'self'; style-src 'sha256-" + base64.StdEncoding.EncodeToString(sum[:]) + "'; " +
		"base-uri 'none'; form-action 'self'; frame-ancestors 'none'"
}()
