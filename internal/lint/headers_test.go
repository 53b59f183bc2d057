package lint

import (
	"go/ast"
	"slices"
	"strings"
	"testing"
)

// looking are the methods by which a header of a request is read, whatever it is called on; naming are those that answers have, too.
var (
	looking = []string{"Peek", "PeekBytes", "PeekAll", "PeekKeys", "UserAgent", "Referer", "Cookie", "CookieBytes", "Cookies", "MultipartFormBoundary"}
	naming  = []string{"ContentType", "ContentEncoding", "Host", "All", "VisitAll", "VisitAllInOrder"}
)

// looks says where headers are read outside of fastapi/headers.go.
var looks = map[string]string{
	"fastapi/headers.go": "it is the place",
	"fastapi/html.go":    "a header of the answer",
	"fastapi/mcp.go":     "the SDK of the protocol gets all headers",
}

// TestHeadersAreKnown: a header that a request may have is a requestHeader, for which the tests of fastapi demand an attack.
func TestHeadersAreKnown(t *testing.T) {
	used := map[string]bool{}
	eachFile(t, func(pkg, file string, f *ast.File) {
		if pkg != "fastapi" {
			return
		}
		ast.Inspect(f, func(n ast.Node) bool {
			call, ok := n.(*ast.CallExpr)
			if !ok {
				return true
			}
			s, ok := call.Fun.(*ast.SelectorExpr)
			if !ok {
				return true
			}
			on := spelled(s.X)
			switch {
			case strings.Contains(on, "QueryArgs") || strings.Contains(on, "Response"):
			case slices.Contains(looking, s.Sel.Name), slices.Contains(naming, s.Sel.Name) && strings.HasSuffix(on, "Request.Header"):
				if used[file] = true; looks[file] == "" {
					t.Errorf("%s: %s.%s reads a header: make it a requestHeader, in fastapi/headers.go", file, on, s.Sel.Name)
				}
			}
			return true
		})
	})
	for file := range looks {
		if !used[file] {
			t.Errorf("%s needs no exception any more", file)
		}
	}
}

// spelled writes an expression of names and calls.
func spelled(e ast.Expr) string {
	switch e := e.(type) {
	case *ast.Ident:
		return e.Name
	case *ast.SelectorExpr:
		return spelled(e.X) + "." + e.Sel.Name
	case *ast.CallExpr:
		return spelled(e.Fun)
	}
	return "…"
}
