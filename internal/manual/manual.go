// Package manual makes pages of the documents for people, and the page of error codes. They load nothing but pictures of their
// own server, and have no script.
package manual

import (
	"bytes"
	"crypto/sha256"
	"encoding/base64"
	"fmt"
	"html"
	"io/fs"
	"net/url"
	"path"
	"strings"

	"github.com/yuin/goldmark"
	"github.com/yuin/goldmark/ast"
	"github.com/yuin/goldmark/extension"
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

// Pages returns all pages by their path: the documents, their pictures, and the page of errors.
func Pages(uses Uses) (map[string]Page, error) {
	return render(documents.Documents, uses)
}

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

func render(files fs.FS, uses Uses) (map[string]Page, error) {
	paths := map[string]string{} // of a file
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
	pages := map[string]Page{}
	for file, at := range paths {
		b, err := fs.ReadFile(files, file)
		if err != nil {
			return nil, fmt.Errorf("cannot read the document %s: %w", file, err)
		}
		if pages[at].Body != nil {
			return nil, fmt.Errorf("two documents are served as %s", at)
		}
		switch path.Ext(file) {
		case ".md":
			if b, err = page(file, b, paths); err != nil {
				return nil, fmt.Errorf("cannot make a page of %s: %w", file, err)
			}
			pages[at] = Page{"text/html; charset=utf-8", b}
		case ".png":
			pages[at] = Page{"image/png", b}
		default:
			pages[at] = Page{"text/plain; charset=utf-8", b}
		}
	}
	b, err := page(errorsFile, errorsPage(uses), paths)
	if err != nil {
		return nil, fmt.Errorf("cannot make the page of errors: %w", err)
	}
	pages[pathOf(errorsFile)] = Page{"text/html; charset=utf-8", b}
	return pages, nil
}

// page makes HTML of a document. HTML in it is left out.
func page(file string, source []byte, paths map[string]string) ([]byte, error) {
	markdown := goldmark.New(goldmark.WithExtensions(extension.GFM), goldmark.WithParserOptions(parser.WithAutoHeadingID(), parser.WithAttribute()))
	tree := markdown.Parser().Parse(text.NewReader(source))
	title := "svc"
	var lost []*ast.Link // to what is no document
	err := ast.Walk(tree, func(n ast.Node, entering bool) (ast.WalkStatus, error) {
		if !entering {
			return ast.WalkContinue, nil
		}
		switch n := n.(type) {
		case *ast.Heading:
			if n.Level == 1 {
				title = string(n.Lines().Value(source))
			}
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
	var b bytes.Buffer
	fmt.Fprintf(&b, "<!DOCTYPE html>\n<html lang=\"en\">\n<head>\n<meta charset=\"utf-8\">\n<meta name=\"viewport\" content=\"width=device-width\">\n"+
		"<title>%s</title>\n<style>%s</style>\n</head>\n<body>\n<nav><a href=\"%s\">svc</a> · <a href=\"%s\">Operations</a> · <a href=\"%s\">Errors</a> · <a href=\"/openapi.json\">OpenAPI</a></nav>\n<main>\n",
		html.EscapeString(title), style, Root, pathOf("OPERATIONS.md"), pathOf(errorsFile))
	if err := markdown.Renderer().Render(&b, source, tree); err != nil {
		return nil, err
	}
	b.WriteString("</main>\n</body>\n</html>\n")
	return b.Bytes(), nil
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

const style = `:root{color-scheme:light dark}body{font:16px/1.5 system-ui,sans-serif;margin:0 auto;max-width:60rem;padding:1rem}` +
	`pre{overflow:auto;padding:.75rem;background:#8882;border-radius:4px}code{font:.9em/1.4 ui-monospace,monospace}` +
	`table{border-collapse:collapse;display:block;overflow:auto}td,th{border:1px solid #8886;padding:.25rem .5rem;text-align:left;vertical-align:top}` +
	`img{max-width:100%}:target{background:#fc83}nav{border-bottom:1px solid #8886;padding-bottom:.5rem}`

// Policy is the Content-Security-Policy of pages: pictures of their own server, their one style, and nothing else.
var Policy = func() string {
	sum := sha256.Sum256([]byte(style))
	return "default-src 'none'; img-src 'self'; style-src 'sha256-" + base64.StdEncoding.EncodeToString(sum[:]) + "'; " +
		"base-uri 'none'; form-action 'none'; frame-ancestors 'none'"
}()
