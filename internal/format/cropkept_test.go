package format

import (
	"fmt"
	"strings"
	"testing"

	"svc/internal/settings"
	"svc/segment"
)

// TestCropsAreCached finds a cached crop, and none for another length, path, row or locales.
func TestCropsAreCached(t *testing.T) {
	v := viewOf(t, "", fmt.Sprintf(`{"id":1,"body":"%s fast python"}`, strings.Repeat("lorem ipsum ", 6000)))
	doc, err := v.Segments[0].AppendDocument(nil, 0)
	if err != nil {
		t.Fatal(err)
	}
	h := highlights("python fast")
	f := New(&v.Outline, &Options{Retrieve: []string{"id"}, Crop: []string{"body"}, CropLength: 2, Marker: "…"}, h)
	f.Stored(v)
	if _, err := f.AppendFormatted(nil, 0, 0, doc, nil); err != nil {
		t.Fatal(err)
	}
	k := keptCrops{view: v, highlights: h}
	for _, tt := range []struct {
		what string
		o    pathOptions
		row  segment.Row
		want string
	}{
		{"the same", pathOptions{path: "body", crop: 2}, 0, "fast python"},
		{"another length", pathOptions{path: "body", crop: 3}, 0, ""},
		{"another path", pathOptions{path: "title", crop: 2}, 0, ""},
		{"another row", pathOptions{path: "body", crop: 2}, 1, ""},
		{"other locales", pathOptions{path: "body", crop: 2, locales: []string{}}, 0, ""},
	} {
		got := ""
		if c := k.get(0, tt.row, &tt.o); c != nil {
			got = string(c.text)
		}
		if got != tt.want {
			t.Errorf("%s: %q, want %q", tt.what, got, tt.want)
		}
	}
	base := string(hashOfMatching(v.Settings, highlights("python fast")))
	if base != string(hashOfMatching(v.Settings, highlights("python fast"))) {
		t.Error("the hash of a query is not stable")
	}
	for _, other := range []string{"python", "fast python", `"python fast"`, "pythons fast"} {
		if base == string(hashOfMatching(v.Settings, highlights(other))) {
			t.Errorf("%s has the same hash", other)
		}
	}
	for name, change := range map[string]func(*settings.Settings){
		"separators":    func(s *settings.Settings) { s.SeparatorTokens = []string{"x"} },
		"nonSeparators": func(s *settings.Settings) { s.NonSeparatorTokens = []string{"x"} },
		"dictionary":    func(s *settings.Settings) { s.Dictionary = []string{"x"} },
	} {
		s := *v.Settings
		if change(&s); base == string(hashOfMatching(&s, highlights("python fast"))) {
			t.Errorf("with other %s the hash is the same", name)
		}
	}
}
