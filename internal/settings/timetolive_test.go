package settings

import (
	"strings"
	"testing"
)

// TestTimeToLive checks that the setting is shown and stored only while it is set.
func TestTimeToLive(t *testing.T) {
	for _, tt := range []struct{ body, one string }{
		{`{"timeToLive":{"attribute":"end"}}`, `{"attribute":"end"}`},
		{`{"timeToLive":{"seconds":0,"attribute":"a.b"}}`, `{"attribute":"a.b"}`},
		{`{"timeToLive":{"seconds":86400,"attribute":"made"}}`, `{"attribute":"made","seconds":86400}`},
		{`{"timeToLive":null}`, `null`},
	} {
		s := mustApply(t, Default(), tt.body)
		if one, err := s.One("time-to-live"); err != nil || string(one) != tt.one {
			t.Errorf("%s: %s, %v", tt.body, one, err)
		}
		member := `"timeToLive":` + tt.one
		for name, b := range map[string][]byte{"shown": s.JSON(Features{}), "full": s.Full(), "a patch": s.Patch(), "stored": s.Encode()} {
			if got := strings.Contains(string(b), member); got != (tt.one != "null") || !got && strings.Contains(string(b), "timeToLive") {
				t.Errorf("%s, %s: %s", tt.body, name, b)
			}
		}
		again, err := Decode(s.Encode())
		if err != nil {
			t.Fatal(err)
		}
		if one, _ := again.One("time-to-live"); string(one) != tt.one {
			t.Errorf("%s: stored as %s", tt.body, one)
		}
		if one, _ := mustApply(t, s, `{"timeToLive":null}`).One("time-to-live"); string(one) != "null" {
			t.Errorf("%s: reset to %s", tt.body, one)
		}
	}
	u, err := ParseUpdate([]byte(`{"timeToLive":null}`), Features{})
	if err != nil {
		t.Fatal(err)
	}
	if b, _ := u.MarshalJSON(); string(b) != `{"timeToLive":null}` {
		t.Errorf("a reset is echoed as %s", b)
	}
	set := mustApply(t, Default(), `{"timeToLive":{"attribute":"end"}}`)
	all, err := UnmarshalUpdate(ResetAll().Full()) // the form in the queue
	if err != nil {
		t.Fatal(err)
	}
	if s, err := set.Apply(all); err != nil || s.TimeToLive != nil {
		t.Errorf("a reset of all leaves %+v, %v", s.TimeToLive, err)
	}
}
