package fastapi

import (
	"encoding/json"
	"strings"
	"testing"

	"github.com/bytedance/sonic"
)

// TestBodiesAreStrict compares the accepted bodies with two libraries. encoding/json accepts nothing that is not JSON except invalid
// UTF-8 and halves of surrogate pairs; sonic accepts more. So encoding/json decides, readJSON checks the rest, and sonic decodes only
// checked bodies.
func TestBodiesAreStrict(t *testing.T) {
	c := newClient(t, Options{})
	nested := func(n int) string { return strings.Repeat("[", n) + strings.Repeat("]", n) }
	for _, tt := range []struct {
		what, body string
		accepted   bool // accepted as JSON by svc
		standard   bool // accepted by encoding/json
		sonic      bool // accepted by sonic in its stricter configuration
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
