package lint

import (
	"go/ast"
	"testing"
)

// numberWriters are the files that format floating-point numbers without jsontext.AppendFloat, each with the reason why no answer gets an
// infinity or NaN from it as a number.
var numberWriters = map[string]string{
	"fastapi/group.go":            "seconds in a header and in a message",
	"internal/jsontext/number.go": "AppendFloat itself",
	"internal/rule/shown.go":      "rules with other than finite factors are refused",
	"internal/task/progress.go":   "shares of steps, whose totals are at least 1; and a duration, in a string",
	"internal/task/times.go":      "a number of bytes, in a string",
	"internal/search/stages.go":   "a duration, in a string",
	"internal/numeric/numeric.go": "a value of a column, which is finite, in a string",
	"internal/rank/rule.go":       "the name of a rule, in a string",
	"internal/filter/print.go":    "the text of a filter, whose parser takes finite numbers only",
	"internal/script/lexer.go":    "source text of a function",
	"internal/template/value.go":  "text of a rendering",
}

// TestNumbersAreFinite checks that numbers are written by jsontext.AppendFloat, which never writes an infinity or NaN, because JSON has
// neither. encoding/json and sonic refuse them.
func TestNumbersAreFinite(t *testing.T) {
	used := map[string]bool{}
	eachFile(t, func(pkg, file string, f *ast.File) {
		if pkg == "bench" || pkg == "hostile" || pkg == "release" {
			return
		}
		ast.Inspect(f, func(n ast.Node) bool {
			s, ok := n.(*ast.SelectorExpr)
			if !ok || s.Sel.Name != "AppendFloat" && s.Sel.Name != "FormatFloat" || spelled(s.X) != "strconv" {
				return true
			}
			if used[file] = true; numberWriters[file] == "" {
				t.Errorf("%s: strconv.%s may write what is not JSON: call jsontext.AppendFloat, or say in numberWriters why not", file, s.Sel.Name)
			}
			return true
		})
	})
	for file := range numberWriters {
		if !used[file] {
			t.Errorf("%s no longer needs an exception", file)
		}
	}
}
