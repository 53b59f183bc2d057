package main

import (
	"bytes"
	"encoding/binary"
	"fmt"
	"io"
	"net"
	"net/http"
	"strings"
)

// networkSearch is a search that asks the remote, too.
const networkSearch = `{"q":"ka","useNetwork":true,"showRankingScore":true}`

// withRemote makes an address for a remote, and sends it to the server.
func withRemote(s *server) error {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return err
	}
	s.remote = l.Addr().String()
	l.Close()
	body := fmt.Sprintf(`{"self":"self","remotes":{"self":{"url":"http://%s"},"remote":{"url":"http://%s","searchApiKey":"x"}}}`, s.address, s.remote)
	_, err = s.do("PATCH", "/network", masterKey, []byte(body))
	return err
}

// beRemote answers every request of the server to its remote. end closes all connections.
func (s *server) beRemote(answer http.HandlerFunc) (end func() error, err error) {
	l, err := net.Listen("tcp", s.remote)
	if err != nil {
		return nil, err
	}
	remote := &http.Server{Handler: http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		io.Copy(io.Discard, r.Body)
		answer(w, r)
	})}
	go remote.Serve(l)
	return remote.Close, nil
}

// federation is the member of a hit with the values by which the hits of a remote are merged.
func federation(values string) string {
	return `"_federation":{"indexUid":"films","queriesPosition":0,"weightedRankingScore":1,"weightedScoreValues":[` + values + `],"extra_document":{}}`
}

// answers sends the same answer each time.
func answers(contentType, encoding string, body []byte) http.HandlerFunc {
	return func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", contentType)
		if encoding != "" {
			w.Header().Set("Content-Encoding", encoding)
		}
		w.Write(body)
	}
}

func remoteAnswer(hits, more string) http.HandlerFunc {
	return answers("application/json", "", []byte(remoteJSON(hits, more)))
}

func remoteJSON(hits, more string) string {
	return `{"hits":[` + hits + `],"estimatedTotalHits":9223372036854775807,"processingTimeMs":1` + more + `}`
}

// The answers of remotes, each large in one way.

func scoreValues() http.HandlerFunc {
	return remoteAnswer(`{`+federation(list(`{"weightedScore":1}`, 10000))+`},`+list(`{`+federation("")+`}`, 100000), "")
}

func metadata() http.HandlerFunc {
	return remoteAnswer("", `,"metadata":[`+list(`{}`, 15_000_000)+`]`)
}

func queryVectors() http.HandlerFunc {
	var b strings.Builder
	for i := range 3_000_000 {
		fmt.Fprintf(&b, `,"%d":[1]`, i)
	}
	return remoteAnswer("", `,"queryVectors":{`+b.String()[1:]+`}`)
}

func facets() http.HandlerFunc { return remoteAnswer("", facetValues()) }

func compressedFacets() http.HandlerFunc {
	return answers("application/json", "gzip", zipped(remoteJSON("", facetValues())))
}

func facetValues() string {
	var b strings.Builder
	for i := range 3_000_000 {
		fmt.Fprintf(&b, `,"%d":1`, i)
	}
	return `,"facetsByIndex":{"films":{"distribution":{"genres":{` + b.String()[1:] + `}},"stats":{}}}`
}

// binaryValues is a hit with 30 million values in the form that instances of svc exchange (internal/search/peer_answer.go).
func binaryValues() http.HandlerFunc {
	const hit, values = `{"_federation":null}`, 30_000_000
	b := []byte(hit)
	b = append(b, 1, 1, 0, 0, 0, 1)     // milliseconds, total, no vectors and no metadata; one hit
	b = append(b, byte(len(hit)), 1, 5) // where its member stands
	b = append(b, "films\x00"...)       // its index, and the position of its query
	b = append(b, make([]byte, 8)...)   // its score
	b = binary.AppendUvarint(b, values) // a value sorts by a field that the document lacks
	b = append(b, bytes.Repeat([]byte{2, 3}, values)...)
	b = append(b, 0, 0, 0) // no place, no hidden fields, no facets
	b = binary.LittleEndian.AppendUint32(b, uint32(len(hit)))
	return func(w http.ResponseWriter, r *http.Request) {
		kind, _, _ := strings.Cut(r.Header.Get("Accept"), ",") // the form that the server knows
		answers(kind, "", b)(w, r)
	}
}

// endlessAnswer sends hits until the client stops reading.
func endlessAnswer() http.HandlerFunc {
	piece := []byte(list("{"+federation("")+"}", 1000) + ",")
	return func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", "application/json")
		_, err := io.WriteString(w, `{"hits":[`)
		for err == nil {
			_, err = w.Write(piece)
		}
	}
}
