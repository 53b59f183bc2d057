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

// TestHeadersAreKnown requires that a request header is a requestHeader, for which the tests of fastapi demand an attack.
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
			t.Errorf("%s no longer needs an exception", file)
		}
	}
}

// TestArrivalsAreAsked requires that handlers ask arrival when their request came: the request of a tool has no time of its own.
func TestArrivalsAreAsked(t *testing.T) {
	found := false
	eachFile(t, func(pkg, file string, f *ast.File) {
		ast.Inspect(f, func(n ast.Node) bool {
			if call, ok := n.(*ast.CallExpr); ok && pkg == "fastapi" && spelled(call) == "ctx.Time" {
				if found = true; file != "fastapi/request.go" {
					t.Errorf("%s calls ctx.Time: call arrival", file)
				}
			}
			return true
		})
	})
	if !found {
		t.Error("no call was found")
	}
}

// TestHeadersAreListed requires that each requestHeader is a constant and one of requestHeaders. Otherwise the table of attacks would lack
// its row unnoticed.
func TestHeadersAreListed(t *testing.T) {
	declared, listed := map[string]bool{}, map[string]bool{}
	eachFile(t, func(pkg, file string, f *ast.File) {
		if pkg != "fastapi" {
			return
		}
		ast.Inspect(f, func(n ast.Node) bool {
			switch n := n.(type) {
			case *ast.ValueSpec:
				switch {
				case n.Type != nil && spelled(n.Type) == "requestHeader":
					for _, name := range n.Names {
						declared[name.Name] = true
					}
				case n.Names[0].Name == "requestHeaders":
					for _, e := range n.Values[0].(*ast.CompositeLit).Elts {
						listed[spelled(e)] = true
					}
				}
			case *ast.CallExpr:
				if spelled(n) == "requestHeader" {
					t.Errorf("%s makes a requestHeader: make it a constant, in fastapi/headers.go", file)
				}
			}
			return true
		})
	})
	for name := range declared {
		if !listed[name] {
			t.Errorf("%s is not one of requestHeaders", name)
		}
	}
	if len(declared) < 20 || len(declared) != len(listed) {
		t.Errorf("%d headers are declared and %d are listed", len(declared), len(listed))
	}
}

// spelled prints an expression of names and calls.
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
