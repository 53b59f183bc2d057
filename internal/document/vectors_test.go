package document

import (
	"bytes"
	"encoding/base64"
	"encoding/binary"
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"strconv"
	"strings"
	"testing"

	"svc/internal/apierr"
)

func TestReadVectorEntry(t *testing.T) {
	const kind, length = apierr.Code("invalid_vectors_type"), apierr.Code("invalid_vector_dimensions")
	none := []float32{}
	for _, test := range []struct {
		value string
		want  VectorEntry
		code  apierr.Code
		says  string // part of the message
	}{
		{value: `[1,-2.5,3e-1]`, want: VectorEntry{Given: true, Vectors: []float32{1, -2.5, .3}}},
		{value: `[[1,0,0],[0,1,0.5]]`, want: VectorEntry{Given: true, Vectors: []float32{1, 0, 0, 0, 1, .5}}},
		{value: `null`, want: VectorEntry{Given: true, Vectors: none}},
		{value: `[]`, want: VectorEntry{Given: true, Vectors: none}},
		{value: `{"regenerate":true}`, want: VectorEntry{Regenerate: true, Vectors: none}},
		{value: `{"regenerate":false}`, want: VectorEntry{Vectors: none}},
		{value: `{"regenerate":true,"embeddings":[1,2,3]}`, want: VectorEntry{Given: true, Regenerate: true, Vectors: []float32{1, 2, 3}}},
		{value: `{"embeddings":[[1,2,3]],"regenerate":false}`, want: VectorEntry{Given: true, Vectors: []float32{1, 2, 3}}},
		{value: `{"embeddings":[],"regenerate":true}`, want: VectorEntry{Given: true, Regenerate: true, Vectors: none}},
		{value: `{"embeddings":null,"regenerate":true}`, want: VectorEntry{Regenerate: true, Vectors: none}},
		{value: `{"embeddings":null,"regenerate":false}`, want: VectorEntry{Vectors: none}},

		{value: `{}`, code: kind, says: "`regenerate` is missing"},
		{value: `{"embeddings":[1,2,3]}`, code: kind, says: "`regenerate` is missing"},
		{value: `{"regenerate":"yes"}`, code: kind, says: `"yes"`},
		{value: `{"regenerate":null,"embeddings":[1,2,3]}`, code: kind, says: "null"},
		{value: `{"regenerate":false,"vectors":[1,2,3]}`, code: kind, says: "`vectors`"},
		{value: `{"regenerate":false,"embeddings":"x"}`, code: kind, says: `"x"`},
		{value: `{"regenerate":false,"embeddings":{}}`, code: kind, says: `{}`},
		{value: `"text"`, code: kind, says: `"text"`},
		{value: `5`, code: kind, says: "5"},
		{value: `true`, code: kind, says: "true"},
		{value: `"AACAPwAAIMCamZk+"`, want: VectorEntry{Given: true, Vectors: []float32{1, -2.5, .3}}},
		{value: `["AACAPwAAAAAAAAAA",[0,1,0.5]]`, want: VectorEntry{Given: true, Vectors: []float32{1, 0, 0, 0, 1, .5}}},
		{value: `[[0,1,0.5],"AACAPwAAIMCamZk\u002b"]`, want: VectorEntry{Given: true, Vectors: []float32{0, 1, .5, 1, -2.5, .3}}},
		{value: `{"embeddings":"AACAPwAAIMCamZk+","regenerate":false}`, want: VectorEntry{Given: true, Vectors: []float32{1, -2.5, .3}}},
		{value: `"AACAPwAAAAAAAMB/"`, code: kind, says: "finite"},   // NaN
		{value: `["AACAPwAAAAAAAIB/"]`, code: kind, says: "finite"}, // infinite
		{value: `"AACAPw"`, code: length, says: "embedding 0 has 1 numbers"},
		{value: `["AACAPwAAAAAAAAAA","AACAPw=="]`, code: length, says: "embedding 1 has 1 numbers"},
		{value: `["a","b","c"]`, code: kind, says: "embedding 0"},
		{value: `[1,"2",3]`, code: kind, says: "item 1 of embedding 0"},
		{value: `[1,[2],3]`, code: kind, says: "item 1 of embedding 0"},
		{value: `[null,1,2]`, code: kind, says: "null"},
		{value: `[[1,2,3],4]`, code: kind, says: "embedding 1"},
		{value: `[[1,2,3],null]`, code: kind, says: "embedding 1"},
		{value: `[[["deep"]]]`, code: kind, says: `["deep"]`},
		{value: `[[1,2,{}]]`, code: kind, says: "{}"},
		{value: `[1,2,1e39]`, code: kind, says: "1e39"},
		{value: `[1,2]`, code: length, says: "embedding 0 has 2 numbers"},
		{value: `[1,2,3,4]`, code: length, says: "embedding 0 has 4 numbers"},
		{value: `[[1,2,3],[1,2]]`, code: length, says: "embedding 1 has 2 numbers"},
		{value: `[[]]`, code: length, says: "embedding 0 has 0 numbers"},
		{value: `{"regenerate":false,"embeddings":[1]}`, code: length, says: "3 dimensions"},
	} {
		got, err := ReadVectorEntry(nil, []byte(test.value), 3, "main", []byte("doc-7"))
		if test.code == "" {
			if err != nil || got.Given != test.want.Given || got.Regenerate != test.want.Regenerate || !slices.Equal(got.Vectors, test.want.Vectors) {
				t.Errorf("%s: %+v, %v, want %+v", test.value, got, err, test.want)
			}
			continue
		}
		var e *apierr.Error
		if !errors.As(err, &e) || e.Code != test.code {
			t.Errorf("%s: %v, want %s", test.value, err, test.code)
			continue
		}
		for _, part := range []string{test.says, "`doc-7`", "main"} {
			if !strings.Contains(e.Message, part) {
				t.Errorf("%s: %q does not say %q", test.value, e.Message, part)
			}
		}
	}
}

