package lint

import (
	"go/ast"
	"go/parser"
	"go/token"
	"go/types"
	"os"
	"path"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
)

// rankFiles lists the files of internal/rank from top to bottom. A function calls functions of its own file and of files below. Other
// files rule_*.go are at otherRules, and only rule.go calls them by name.
var rankFiles = strings.Fields(`
	search rule
	lazytypos findings tophits find page planner retry rounds
	rule_words rule_typo
	rule_proximity near nearplace nearexact nearread
	rule_position starts rule_attribute rule_exactwords rule_exactness
	rule_elementsort rule_sort rule_geo rings rule_score rule_spelling rule_vector filtersigns rule_*
	pruner exact judge costsums costclasses split evaluate counted
	words levels list bucket largest
	sets demand groupprune grouping distinct merge costlists scorelevels scorebounds scorer scoring keys valuequeue sortcosts
	spelt invariants effort outlook score details values plan rank state rows`)

// otherRules is the position in rankFiles of rule files that are not listed by name.
const otherRules = "rule_*"

// upward lists calls that go up rankFiles, each with its reason. Ten are allowed: move shared code further down instead.
var upward = map[string]string{}

const (
	mostUpward  = 10
	mostLines   = 80 // of a function of rank
	mostMethods = 12 // of a type of rank that holds a request
)

// rankPackage is internal/rank, type-checked without other packages: expressions of their types have no type.
type rankPackage struct {
	fset  *token.FileSet
	files map[string]*ast.File // by name, without .go
	info  types.Info
	pkg   *types.Package
}

func loadRank(t *testing.T) *rankPackage {
	t.Helper()
	p := &rankPackage{fset: token.NewFileSet(), files: map[string]*ast.File{}}
	names, err := filepath.Glob(filepath.Join(root, "internal/rank/*.go"))
	if err != nil {
		t.Fatal(err)
	}
	var files []*ast.File
	for _, name := range names {
		if strings.HasSuffix(name, "_test.go") {
			continue
		}
		src, err := os.ReadFile(name)
		if err != nil {
			t.Fatal(err)
		}
		f, err := parser.ParseFile(p.fset, name, src, parser.SkipObjectResolution|parser.ParseComments)
		if err != nil {
			t.Fatal(err)
		}
		p.files[strings.TrimSuffix(filepath.Base(name), ".go")] = f
		files = append(files, f)
	}
	p.info = types.Info{Types: map[ast.Expr]types.TypeAndValue{}, Defs: map[*ast.Ident]types.Object{}, Uses: map[*ast.Ident]types.Object{}}
	conf := types.Config{Importer: empty{}, Error: func(error) {}}
	p.pkg, _ = conf.Check("svc/internal/rank", p.fset, files, &p.info)
	return p
}

// empty imports packages without contents.
type empty struct{}

var majorVersion = regexp.MustCompile(`/v[0-9]+$`)

func (empty) Import(name string) (*types.Package, error) {
	p := types.NewPackage(name, path.Base(majorVersion.ReplaceAllString(name, "")))
	p.MarkComplete()
	return p, nil
}

// eachFunc calls f for every function and method.
func (p *rankPackage) eachFunc(f func(file string, decl *ast.FuncDecl)) {
	for name, file := range p.files {
		for _, d := range file.Decls {
			if decl, ok := d.(*ast.FuncDecl); ok {
				f(name, decl)
			}
		}
	}
}

// funcName returns the name of a function, with the receiver's type for a method.
func funcName(f *types.Func) string {
	if recv := f.Signature().Recv(); recv != nil {
		return typeOf(recv.Type()) + "." + f.Name()
	}
	return f.Name()
}

func typeOf(t types.Type) string {
	return strings.TrimPrefix(types.TypeString(t, func(*types.Package) string { return "" }), "*")
}

