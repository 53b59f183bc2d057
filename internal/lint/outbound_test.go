package lint

import (
	"go/ast"
	"slices"
	"strings"
	"testing"
)

// connecting are the ways to connect to another machine without internal/outbound.
var connecting = map[string]struct{ calls, values []string }{
	"net": {calls: []string{"Dial", "DialTimeout", "DialTCP", "DialUDP", "DialIP", "DialUnix", "LookupHost", "LookupIP", "LookupAddr", "LookupCNAME", "LookupMX", "LookupNS", "LookupPort",
		"LookupSRV", "LookupTXT", "ResolveTCPAddr", "ResolveUDPAddr", "ResolveIPAddr", "DefaultResolver"}, values: []string{"Dialer", "Resolver"}},
	"http":     {calls: []string{"Get", "Head", "Post", "PostForm", "DefaultClient", "DefaultTransport"}, values: []string{"Transport"}},
	"tls":      {calls: []string{"Dial", "DialWithDialer"}, values: []string{"Dialer"}},
	"fasthttp": {calls: []string{"Get", "GetTimeout", "GetDeadline", "Post", "Do", "DoTimeout", "DoDeadline", "DoRedirects", "Dial", "DialTimeout", "DialDualStack"}, values: []string{"Client", "HostClient", "PipelineClient", "LBClient", "TCPDialer"}},
	"smtp":     {calls: []string{"Dial", "SendMail"}},
	"rpc":      {calls: []string{"Dial", "DialHTTP"}},
	"exec":     {calls: []string{"Command", "CommandContext"}},
}

// connects lists the places that may bypass internal/outbound.
var connects = map[string]string{
	"internal/outbound":           "it is the guard",
	"cmd/svc/notify.go":           "the socket of the supervisor, on this machine",
	"cmd/svc/health.go":           "the server that the command is told of",
	"internal/client/client.go":   "the server that the command is told of",
	"fastapi/forward.go":          "the writer of the group that the command line names, through internal/group",
	"internal/group/client.go":    "the members of the group that the command line names",
	"internal/group/voterwire.go": "as above, and those that they name",
}

// TestConnectionsAreGuarded requires that every connection of the program goes through internal/outbound, which checks addresses, or to
// the one server that a command is given.
func TestConnectionsAreGuarded(t *testing.T) {
	used := map[string]bool{}
	eachFile(t, func(pkg, file string, f *ast.File) {
		if pkg != "cmd/svc" && pkg != "fastapi" && !strings.HasPrefix(pkg, "internal/") || strings.HasSuffix(pkg, "test") {
			return
		}
		complain := func(what string) {
			for _, place := range []string{pkg, file} {
				if connects[place] != "" {
					used[place] = true
					return
				}
			}
			t.Errorf("%s: %s bypasses internal/outbound", file, what)
		}
		ast.Inspect(f, func(n ast.Node) bool {
			switch n := n.(type) {
			case *ast.SelectorExpr:
				if x, ok := n.X.(*ast.Ident); ok && slices.Contains(connecting[x.Name].calls, n.Sel.Name) {
					complain(x.Name + "." + n.Sel.Name)
				}
			case *ast.CompositeLit:
				s, ok := n.Type.(*ast.SelectorExpr)
				if !ok {
					break
				}
				x, ok := s.X.(*ast.Ident)
				if !ok {
					break
				}
				if slices.Contains(connecting[x.Name].values, s.Sel.Name) {
					complain(x.Name + "." + s.Sel.Name)
				}
				if x.Name == "http" && s.Sel.Name == "Client" && !sets(n, "Transport") && pkg != "internal/client" {
					complain("http.Client without a Transport")
				}
			}
			return true
		})
	})
	for place := range connects {
		if !used[place] {
			t.Errorf("%s no longer needs an exception", place)
		}
	}
}

// sets reports whether a struct literal sets a field.
func sets(l *ast.CompositeLit, field string) bool {
	return slices.ContainsFunc(l.Elts, func(e ast.Expr) bool {
		kv, ok := e.(*ast.KeyValueExpr)
		if !ok {
			return false
		}
		key, ok := kv.Key.(*ast.Ident)
		return ok && key.Name == field
	})
}
