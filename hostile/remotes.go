package main

import (
	"fmt"
	"io"
	"net"
	"net/http"
	"strings"
)

// networkSearch is a search that asks the remote, too.
const networkSearch = `{"q":"ka","useNetwork":true,"showRankingScore":true}`

// withRemote makes an address for a remote, and tells the server of it.
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

// beRemote answers whatever the server asks of its remote.
func (s *server) beRemote(answer []byte) (end func() error, err error) {
	l, err := net.Listen("tcp", s.remote)
	if err != nil {
		return nil, err
	}
	remote := &http.Server{Handler: http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		io.Copy(io.Discard, r.Body)
		w.Header().Set("Content-Type", "application/json")
		w.Write(answer)
	})}
	go remote.Serve(l)
	return remote.Close, nil
}

// federation is the member of a hit that says what the hits of a remote are merged by.
func federation(values string) string {
	return `"_federation":{"indexUid":"films","queriesPosition":0,"weightedRankingScore":1,"weightedScoreValues":[` + values + `],"extra_document":{}}`
}

func remoteAnswer(hits, more string) []byte {
	return []byte(`{"hits":[` + hits + `],"estimatedTotalHits":9223372036854775807,"processingTimeMs":1` + more + `}`)
}

// The answers of remotes, each large in one way.

func scoreValues() []byte {
	return remoteAnswer(`{`+federation(list(`{"weightedScore":1}`, 10000))+`},`+list(`{`+federation("")+`}`, 100000), "")
}

func metadata() []byte { return remoteAnswer("", `,"metadata":[`+list(`{}`, 15_000_000)+`]`) }

func queryVectors() []byte {
	var b strings.Builder
	for i := range 3_000_000 {
		fmt.Fprintf(&b, `,"%d":[1]`, i)
	}
	return remoteAnswer("", `,"queryVectors":{`+b.String()[1:]+`}`)
}

func facets() []byte {
	var b strings.Builder
	for i := range 3_000_000 {
		fmt.Fprintf(&b, `,"%d":1`, i)
	}
	return remoteAnswer("", `,"facetsByIndex":{"films":{"distribution":{"genres":{`+b.String()[1:]+`}},"stats":{}}}`)
}