func TestCallsOfRankGoDown(t *testing.T) {
	p := loadRank(t)
	place := map[string]int{}
	for i, name := range rankFiles {
		if place[name] = i; p.files[name] == nil && name != otherRules {
			t.Errorf("rankFiles lists %s.go, which does not exist", name)
		}
	}
	for name := range p.files {
		if _, ok := place[name]; !ok && strings.HasPrefix(name, "rule_") {
			place[name] = place[otherRules]
		} else if !ok {
			t.Errorf("internal/rank/%s.go has no place in rankFiles: give it one", name)
		}
	}
	if t.Failed() {
		return
	}
	fileOf := map[types.Object]string{}
	p.eachFunc(func(file string, decl *ast.FuncDecl) { fileOf[p.info.Defs[decl.Name]] = file })
	calls, used := 0, map[string]bool{}
	p.eachFunc(func(file string, decl *ast.FuncDecl) {
		ast.Inspect(decl, func(n ast.Node) bool {
			id, ok := n.(*ast.Ident)
			if !ok {
				return true
			}
			f, ok := p.info.Uses[id].(*types.Func)
			if !ok {
				return true
			}
			to, ok := fileOf[f.Origin()]
			if !ok || to == file {
				return true
			}
			calls++
			if place[to] > place[file] { // two of the other rules are at one place: neither may call the other
				return true
			}
			name := funcName(p.info.Defs[decl.Name].(*types.Func)) + " → " + funcName(f)
			if used[name] = true; upward[name] == "" {
				t.Errorf("%s.go: %s goes up to %s.go: move what is shared further down", file, name, to)
			}
			return true
		})
	})
	for name := range upward {
		if !used[name] {
			t.Errorf("%s is listed in upward, but no such call exists", name)
		}
	}
	if len(upward) > mostUpward {
		t.Errorf("%d calls go up, at most %d may", len(upward), mostUpward)
	}
	if calls < 500 {
		t.Errorf("only %d calls between files found: are types missing?", calls)
	}
}

func TestFunctionsOfRankAreShort(t *testing.T) {
	p := loadRank(t)
	p.eachFunc(func(file string, decl *ast.FuncDecl) {
		if n := p.fset.Position(decl.End()).Line - p.fset.Position(decl.Pos()).Line + 1; n > mostLines {
			t.Errorf("%s.go: %s has %d lines, at most %d are allowed", file, decl.Name.Name, n, mostLines)
		}
	})
}

// TestTypesThatHoldARequestAreSmall counts the methods of types whose fields lead to the request of a search.
func TestTypesThatHoldARequestAreSmall(t *testing.T) {
	p := loadRank(t)
	request := p.pkg.Scope().Lookup("Request")
	var holding []string
	for _, name := range p.pkg.Scope().Names() {
		obj, ok := p.pkg.Scope().Lookup(name).(*types.TypeName)
		if !ok || !holds(obj.Type(), request.Type(), map[types.Type]bool{}) {
			continue
		}
		holding = append(holding, name)
		if named, ok := obj.Type().(*types.Named); ok && named.NumMethods() > mostMethods {
			t.Errorf("%s holds a request and has %d methods, at most %d are allowed: let functions take the part that they need", name, named.NumMethods(), mostMethods)
		}
	}
	for _, name := range []string{"search", "request", "job", "page", "pruner", "nearPruner"} {
		if !slices.Contains(holding, name) {
			t.Errorf("%s is not found to hold a request", name)
		}
	}
}

// holds reports whether the fields and elements of a type lead to another type.
func holds(t, other types.Type, seen map[types.Type]bool) bool {
	if types.Identical(t, other) {
		return true
	}
	if seen[t] {
		return false
	}
	seen[t] = true
	switch u := t.Underlying().(type) {
	case *types.Struct:
		for i := range u.NumFields() {
			if holds(u.Field(i).Type(), other, seen) {
				return true
			}
		}
	case *types.Pointer:
		return holds(u.Elem(), other, seen)
	case *types.Slice:
		return holds(u.Elem(), other, seen)
	case *types.Array:
		return holds(u.Elem(), other, seen)
	case *types.Map:
		return holds(u.Key(), other, seen) || holds(u.Elem(), other, seen)
	}
	return false
}

// rulePaths lists the files with access paths of a single rule, by the file of the rule. Together they own their declarations.
var rulePaths = map[string]string{
	"near": "rule_proximity", "nearplace": "rule_proximity", "nearexact": "rule_proximity", "nearread": "rule_proximity",
	"starts": "rule_position", "rings": "rule_geo", "rule_elementsort": "rule_sort",
}

