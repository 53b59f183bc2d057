package script

import (
	"errors"
	"strings"
	"testing"
)

// TestSyntaxErrors checks the position and the text of errors.
func TestSyntaxErrors(t *testing.T) {
	tests := []struct {
		source       string
		line, column int
		message      string
	}{
		{"doc.x = ", 1, 9, "expected an expression, found the end of the script"},
		{"let a = 1;\nlet = 3", 2, 5, `expected the name of a variable, found "="`},
		{"doc.x = 1\ndoc.y = 2", 2, 1, `expected a semicolon between statements, found "doc"`},
		{"let s = \"a\n\"", 1, 9, "unterminated string"},
		{"let s = `a\n${1 + }`", 2, 7, "expected an expression"},
		{"let s = `a", 1, 9, "unterminated string in backticks"},
		{"let s = `a${`b${1}`", 1, 20, "unterminated string in backticks"},
		{"let s = `a${#{b: 1}}", 1, 9, "unterminated string in backticks"},
		{"`${1}${}${`}`}`; x = = 1", 1, 22, `expected an expression, found "="`},
		{"/* a\n /* b */", 1, 1, "unterminated comment"},
		{"1 + ; /* a", 1, 5, "expected an expression"},
		{"let s = \"\\q\"", 1, 10, "unknown escape sequence"},
		{"1 + 1 = 2", 1, 7, "only a variable, a property or an element can be assigned to"},
		{"if x { fn f() {} }", 1, 8, "a function can only be defined at the top of the script"},
		{"fn f(a) {}\nfn f(b) {}", 2, 1, "the function f with 1 parameters is defined twice"},
		{"for i in 0..3 { }\ncontinue", 2, 1, "continue stands outside of a loop"},
		{"let c = || break;", 1, 12, "break stands outside of a loop"},
		{"switch x { y => 1 }", 1, 12, "a case of switch must be a literal or a range of integers"},
		{"x = 9223372036854775808", 1, 5, "the integer 9223372036854775808 does not fit 64 bits"},
		{"x = #\"a\n\" ", 1, 5, "unterminated string"},
		{"x = #\"a\nb\"# y", 2, 5, "expected a semicolon"},
		{"x = 'ab'", 1, 5, "single quotes hold exactly one character"},
		{strings.Repeat("(", 200), 1, maxDepth, "the script is nested more than 128 levels deep"},
	}
	for _, test := range tests {
		_, err := translate(test.source)
		var e *SyntaxError
		if !errors.As(err, &e) || e.Line != test.line || e.Column != test.column || !strings.Contains(e.Message, test.message) {
			t.Errorf("%.40q: error %v, want line %d, column %d: … %s", test.source, err, test.line, test.column, test.message)
		}
		if checked := check(test.source); checked == nil || checked.Error() != err.Error() {
			t.Errorf("%.40q: checked alone: %v, want %v", test.source, checked, err)
		}
	}
}

// TestPrecedence shows how operators group, by the nesting of the translated calls.
func TestPrecedence(t *testing.T) {
	tests := []struct{ source, want string }{
		{"1 + 2 * 3", "add((1n), mul((2n), (3n)))"},
		{"1 - 2 - 3", "sub(sub((1n), (2n)), (3n))"},
		{"2 ** 3 ** 4", "pow((2n), pow((3n), (4n)))"},
		{"-1 ** 2", "pow((-1n), (2n))"},
		{"1 + 2 << 3", "add((1n), shl((2n), (3n)))"},
		{"1 + 2 == 3 && true || false", "(bool((bool(same(add((1n), (2n)), (3n))) && bool(true))) || bool(false))"},
		{"1 in 0..2 + 1", "contains(range((0n), add((2n), (1n)), false), (1n))"},
		{"1 !in [2]", "not(contains(array([(2n)]), (1n)))"},
		{"!true == false", "same(not(true), false)"},
	}
	for _, test := range tests {
		js, err := translate(test.source)
		if err != nil {
			t.Errorf("%s: %v", test.source, err)
			continue
		}
		if !strings.Contains(js, test.want+";") {
			t.Errorf("%s: translated to\n%s\nwithout %s", test.source, js, test.want)
		}
	}
}
