package auth

import (
	"strings"
	"testing"
	"time"

	"github.com/google/uuid"
)

// TestValues fixes key values that clients keep when their instance moves to svc.
func TestValues(t *testing.T) {
	for _, tt := range []struct{ master, uid, value string }{
		{"a-master-key-of-16+bytes", "00000001-5e11-4c0d-9a57-0123456789ab", "fd0b4b65aa36521af4b10823d44c74a17e373c5c8c701df6f7f4df35e3508d49"},
		{"a-master-key-of-16+bytes", "00000007-5E11-4C0D-9A57-0123456789AB", "e59483821d87634875da504f2f184393cea05629a4bcd2f0975ca23276307ecd"},
		{"another-master-key-16+", "00000007-5e11-4c0d-9a57-0123456789ab", "3968eaa73fe0217c5892cd0cce5b7d0c82c2a44ffa51c97eaeb6207e439c01cc"},
	} {
		v := derive(tt.master, uuid.MustParse(tt.uid))
		if got := v.text(); got != tt.value {
			t.Errorf("%s under %s: %s, want %s", tt.uid, tt.master, got, tt.value)
		}
		for _, text := range []string{tt.value, strings.ToUpper(tt.value)} {
			if got, ok := parseValue(text); !ok || got != v {
				t.Errorf("%s does not round-trip", text)
			}
		}
		for _, text := range []string{"", tt.value[1:], tt.value + "0", "x" + tt.value[1:]} {
			if _, ok := parseValue(text); ok {
				t.Errorf("%q is accepted as a value", text)
			}
		}
	}
}

func TestParseExpiry(t *testing.T) {
	now := time.Date(2026, 11, 21, 12, 0, 0, 0, time.UTC)
	for _, tt := range []struct{ text, want string }{
		{"2077-05-06", "2077-05-06T00:00:00Z"},
		{"2077-05-06 07:08:09", "2077-05-06T07:08:09Z"},
		{"2077-05-06T07:08:09", "2077-05-06T07:08:09Z"},
		{"2077-05-06T07:08:09Z", "2077-05-06T07:08:09Z"},
		{"2077-05-06t07:08:09z", "2077-05-06T07:08:09Z"},
		{"2077-05-06T07:08:09+02:00", "2077-05-06T07:08:09+02:00"},
		{"2077-05-06T07:08:09.123Z", "2077-05-06T07:08:09.123Z"},
		{"2077-05-06T07:08:09.123456789-03:30", "2077-05-06T07:08:09.123456789-03:30"},
		{"2026-11-21T12:00:00.000000001Z", "2026-11-21T12:00:00.000000001Z"},
		{"2026-11-21T12:00:00Z", ""},
		{"2026-11-21T13:00:00+02:00", ""},
		{"2001-01-01", ""},
		{"2077-05", ""},
		{"2077-13-01", ""},
		{"2077-02-30", ""},
		{"06/05/2077", ""},
		{"tomorrow", ""},
		{"", ""},
		{"2077-05-06T07:08", ""},
		{"2077-05-06T7:08:09Z", ""},
		{"2077-05-06T7:08:09.5Z", ""},
		{"2077-05-06T07:08:09,5Z", ""},
		{"2077-05-06T07:08:09+24:00", ""},
		{"2077-05-06_07:08:09", ""},
		{"2077-05-06 07:08:09Z", ""},
	} {
		got, err := ParseExpiry(tt.text, now)
		switch {
		case tt.want == "":
			if codeOf(err) != "invalid_api_key_expires_at" {
				t.Errorf("%q: %v, %v", tt.text, got, err)
			}
		case err != nil || got.Format(time.RFC3339Nano) != tt.want:
			t.Errorf("%q: %v, %v", tt.text, got.Format(time.RFC3339Nano), err)
		}
	}
}

// FuzzParseExpiry checks that an accepted time lies in the future and survives formatting.
func FuzzParseExpiry(f *testing.F) {
	for _, seed := range []string{"2077-05-06", "2077-05-06 07:08:09", "2077-05-06T07:08:09.5-03:30", "x"} {
		f.Add(seed)
	}
	now := time.Date(2026, 11, 21, 12, 0, 0, 0, time.UTC)
	f.Fuzz(func(t *testing.T, text string) {
		at, err := ParseExpiry(text, now)
		if err != nil {
			return
		}
		again, err := ParseExpiry(at.Format(time.RFC3339Nano), now)
		if err != nil || !again.Equal(at) || !at.After(now) {
			t.Errorf("%q: %v, then %v, %v", text, at, again, err)
		}
	})
}

// FuzzKeyRecord decodes any bytes as a stored key: an encoded result must decode to the same key.
func FuzzKeyRecord(f *testing.F) {
	uid := make([]byte, 16)
	for _, seed := range []string{
		`{"name":"n","description":null,"actions":["search","*.get"],"indexes":["a*"],"expiresAt":"2077-05-06T07:08:09+02:00","createdAt":"2026-01-02T03:04:05.6Z","updatedAt":"2026-01-02T03:04:05Z"}`,
		`{"actions":["nothing"]}`, `{}`, `[]`,
	} {
		f.Add(uid, []byte(seed))
	}
	f.Fuzz(func(t *testing.T, uid, record []byte) {
		k, err := decodeKey(uid, record)
		if err != nil {
			return
		}
		b, err := k.encode()
		if err != nil {
			return // a time that JSON cannot express
		}
		again, err := decodeKey(uid, b)
		if err != nil {
			t.Fatalf("%s is written as %s: %v", record, b, err)
		}
		if c, err := again.encode(); err != nil || string(c) != string(b) || rights(again.Actions) != rights(k.Actions) {
			t.Errorf("%s is written as %s and then as %s, %v", record, b, c, err)
		}
	})
}