// knowsRules lists the files that hold the rules of a request or read their traits: the planner and what wraps it.
var knowsRules = strings.Fields("search rule lazytypos findings find page planner retry rounds demand outlook score details invariants state")

// ownerOf returns the file of the rule that owns a file; "" if none does.
func ownerOf(file string) string {
	if owner := rulePaths[file]; owner != "" {
		return owner
	}
	if strings.HasPrefix(file, "rule_") {
		return file
	}
	return ""
}

// TestNoRuleNamesAnother finds uses of a rule's declarations in files of other rules, types and names of rules outside their own files and
// makeRule, and rules and traits outside of the planner. A rule declares in its traits what others need to know; outlook.go provides it.
func TestNoRuleNamesAnother(t *testing.T) {
	p := loadRank(t)
	for file, owner := range rulePaths {
		if p.files[file] == nil || p.files[owner] == nil {
			t.Errorf("rulePaths lists %s.go and %s.go, which do not both exist", file, owner)
		}
	}
	rule := p.pkg.Scope().Lookup("rule").Type().Underlying().(*types.Interface)
	declaredIn := map[types.Object]string{}
	kinds := map[types.Object]bool{} // types of rules
	for id, obj := range p.info.Defs {
		if obj == nil || !isDeclared(p.pkg, obj) {
			continue
		}
		declaredIn[obj] = p.fileOf(id.Pos())
		if name, ok := obj.(*types.TypeName); ok && !types.IsInterface(name.Type()) && types.Implements(types.NewPointer(name.Type()), rule) {
			kinds[obj] = true
		}
	}
	names := p.namesOfRules(kinds)
	delete(names, "score") // details have a member with this name
	uses := 0
	for file, f := range p.files {
		knows, owner := slices.Contains(knowsRules, file), ownerOf(file)
		var own []types.Object // parameters of the current function
		ast.Inspect(f, func(n ast.Node) bool {
			report := func(format string, args ...any) {
				t.Errorf("%s: "+format+": let the rule declare among its traits what others have to know", append([]any{p.fset.Position(n.Pos())}, args...)...)
			}
			switch n := n.(type) {
			case *ast.FuncDecl:
				own = p.parametersOf(n)
			case *ast.Ident:
				obj := p.info.Uses[n]
				if of, ok := obj.(*types.Func); ok {
					obj = of.Origin()
				}
				of := ownerOf(declaredIn[obj])
				switch {
				case of == "" || of == owner:
				case owner != "":
					uses++
					report("%s belongs to %s.go", n.Name, of)
				case kinds[obj] && file != "rule":
					report("it names the rule %s", n.Name)
				default:
					uses++
				}
			case *ast.BasicLit:
				if name := strings.Trim(n.Value, `"`); n.Kind == token.STRING && names[name] != "" && names[name] != owner {
					report("it names the rule %q", name)
				}
			case *ast.SelectorExpr:
				tv := p.info.Types[n.X]
				if n.Sel.Name == "traits" && tv.Type != nil && types.Identical(tv.Type.Underlying(), rule) && !knows && !p.isOwnRule(n.X, own) {
					report("it asks for the traits of a rule")
				}
			case *ast.IndexExpr, *ast.SliceExpr, *ast.RangeStmt:
				if x := indexed(n); p.isRules(x) && !knows && !p.isOwnRule(n, own) {
					report("it looks at the rules of the request")
				}
			}
			return true
		})
	}
	if len(kinds) < 10 || len(names) < 7 || uses < 10 {
		t.Errorf("only %d rules, %d names and %d uses of what they declare found: are types missing?", len(kinds), len(names), uses)
	}
}

// isDeclared reports whether an object belongs to a package and is visible in all its files.
func isDeclared(pkg *types.Package, obj types.Object) bool {
	if f, ok := obj.(*types.Func); ok {
		return f.Signature().Recv() != nil || obj.Parent() == pkg.Scope()
	}
	return obj.Parent() == pkg.Scope()
}

func (p *rankPackage) fileOf(pos token.Pos) string {
	return strings.TrimSuffix(filepath.Base(p.fset.Position(pos).Filename), ".go")
}

