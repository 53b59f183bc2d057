package main

import (
	"bytes"
	"fmt"
	"math"
	"math/rand/v2"
	"strconv"
	"strings"
)

// shortSettings are the settings for short texts: two texts to search, five attributes to filter by, a number to sort by.
const shortSettings = `{"searchableAttributes":["name","summary"],` +
	`"filterableAttributes":["language","kind","country","license","topic"],"sortableAttributes":["rank"]}`

// generateShort makes n documents of a name and a summary, of 9 words in the median, in many languages. Words follow Zipf's law without
// a last word: 1.1 million documents have 2 million distinct ones, among them numbers, versions and identifiers. All documents
// have a language and a kind, and few have one of the other attributes.
func generateShort(n int) *dataset {
	g := newShortGenerator()
	b := bytes.NewBuffer(make([]byte, 0, 200*n))
	for id := range n {
		g.document(b, id)
	}
	return &dataset{name: "short texts", title: "Generated short texts", documents: n, payload: b.Bytes(), short: true}
}

type shortGenerator struct {
	*rand.Rand
	word     *rand.Zipf // ranks of words of a language
	language *rand.Zipf
	topic    *rand.Zipf
	kind     *rand.Zipf
}

// A tongue is a language: its words are syllables, or single characters without spaces between words.
type tongue struct {
	name    string
	initial []string
	rest    []string
	last    []string
	spaced  bool
}

var (
	latinInitials    = strings.Fields("b c d f g h j k l m n p r s t v w z ch cl dr fr gr pl pr sh st th tr qu")
	latinNuclei      = strings.Fields("a e i o u ai ea ou io y")
	cyrillicInitials = strings.Fields("б в г д ж з к л м н п р с т ф х ц ч ш ст пр тр")
	greekInitials    = strings.Fields("β γ δ ζ θ κ λ μ ν π ρ σ τ φ χ ψ στ πρ")
	arabicInitials   = strings.Fields("ب ت ث ج ح خ د ر ز س ش ص ط ع غ ف ق ك ل م ن ه")
	hangulInitials   = strings.Fields("가 나 다 라 마 바 사 아 자 차 카 타 파 하 거 너 더 러 머 버 서 어 저 고 노 도 로 모 보 소 오 조")
	devanagari       = strings.Fields("क ख ग घ च छ ज ट ड त थ द ध न प ब भ म य र ल व श स ह")
)

// tongues are in the order of their shares. Languages of Latin letters differ by their vowels and endings.
var tongues = []tongue{
	{"en", latinInitials, latinNuclei, append(strings.Fields("n r s t ng ck"), "", "", "", ""), true},
	{"de", latinInitials, strings.Fields("a e i o u ä ö ü ei au"), append(strings.Fields("n en er st ung"), "", ""), true},
	{"fr", latinInitials, strings.Fields("a e é è i o u ou oi eau"), append(strings.Fields("s t nt"), "", "", ""), true},
	{"ru", cyrillicInitials, strings.Fields("а е и о у ы я ё"), append(strings.Fields("н й ть в"), "", "", ""), true},
	{"es", latinInitials, strings.Fields("a e i o u á é í ó ia"), append(strings.Fields("s n r"), "", "", ""), true},
	{"zh", nil, nil, nil, false},
	{"pl", latinInitials, strings.Fields("a e i o u y ą ę ó"), append(strings.Fields("ł ć sz"), "", ""), true},
	{"ja", nil, nil, nil, false},
	{"el", greekInitials, strings.Fields("α ε η ι ο υ ω ά έ ό"), append(strings.Fields("ς ν"), "", ""), true},
	{"ar", arabicInitials, append(strings.Fields("ا و ي"), "", ""), []string{"", "ة", "ن"}, true},
	{"ko", hangulInitials, strings.Fields("각 는 들 림 문 방 상 이 전 치 기 리"), []string{"", "의", "을"}, true},
	{"hi", devanagari, strings.Fields("ा ि ी ु े ो"), []string{"", "न", "र"}, true},
	{"tr", latinInitials, strings.Fields("a e ı i o ö u ü"), append(strings.Fields("lar ler k"), "", ""), true},
}