func TestVectors(t *testing.T) {
	for _, test := range []struct{ doc, want string }{
		{`{"id":1}`, ``},
		{`{"id":1,"t":"_vectors"}`, ``},
		{`{"id":1,"n":{"_vectors":{}}}`, ``},
		{`{"_vectors":{"a":[1]},"id":1}`, `{"a":[1]}`},
		{`{"id":1,"\u005fvectors":{"a":[1]}}`, `{"a":[1]}`},
		{`{"id":1,"_vectors":{}}`, `{}`},
	} {
		if got, err := Vectors([]byte(test.doc)); err != nil || string(got) != test.want {
			t.Errorf("%s: %s, %v, want %s", test.doc, got, err, test.want)
		}
	}
	for _, value := range []string{`null`, `[]`, `[1]`, `"x"`, `5`, `true`} {
		var e *apierr.Error
		if _, err := Vectors([]byte(`{"id":1,"_vectors":` + value + `}`)); !errors.As(err, &e) || e.Code != "invalid_vectors_type" {
			t.Errorf("%s: %v", value, err)
		}
	}
}

func TestSetVectors(t *testing.T) {
	for _, test := range []struct{ doc, drop, add, want string }{
		{`{"id":1}`, "a", ``, `{"id":1}`},
		{`{"id":1}`, "a", `"b":[1]`, `{"id":1,"_vectors":{"b":[1]}}`},
		{`{"_vectors":{"a":[1]},"id":1}`, "a", ``, `{"id":1}`},
		{`{"id":1,"_vectors":{}}`, "a", ``, `{"id":1}`},
		{`{"id":1,"_vectors":{"b":[1],"a":[2],"c":null},"t":2}`, "a", ``, `{"id":1,"_vectors":{"b":[1],"c":null},"t":2}`},
		{`{"id":1,"_vectors":{"b":[1],"a":[2]}}`, "a", `"d":3`, `{"id":1,"_vectors":{"b":[1],"d":3}}`},
		{`{"id":1,"_vectors":{"\u0061":[2],"x":1}}`, "a", ``, `{"id":1,"_vectors":{"x":1}}`},
		{`{"id":1,"_vectors":{"b":[1]}}`, "a", ``, `{"id":1,"_vectors":{"b":[1]}}`},
	} {
		got, err := SetVectors(nil, []byte(test.doc), func(name []byte) bool { return string(name) == test.drop }, []byte(test.add))
		if err != nil || string(got) != test.want {
			t.Errorf("%s without %s and with %s: %s, %v, want %s", test.doc, test.drop, test.add, got, err, test.want)
		}
	}
}

func TestAppendVectorEntry(t *testing.T) {
	for _, test := range []struct {
		vectors []float32
		want    string
	}{
		{nil, `{"regenerate":false,"embeddings":[]}`},
		{[]float32{1, .1}, `{"regenerate":false,"embeddings":[[1.0,0.10000000149011612]]}`},
		{[]float32{1, 2, 3, 4}, `{"regenerate":false,"embeddings":[[1.0,2.0],[3.0,4.0]]}`},
	} {
		got := AppendVectorEntry(nil, test.vectors, 2, false)
		if string(got) != test.want {
			t.Errorf("%v: %s, want %s", test.vectors, got, test.want)
		}
		e, err := ReadVectorEntry(nil, got, 2, "e", nil)
		if err != nil || !slices.Equal(e.Vectors, append([]float32{}, test.vectors...)) {
			t.Errorf("%s reads as %v, %v", got, e, err)
		}
	}
}

