package settings

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"reflect"
	"strings"
	"testing"

	"svc/internal/apierr"
)

// TestRecentScores parses more texts than the cache holds, again and again, and compares the results with fresh ones.
func TestRecentScores(t *testing.T) {
	r := rand.New(rand.NewPCG(1, 2))
	before, kept := map[string]*ScoreFunctions{}, 0
	for range 4000 {
		text := fmt.Appendf(nil, `[{"name":"a","function":"log","attribute":"x","scale":%d,"weight":%d}%s]`, 1+r.IntN(30), r.IntN(3), strings.Repeat(" ", r.IntN(2)*maxRecentScore))
		given := string(text)
		got, err := ParseScoreFunctions(text, "scoreFunctions", "c")
		if err != nil {
			t.Fatal(err)
		}
		clear(text) // the buffer of a request is reused
		want, err := readScores(value{[]byte(strings.ReplaceAll(given, " ", "")), "", ""})
		if err != nil || !reflect.DeepEqual(got, want) {
			t.Fatalf("%s: got %s, want %s, %v", given, got.JSON(), want.JSON(), err)
		}
		if got == before[given] {
			kept++
			if len(given) > maxRecentScore {
				t.Fatalf("%d bytes are cached", len(given))
			}
		}
		before[given] = got
	}
	if kept < 100 {
		t.Errorf("the cache served %d of 4000 requests", kept)
	}
	for range 2 { // errors must name their own members
		for _, path := range []string{"scoreFunctions", "queries[1].scoreFunctions"} {
			_, err := ParseScoreFunctions([]byte(`[{"name":"a","function":"log"}]`), path, apierr.Code(path))
			var e *apierr.Error
			if !errors.As(err, &e) || e.Code != apierr.Code(path) || !strings.Contains(e.Message, "`"+path+"[0]`") {
				t.Fatalf("%s: %v", path, err)
			}
		}
	}
}

func BenchmarkParseScoreFunctions(b *testing.B) {
	for name, each := range map[string]int{"same": 0, "new": 1} {
		b.Run(name, func(b *testing.B) {
			b.ReportAllocs()
			for scale := 1; b.Loop(); scale += each {
				text := fmt.Appendf(nil, `[{"name":"large","function":"log","attribute":"size","scale":%d},{"name":"usual","function":"decay","attribute":"size","origin":500,"scale":500}]`, scale)
				if _, err := ParseScoreFunctions(text, "scoreFunctions", "c"); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}
