package fastapi

import (
	"bytes"
	"encoding/json"
	"io"
	"math"
	"testing"
	"unicode/utf8"

	"github.com/klauspost/compress/flate"
	"github.com/klauspost/compress/gzip"
	"github.com/klauspost/compress/zlib"
	"github.com/klauspost/compress/zstd"
	"github.com/valyala/fasthttp"

	"svc/internal/budget"
	"svc/internal/search"
)

// FuzzDecompress feeds every decoder: none may panic, use much more memory than charged, or return more than requested.
func FuzzDecompress(f *testing.F) {
	encodings := []string{"gzip", "x-gzip", "deflate", "br", "zstd", "unknown", ""}
	plain := bytes.Repeat([]byte(`{"q":"a"}`), 50)
	add := func(encoding byte, packed []byte) {
		f.Add(encoding, packed)
		f.Add(encoding, packed[:len(packed)/2])
	}
	pack := func(encoding byte, make func(io.Writer) io.WriteCloser) {
		var b bytes.Buffer
		w := make(&b)
		w.Write(plain)
		w.Close()
		add(encoding, b.Bytes())
	}
	pack(0, func(w io.Writer) io.WriteCloser { return gzip.NewWriter(w) })
	pack(2, func(w io.Writer) io.WriteCloser { return zlib.NewWriter(w) })
	pack(2, func(w io.Writer) io.WriteCloser { z, _ := flate.NewWriter(w, 5); return z })
	pack(4, func(w io.Writer) io.WriteCloser { z, _ := zstd.NewWriter(w); return z })
	add(3, fasthttp.AppendBrotliBytes(nil, plain))
	add(6, plain)
	f.Fuzz(func(t *testing.T, encoding byte, packed []byte) {
		const most = 1 << 20
		account := budget.New(math.MaxInt64/2, nil).Open(most)
		defer account.Close()
		r, err := decompress(bytes.NewReader(packed), encodings[int(encoding)%len(encodings)], account)
		if err != nil {
			return
		}
		if held := account.Held(); held > 20<<20 {
			t.Fatalf("%d bytes are charged for a decoder", held)
		}
		body := &bodyReader{src: r, left: most, limit: most, account: account}
		got, err := io.ReadAll(body)
		if len(got) > most {
			t.Fatalf("%d bytes are read", len(got))
		}
		if err != nil && body.err == nil {
			t.Fatalf("the error %v is not returned again", err)
		}
	})
}

// FuzzQueryString feeds every table of query parameters.
func FuzzQueryString(f *testing.F) {
	for _, seed := range []string{"q=a&limit=3", "filter=a%20%3D%201&sort=a:asc,_geoPoint(1,2):desc", "vector=1,2.5,-3e4", "uids=1,2,*&statuses=failed", "afterEnqueuedAt=2024-01-01",
		"ids=1,2&fields=a,b", "%zz=%", "&&=&", "limit=18446744073709551616", "attributesToCrop=a:5,b"} {
		f.Add([]byte(seed))
	}
	f.Fuzz(func(t *testing.T, query []byte) {
		var args fasthttp.Args
		args.ParseBytes(query)
		in := newSearchInput()
		if decodeQuery(&in, &args, searchQueryParams) == nil {
			for _, list := range [][]string{in.Search.AttributesToRetrieve, in.Search.Facets, in.Search.Sort} {
				if len(list) > maxListEntries {
					t.Fatalf("a list of %d entries is accepted", len(list))
				}
			}
		}
		_ = decodeQuery(&search.SimilarRequest{}, &args, similarParams)
		_ = decodeQuery(&fetchInput{}, &args, fetchParams)
		_ = decodeQuery(&taskQuery{}, &args, taskListParams)
		_ = decodeQuery(&addition{}, &args, additionParams)
	})
}

// FuzzNegotiate feeds the header with which a client chooses an encoding.
func FuzzNegotiate(f *testing.F) {
	for _, seed := range []string{"gzip", "br;q=0.5, gzip;q=1", "identity;q=1, deflate;q=NaN", ";;q=,,", "br;q=-1", "gzip;q=1e400"} {
		f.Add([]byte(seed))
	}
	f.Fuzz(func(t *testing.T, accept []byte) {
		switch chosen := negotiate(accept); chosen {
		case "":
		case "br", "gzip", "deflate":
			if !bytes.Contains(bytes.ToLower(accept), []byte(chosen)) {
				t.Fatalf("%q is answered with %s", accept, chosen)
			}
		default:
			t.Fatalf("%q is answered with %q", accept, chosen)
		}
	})
}

// FuzzBodies feeds the tables of all bodies except that of searches.
func FuzzBodies(f *testing.F) {
	for _, seed := range []string{`{"queries":[{"indexUid":"a","q":"b"}],"federation":{"facetsByIndex":{"a":["b"]},"mergeFacets":{}}}`, `{"facetName":"a","facetQuery":"b"}`,
		`{"id":1,"embedder":"e"}`, `{"ids":[1,"a"],"sort":["a:asc"]}`, `{"filter":["a = 1"]}`, `{"function":"doc.a = 1","context":{}}`} {
		f.Add([]byte(seed))
	}
	f.Fuzz(func(t *testing.T, body []byte) {
		if !json.Valid(body) || !utf8.Valid(body) || tooDeep(body) {
			return
		}
		v, strict := trim(body), object{code: "bad_request"}
		m := multiInput{most: 10}
		if decode(&m, v, multiParams, strict) == nil && len(m.queries) > m.most {
			t.Fatalf("%d queries are accepted", len(m.queries))
		}
		in := newSearchInput()
		_ = decode(&in, v, facetSearchParams, object{})
		_ = decode(&search.SimilarRequest{}, v, similarParams, strict)
		_ = decode(&fetchInput{}, v, fetchBodyParams, strict)
		_ = decode(&filterDeletion{}, v, filterDeletionParams, strict)
		_ = decode(&edition{}, v, editionParams, strict)
	})
}