// namesOfRules returns the names that all rules of a kind share, with the files that own them.
func (p *rankPackage) namesOfRules(kinds map[types.Object]bool) map[string]string {
	names := map[string]string{}
	p.eachFunc(func(file string, decl *ast.FuncDecl) {
		f := p.info.Defs[decl.Name].(*types.Func)
		if f.Name() != "name" || f.Signature().Recv() == nil || len(decl.Body.List) != 1 {
			return
		}
		recv := f.Signature().Recv().Type()
		if ptr, ok := recv.(*types.Pointer); ok {
			recv = ptr.Elem()
		}
		if named, ok := recv.(*types.Named); !ok || !kinds[named.Obj()] {
			return
		}
		if ret, ok := decl.Body.List[0].(*ast.ReturnStmt); ok && len(ret.Results) == 1 && ownerOf(file) != "" {
			if lit, ok := ret.Results[0].(*ast.BasicLit); ok {
				names[strings.Trim(lit.Value, `"`)] = ownerOf(file)
			}
		}
	})
	return names
}

func (p *rankPackage) parametersOf(decl *ast.FuncDecl) (out []types.Object) {
	for _, field := range decl.Type.Params.List {
		for _, name := range field.Names {
			out = append(out, p.info.Defs[name])
		}
	}
	return out
}

// isOwnRule reports whether an expression is s.rules[i] with i a parameter of the function: the rule that it works for.
func (p *rankPackage) isOwnRule(x ast.Node, parameters []types.Object) bool {
	index, ok := x.(*ast.IndexExpr)
	if !ok || !p.isRules(index.X) {
		return false
	}
	id, ok := index.Index.(*ast.Ident)
	return ok && slices.Contains(parameters, p.info.Uses[id])
}

// isRules reports whether an expression is a list of rules.
func (p *rankPackage) isRules(x ast.Expr) bool {
	if x == nil || p.info.Types[x].Type == nil {
		return false
	}
	list, ok := p.info.Types[x].Type.(*types.Slice)
	return ok && types.Identical(list.Elem(), p.pkg.Scope().Lookup("rule").Type())
}

// indexed returns the list whose elements an expression or a loop reads.
func indexed(n ast.Node) ast.Expr {
	switch n := n.(type) {
	case *ast.IndexExpr:
		return n.X
	case *ast.SliceExpr:
		return n.X
	case *ast.RangeStmt:
		return n.X
	}
	return nil
}

// TestNoRuleTestsTheTypeOfAnother finds type assertions and switches on rules, and comparisons of a rule with a value of its type. Rules
// declare in their traits what others need to know.
func TestNoRuleTestsTheTypeOfAnother(t *testing.T) {
	p := loadRank(t)
	rule := p.pkg.Scope().Lookup("rule").Type()
	isRule := func(x ast.Expr) bool {
		tv, ok := p.info.Types[x]
		return ok && types.Identical(tv.Type, rule)
	}
	comparisons := 0
	p.eachFunc(func(file string, decl *ast.FuncDecl) {
		ast.Inspect(decl, func(n ast.Node) bool {
			tested := false
			switch n := n.(type) {
			case *ast.TypeAssertExpr: // of switches, too
				tested = isRule(n.X)
			case *ast.BinaryExpr:
				if (n.Op == token.EQL || n.Op == token.NEQ) && isRule(n.X) && isRule(n.Y) {
					comparisons++
					tested = isMade(n.X) || isMade(n.Y)
				}
			}
			if tested {
				t.Errorf("%s: %s tests the type of a rule: ask for its traits", p.fset.Position(n.Pos()), decl.Name.Name)
			}
			return true
		})
	})
	if comparisons == 0 {
		t.Error("no comparison of rules found: are types missing?")
	}
}

// isMade reports whether an expression creates a value.
func isMade(x ast.Expr) bool {
	switch x := x.(type) {
	case *ast.CallExpr: // rule(words{})
		return len(x.Args) == 1 && isMade(x.Args[0])
	case *ast.UnaryExpr:
		return isMade(x.X)
	case *ast.CompositeLit:
		return true
	}
	return false
}