func TestMergeKeepsVectorsOfOtherEmbedders(t *testing.T) {
	got, err := AppendMerge(nil, []byte(`{"id":1,"_vectors":{"a":[1],"b":[2]}}`), []byte(`{"id":1,"_vectors":{"b":[3],"c":[4]}}`))
	if want := `{"id":1,"_vectors":{"a":[1],"b":[3],"c":[4]}}`; err != nil || string(got) != want {
		t.Errorf("%s, %v, want %s", got, err, want)
	}
}

// TestFloatAt compares floatAt, a fast path, with strconv.
func TestFloatAt(t *testing.T) {
	check := func(s string) {
		want, _ := strconv.ParseFloat(s, 64)
		got, end := floatAt([]byte(s+","), 0)
		if math.Float32bits(got) != math.Float32bits(float32(want)) || end != len(s) {
			t.Fatalf("%s: %g, ends at %d, want %g", s, got, end, float32(want))
		}
	}
	for _, s := range []string{"0", "-0", "0.0", "1", "-1", "0.1", "1e-45", "1e-46", "0.01234567890123456789", "-0.0012345678901234567", "0.00000000000000000000000", "00.0012345678901234567e3", "1.1754943e-38", "3.4028234e38", "3.4028236e38", "1e39", "-1e400", "1e-400", "123456789012345678901234567890",
		"16777217", "16777219", "16777216.999999999", "0.000000000000000000000000000000000000000000001401298464324817", "9007199254740993", "1E+2", "1e22", "1e23", "5e-324", "0.10000000149011612",
		"8388608.5", "8388609.5", "8388608.50000000000000001", "1e99999999999999999999"} {
		check(s)
	}
	seed := rand.Uint64()
	t.Logf("seed %d", seed)
	r := rand.New(rand.NewPCG(seed, 1))
	for range 300_000 {
		f := math.Float32frombits(r.Uint32())
		if f != f || math.IsInf(float64(f), 0) {
			continue
		}
		switch r.IntN(7) {
		case 0:
			check(strconv.FormatFloat(float64(f), 'g', -1, 32))
		case 1:
			check(strconv.FormatFloat(float64(f), 'f', r.IntN(25), 64))
		case 2: // close to the middle between two floats
			middle := math.Float64frombits(math.Float64bits(float64(f)) | 1<<28)
			check(strconv.FormatFloat(middle, 'g', 17+r.IntN(4), 64))
		case 3:
			check(strconv.FormatFloat(r.Float64()*2-1, 'g', -1, 64))
		case 4:
			check(strconv.FormatFloat(float64(f), 'e', r.IntN(20), 64))
		case 5: // vector components as programs write them
			check(strconv.FormatFloat(r.NormFloat64()*0.05, 'f', -1, 32<<r.IntN(2)))
		default:
			check(fmt.Sprintf("%d.%de%d", r.IntN(1000), r.Uint64(), r.IntN(80)-40))
		}
	}
}

// appendPlain is a fast path of floatAt for lists of numbers.
func TestAppendPlain(t *testing.T) {
	seed := rand.Uint64()
	t.Logf("seed %d", seed)
	r := rand.New(rand.NewPCG(seed, 3))
	all, plain := 0, 0
	for range 5000 {
		text, values := []byte("["), []float32{}
		for n := r.IntN(12); n > 0 || len(values) == 0; n-- {
			f, s := r.NormFloat64()*[]float64{0.05, 1e-3, 2, 1e9}[r.IntN(4)], ""
			switch r.IntN(8) {
			case 0:
				s = strconv.FormatFloat(f, 'f', r.IntN(27), 64)
			case 1: // next to the middle of two floats
				middle := math.Float64frombits(math.Float64bits(float64(float32(f))) | 1<<28)
				s = strconv.FormatFloat(middle, 'f', 10+r.IntN(10), 64)
			case 2:
				s = strconv.FormatFloat(f, 'e', r.IntN(20), 64)
			case 3:
				s = []string{"0", "-0", "0.0", "-0.0", "-0.000000000000000000", "9.999999999999999999", "12.5", "1e5", "0.1e2", "0.30000001192092896"}[r.IntN(10)]
			default: // as programs write components
				s = strconv.FormatFloat(f, 'g', -1, 32<<r.IntN(2))
			}
			want, _ := strconv.ParseFloat(s, 64)
			text, values = append(append(text, s...), []string{",", ",", ", ", ",  ", " ,"}[r.IntN(5)]...), append(values, float32(want))
		}
		text = append(bytes.TrimRight(text, ", "), ']')
		text = append(text, make([]byte, r.IntN(60))...) // the fast path reads ahead
		got, read := []float32{}, 0
		for i := 1; i < len(text) && text[i] != ']'; {
			if text[i] == ',' || text[i] == ' ' {
				i++
				continue
			}
			n := len(got)
			if got, i = appendPlain(got, text, i, r.IntN(9)); len(got) > n {
				read += len(got) - n
				continue
			}
			f, end := floatAt(text, i)
			got, i = append(got, f), end
		}
		if !slices.EqualFunc(got, values, func(a, b float32) bool { return math.Float32bits(a) == math.Float32bits(b) }) {
			t.Fatalf("%s: %v, want %v", text, got, values)
		}
		all, plain = all+len(values), plain+read
	}
	if plain < all/5 || plain > all*4/5 {
		t.Errorf("of %d numbers, the fast path read %d", all, plain)
	}
}

