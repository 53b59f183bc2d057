package search

import (
	"fmt"
	"strings"
	"testing"
)

// TestInnerWords checks which documents a query finds whose words are within longer ones, in which order, and what is marked.
func TestInnerWords(t *testing.T) {
	for _, test := range []struct {
		language string
		texts    []string
		queries  map[string]string // to the texts, marked, in order
	}{
		{"Korean", []string{"서울대학교에서 공부한다", "대학교", "학교", "한국전력공사", "아파트 단지", "파트", "초등학교 도서관", "스마트폰 케이스"}, map[string]string{
			"대학교":    "[대학교]|서울[대학교]에서 공부한다",
			"학교":     "[학교]|대[학교]|서울대[학교]에서 공부한다|초등[학교] 도서관",
			"전력":     "한국[전력]공사",
			"한국전력":   "[한국전력]공사",
			"파트":     "[파트]", // not in 아파트
			"마트":     "",
			"서울 공부":  "[서울]대학교에서 [공부]한다",
			"학교 도서관": "초등[학교] [도서관]|[학교]|대[학교]|서울대[학교]에서 공부한다",
			"서울대학교":  "[서울대학교]에서 공부한다",
		}},
		{"Thai", []string{"มีประวัติศาสตร์", "ประวัติศาสตร์", "มหาวิทยาลัยเชียงใหม่", "สถานีรถไฟ", "อ่านหนังสือ", "โรงเรียน", "ห้องสมุด"}, map[string]string{
			"ประวัติศาสตร์ ": "[ประวัติศาสตร์]|มี[ประวัติศาสตร์]",
			"เชียงใหม่ ":     "มหาวิทยาลัย[เชียงใหม่]",
			"รถไฟ ":          "สถานี[รถไฟ]",
			"หนังสือ ":       "อ่าน[หนังสือ]",
			"เรียน ":         "",
		}},
	} {
		l := newLibrary(t)
		docs := make([]string, len(test.texts))
		for i, s := range test.texts {
			docs[i] = fmt.Sprintf(`{"id":%d,"t":%q}`, i, s)
		}
		l.put("a", "", docs...)
		for q, want := range test.queries {
			hits, err := l.search("a", Request{Query: q, AttributesToRetrieve: []string{"none"}, AttributesToHighlight: []string{"t"}}, nil)
			if err != nil {
				t.Fatal(err)
			}
			got := strings.NewReplacer(`{"_formatted":{"t":"`, "", `"}}`, "", "<em>", "[", "</em>", "]").Replace(strings.Join(hits, "|"))
			if got != want {
				t.Errorf("%s: %s: %s, want %s", test.language, q, got, want)
			}
		}
	}
}