// attributes that few documents have
var (
	kinds     = strings.Fields("person place work concept event species organization product")
	countries = strings.Fields("ar au br ca cn de eg es fr gr id in it jp kr mx ng nl no pl ru se tr ua us vn za")
	licenses  = strings.Fields("MIT Apache-2.0 GPL-3.0 BSD-3-Clause ISC MPL-2.0 CC0-1.0")
)

func newShortGenerator() *shortGenerator {
	g := &shortGenerator{Rand: rand.New(rand.NewPCG(20261127, 9))}
	g.word = rand.NewZipf(g.Rand, 1.19, 6, math.MaxUint32)
	g.language = rand.NewZipf(g.Rand, 1.9, 2, uint64(len(tongues)-1))
	g.topic = rand.NewZipf(g.Rand, 1.2, 3, 5000)
	g.kind = rand.NewZipf(g.Rand, 1.4, 2, uint64(len(kinds)-1))
	return g
}

// spell writes the word of a rank: different ranks give different syllables. Frequent words are short.
func (t *tongue) spell(b *bytes.Buffer, rank uint64) {
	if !t.spaced {
		// One to three ideographs, of 2,500 that are frequent.
		for more := true; more; rank /= 2500 {
			b.WriteRune(rune(0x4e00 + mix(rank%2500)%2500*3))
			more = rank >= 2500
		}
		return
	}
	form := mix(rank)
	syllables := uint64(len(t.initial) * len(t.rest))
	for more := true; more; rank /= syllables {
		digit := rank % syllables
		b.WriteString(t.initial[digit%uint64(len(t.initial))] + t.rest[digit/uint64(len(t.initial))])
		if form%5 < 2 {
			b.WriteString(t.last[form/5%uint64(len(t.last))])
		}
		form = mix(form)
		more = rank >= syllables
	}
}

// mix scatters numbers (the end of SplitMix64).
func mix(x uint64) uint64 {
	x = (x ^ x>>30) * 0xbf58476d1ce4e5b9
	x = (x ^ x>>27) * 0x94d049bb133111eb
	return x ^ x>>31
}

// token writes one word of a text; one in ten is a number, a version or an identifier.
func (g *shortGenerator) token(b *bytes.Buffer, t *tongue) {
	switch kind := g.IntN(100); {
	case kind < 4:
		b.WriteString(strconv.Itoa(1900 + g.IntN(130)))
	case kind < 6:
		b.WriteString(strconv.Itoa(int(g.ExpFloat64() * g.ExpFloat64() * 2000)))
	case kind < 8:
		fmt.Fprintf(b, "v%d.%d.%d", g.few(2), g.few(6), g.few(12))
	case kind < 9:
		t.spell(b, g.word.Uint64())
		fmt.Fprintf(b, "-%d", g.few(30))
	default:
		t.spell(b, g.word.Uint64())
	}
}

// few returns a number that is mostly small, with the given mean.
func (g *shortGenerator) few(mean float64) int { return int(g.ExpFloat64() * mean) }

// text writes n words.
func (g *shortGenerator) text(b *bytes.Buffer, t *tongue, n int) {
	for i := range n {
		if i > 0 && t.spaced {
			b.WriteByte(' ')
		}
		g.token(b, t)
	}
}

func (g *shortGenerator) document(b *bytes.Buffer, id int) {
	t := &tongues[g.language.Uint64()]
	fmt.Fprintf(b, `{"id":%d,"name":"`, id)
	// A name has one word that few other names have.
	words := g.IntN(3)
	if g.text(b, t, words); words > 0 && t.spaced {
		b.WriteByte(' ')
	}
	t.spell(b, uint64(g.ExpFloat64()*200_000))
	b.WriteString(`","summary":"`)
	g.text(b, t, 1+int(math.Exp(1.85+0.6*g.NormFloat64())))
	fmt.Fprintf(b, `","language":%q,"kind":%q,"rank":%d`, t.name, kinds[g.kind.Uint64()], int(math.Exp(16*g.Float64())))
	if g.IntN(8) == 0 {
		fmt.Fprintf(b, `,"country":%q`, countries[g.IntN(len(countries))])
	}
	if g.IntN(12) == 0 {
		fmt.Fprintf(b, `,"license":%q`, licenses[g.IntN(len(licenses))])
	}
	if g.IntN(6) == 0 {
		fmt.Fprintf(b, `,"topic":["t%d","t%d"]`, g.topic.Uint64(), g.topic.Uint64())
	}
	b.WriteString("}\n")
}