// TestAppendVector compares vectors as numbers and as base64, in every way to write both.
func TestAppendVector(t *testing.T) {
	seed := rand.Uint64()
	t.Logf("seed %d", seed)
	r := rand.New(rand.NewPCG(seed, 2))
	const most = 40
	for range 2000 {
		want := make([]float32, r.IntN(most+5))
		raw := make([]byte, 0, 4*len(want))
		numbers := "["
		for i := range want {
			for want[i] = math.Float32frombits(r.Uint32()); want[i] != want[i] || math.IsInf(float64(want[i]), 0); {
				want[i] = float32(r.IntN(10))
			}
			raw = binary.LittleEndian.AppendUint32(raw, math.Float32bits(want[i]))
			if i > 0 {
				numbers += []string{",", ", ", " ,\n", "\t,\r"}[r.IntN(4)]
			}
			numbers += strconv.FormatFloat(float64(want[i]), 'g', -1, 32)
		}
		got, ok := AppendVector(nil, []byte(numbers+"]"), most)
		if read := want[:min(len(want), most+1)]; !ok || !slices.Equal(got, read) {
			t.Fatalf("%s]: %v, %v, want %v", numbers, got, ok, read)
		}
		text := base64.StdEncoding.EncodeToString(raw)
		if r.IntN(2) == 0 {
			text = strings.TrimRight(text, "=")
		}
		if r.IntN(2) == 0 {
			text = strings.ReplaceAll(text, "/", `\/`)
		}
		if got, ok := AppendVector(nil, []byte(`"`+text+`"`), most); !ok || !slices.Equal(got, want) {
			t.Fatalf("%q: %v, %v, want %v", text, got, ok, want)
		}
	}
	for _, s := range []string{`"AACAPw==="`, `"AACAP"`, `"AACAPwA="`, `"AACA Pw"`, `"AACAPw\n"`, `"AACAPx"`, `"____"`, `"AACAfw"`, `"AADAfw"`, `[1e39]`, `[-1e39]`, `["a"]`, `[1,null]`, `[0.5,null,0.25,0.125,0.0625]`, `[0.5,"0.25",0.125,0.0625,0.5]`, `[[1]]`, `{}`, `null`, `5`, `true`} {
		if got, ok := AppendVector(nil, []byte(s), most); ok {
			t.Errorf("%s: %v", s, got)
		}
	}
}

func FuzzReadVectorEntry(f *testing.F) {
	for _, s := range []string{`[1,2]`, `"AACAPwAAAEA="`, `["AACAPwAAAEA=",[3,4]]`, `[[1,2],[3,4]]`, `{"regenerate":true,"embeddings":[1e5,-0.5]}`, `null`, `[[1,2],3]`, `{"regenerate":1}`, `[1,[2]]`} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, s string) {
		if !json.Valid([]byte(s)) {
			return
		}
		var out strings.Builder
		if _, err := Convert(&out, strings.NewReader(`[{"v":`+s+`}]`), JSON, ','); err != nil {
			return
		}
		value := strings.TrimSuffix(strings.TrimPrefix(out.String(), `{"v":`), "}\n")
		e, err := ReadVectorEntry(nil, []byte(value), 2, "e", []byte("1"))
		if err != nil {
			var user *apierr.Error
			if !errors.As(err, &user) {
				t.Fatalf("%s: %v", s, err)
			}
			return
		}
		if len(e.Vectors)%2 != 0 {
			t.Fatalf("%s: %v", s, e.Vectors)
		}
	})
}

func BenchmarkReadVectorEntry(b *testing.B) {
	r := rand.New(rand.NewPCG(1, 2))
	value := []byte{'['}
	for i := range 384 {
		if i > 0 {
			value = append(value, ',')
		}
		value = strconv.AppendFloat(value, float64(float32(r.NormFloat64()/20)), 'g', -1, 64)
	}
	value = append(value, ']')
	b.SetBytes(int64(len(value)))
	var dst []float32
	for b.Loop() {
		e, err := ReadVectorEntry(dst, value, 384, "e", nil)
		if err != nil {
			b.Fatal(err)
		}
		dst = e.Vectors
	}
}
