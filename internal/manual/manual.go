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
	"sync"

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

// Page is the content served under a path.
type Page struct {
	Type string // media type
	Body []byte
}

// Manual has all pages and a search in them. Each page is made on first use.
type Manual struct {
	files  fs.FS
	uses   Uses
	paths  map[string]string               // of files
	titles map[string]string               // of documents, by their files
	pages  map[string]func() (Page, error) // by path
	found  func() (*searcher, error)
}

// New lists the pages: the documents, their pictures, and the page of errors.
func New(uses Uses) (*Manual, error) {
	return list(documents.Documents, uses)
}

// Page returns the page of a path, as people type it. It returns false if there is none.
func (m *Manual) Page(at string) (Page, bool, error) {
	make, ok := m.pages[at]
	for name, other := range m.pages {
		if ok {
			break
		}
		if strings.EqualFold(name, at) {
			make, ok = other, true
		}
	}
	if !ok {
		return Page{}, false, nil
	}
	page, err := make()
	return page, true, err
}

// Paths lists where pages are, in order.
func (m *Manual) Paths() []string { return slices.Sorted(maps.Keys(m.pages)) }

// readme is the document that Root shows. In other folders, it stands for the folder.
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
	headings []heading
	html     func() (string, error) // of its body
}

// heading is a heading of a document, with the text below it up to the next one.
type heading struct {
	level     int // 1: the title
	id, title string
	text      string

	row bool // of a table below the heading before, with a name in code: an option, a setting, a metric
}

func list(files fs.FS, uses Uses) (*Manual, error) {
	m := &Manual{files: files, uses: uses, paths: map[string]string{errorsFile: pathOf(errorsFile)}, pages: map[string]func() (Page, error){}, titles: map[string]string{}}
	m.found = sync.OnceValues(m.newSearcher)
	err := fs.WalkDir(files, ".", func(file string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() {
			return err
		}
		m.paths[file] = pathOf(file)
		return nil
	})
	if err != nil {
		return nil, fmt.Errorf("cannot list the documents: %w", err)
	}
	for file, at := range m.paths {
		if m.pages[at] != nil {
			return nil, fmt.Errorf("two documents are served as %s", at)
		}
		m.pages[at] = sync.OnceValues(func() (Page, error) { return m.make(file) })
		if path.Ext(file) == ".md" {
			b, err := m.read(file)
			if err != nil {
				return nil, err
			}
			m.titles[file] = titleOf(b)
		}
	}
	return m, nil
}

// titleOf is the title in the first line of a document, without its marks.
func titleOf(source []byte) string {
	line, _, _ := bytes.Cut(source, []byte("\n"))
	title, ok := bytes.CutPrefix(line, []byte("# "))
	if !ok {
		return untitled
	}
	return strings.TrimSpace(strings.ReplaceAll(string(title), "`", ""))
}

func (m *Manual) read(file string) ([]byte, error) {
	if file == errorsFile {
		return errorsPage(m.uses), nil
	}
	b, err := fs.ReadFile(m.files, file)
	if err != nil {
		return nil, fmt.Errorf("cannot read the document %s: %w", file, err)
	}
	return b, nil
}

func (m *Manual) document(file string) (*document, error) {
	b, err := m.read(file)
	if err != nil {
		return nil, err
	}
	d, err := parse(file, b, m.paths)
	if err != nil {
		return nil, fmt.Errorf("cannot make a page of %s: %w", file, err)
	}
	return d, nil
}

// make makes the page of a file.
func (m *Manual) make(file string) (Page, error) {
	if path.Ext(file) != ".md" {
		b, err := m.read(file)
		if path.Ext(file) == ".png" {
			return Page{"image/png", b}, err
		}
		return Page{"text/plain; charset=utf-8", b}, err
	}
	d, err := m.document(file)
	if err != nil {
		return Page{}, err
	}
	body, err := d.html()
	if err != nil {
		return Page{}, fmt.Errorf("cannot make a page of %s: %w", file, err)
	}
	title := m.titles[file] + " · svc"
	if file == readme {
		title = "svc documentation"
	}
	return Page{htmlType, m.frame(title, file, "", contents(d.headings), body)}, nil
}

const htmlType = "text/html; charset=utf-8"

// parse converts a document to HTML, without any HTML in it, and splits it by its headings.
func parse(file string, source []byte, paths map[string]string) (*document, error) {
	markdown := goldmark.New(goldmark.WithExtensions(extension.GFM), goldmark.WithParserOptions(parser.WithAutoHeadingID(), parser.WithAttribute()))
	tree := markdown.Parser().Parse(text.NewReader(source))
	var lost []*ast.Link // links to documents that do not exist
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
	d.html = func() (string, error) {
		var b bytes.Buffer
		if err := markdown.Renderer().Render(&b, source, tree); err != nil {
			return "", err
		}
		// Make wide content scrollable by keyboard. Documents have no such tags of their own.
		return strings.NewReplacer("<pre>", `<pre tabindex="0">`, "<table>", `<div class="scroll" tabindex="0"><table>`, "</table>", "</table></div>").Replace(b.String()), nil
	}
	return d, nil
}

// untitled is the title of a document that has none.
const untitled = "svc"

// headingsOf takes a document apart. The first heading is its title, even if it has none.
func headingsOf(tree ast.Node, source []byte) []heading {
	all := []heading{{level: 1, title: untitled}}
	var b strings.Builder
	var rows []heading
	end := func() {
		all[len(all)-1].text = tidy(b.String())
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

// namedRows are the rows of a table whose first cell is a name in code.
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
		rows = append(rows, heading{level: under.level, id: under.id, title: strings.TrimSpace(title.String()), text: tidy(rest.String()), row: true})
	}
	return rows
}

// tidy leaves one space between words, and one line for each block: a paragraph, an item of a list, a row of a table.
func tidy(text string) string {
	var b strings.Builder
	for line := range strings.SplitSeq(text, "\n") {
		if line = strings.Join(strings.Fields(line), " "); line != "" {
			b.WriteString(line + "\n")
		}
	}
	return strings.TrimSuffix(b.String(), "\n")
}

// writeText writes the words of a part of a document, without its marks. Lines end with blocks.
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
				if n.Kind() == east.KindTableCell {
					b.WriteByte(' ')
				} else {
					b.WriteByte('\n')
				}
				if entering && n.IsRaw() {
					b.Write(n.Lines().Value(source))
				}
			}
		}
		return ast.WalkContinue, nil
	})
}

// resolve converts a link of a document to one of the pages. ok is false if it leads to a file that is not a document.
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

// Policy is the Content-Security-Policy of pages: pictures of their own server, the icon, their one style, the search, and nothing else.
var Policy = func() string {
	sum := sha256.Sum256([]byte(style))
	return "default-src 'none'; img-src 'self' data:; style-src 'sha256-" + base64.StdEncoding.EncodeToString(sum[:]) + "'; " +
		"base-uri 'none'; form-action 'self'; frame-ancestors 'none'"
}()
