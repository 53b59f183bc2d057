package fastapi

import (
	"encoding/json"
	"strings"
	"testing"

	"github.com/bytedance/sonic"
)

// TestBodiesAreStrict holds what is accepted as a body against the two libraries that could decide it: encoding/json lets nothing
// pass that is no JSON but bytes that are no UTF-8 and halves of surrogate pairs, sonic passes more. So encoding/json decides, readJSON
// looks for the rest, and what sonic decodes afterwards has been looked at.
func TestBodiesAreStrict(t *testing.T) {
	c := newClient(t, Options{})
	nested := func(n int) string { return strings.Repeat("[", n) + strings.Repeat("]", n) }
	for _, tt := range []struct {
		what, body string
		accepted   bool // as JSON, whatever the route makes of it
		standard   bool // by encoding/json
		sonic      bool // by sonic, in the stricter of its configurations
	}{
		{"a name twice", `{"x": 1, "x": 2}`, true, true, true},
		{"bytes behind", `{} x`, false, false, false},
		{"a comma behind", `[1,]`, false, false, false},
		{"NUL behind", "{}\x00", false, false, false},
		{"a mark of the byte order", "\ufeff{}", false, false, false},
		{"no UTF-8", "\"\xff\"", false, true, true},
		{"no UTF-8 in a name", "{\"\xff\": 1}", false, true, true},
		{"a surrogate in UTF-8", "\"\xed\xa0\x80\"", false, true, true},
		{"half of a pair", `"\ud800"`, false, true, true},
		{"the other half", `"\udc00"`, false, true, true},
		{"a pair", `"\ud83d\ude00"`, true, true, true},
		{"no escape", `"\x"`, false, false, true},
		{"an escape that is no number", `"\u12g4"`, false, false, true},
		{"an escape that is short", `"\u12"`, false, false, true},
		{"a control character", "\"\x01\"", false, false, true},
		{"a line break in a text", "\"\n\"", false, false, true},
		{"a number that begins with 0", `01`, false, false, false},
		{"a number of 400 digits", strings.Repeat("9", 400), true, true, true},
		{"an exponent beyond all", `1e999999`, true, true, true},
		{"no number", `NaN`, false, false, false},
		{"deep", nested(maxDepth), true, true, true},
		{"too deep", nested(maxDepth + 1), false, true, true},
		{"very deep", nested(5000), false, true, false},
	} {
		if got := json.Valid([]byte(tt.body)); got != tt.standard {
			t.Errorf("%s: encoding/json says %t", tt.what, got)
		}
		if got := sonic.ConfigStd.Valid([]byte(tt.body)); got != tt.sonic {
			t.Errorf("%s: sonic says %t", tt.what, got)
		}
		if r := c.json("PATCH", "/experimental-features", tt.body); (r.code() != "malformed_payload") != tt.accepted {
			t.Errorf("%s: %d %s", tt.what, r.status, r.body)
		}
	}
}
