package main

import (
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"svc/internal/sealedjson"
	"svc/internal/vfs"
)

// TestGroupCommands checks output, requests and exit codes of svc group. The server sends the answers of the table, and
// repeats the last one.
func TestGroupCommands(t *testing.T) {
	const (
		voters = `{"name":"shop","group":"g","member":"aaaaaaaa1","role":"voter","term":1,"position":"1.1.20","voter":{"leader":"10.0.0.1:7701","leads":true,"votes":true},"members":[
			{"member":"aaaaaaaa1","address":"10.0.0.1:7701","votes":true,"state":"leads","position":"1.1.20","lagEntries":0},
			{"member":"bbbbbbbb2","address":"10.0.0.2:7701","votes":true,"state":"follows","position":"1.1.18","lagEntries":2},
			{"member":"cccccccc3","address":"10.0.0.3:7701","state":"away","position":"","lagEntries":null}]}`
		refusal = `{"message":"No other voter of the group can be reached.","code":"transfer_refused","type":"invalid_request","link":""}`
		missing = `{"message":"The group has no member ` + "`x`" + `.","code":"group_member_not_found","type":"invalid_request","link":""}`
		kept    = `{"message":"It could take no writes.","code":"removal_refused","type":"invalid_request","link":""}`
		alone   = `{"role":"alone"}`
		noVoter = `{"message":"This server is no voter of a group.","code":"not_a_voter","type":"invalid_request","link":""}`
		noKey   = `{"message":"Authorization is missing.","code":"missing_authorization_header","type":"auth","link":""}`
	)
	other := strings.NewReplacer(`"state":"leads"`, `"state":"follows"`, `"state":"follows"`, `"state":"leads"`).Replace(voters)
	leaderless := strings.NewReplacer(`"leader":"10.0.0.1:7701","leads":true`, `"leader":"","leads":false,"problem":"the disk is full"`, `"state":"leads"`, `"state":"follows"`).Replace(voters)
	reader := `{"name":"shop","member":"dddddddd4","role":"reader","term":2,"position":"2.1.7","reader":{"writer":"10.0.0.1:7701","state":"follows","lagEntries":3,"answersReads":true,"problem":"away"}}`
	writer := `{"name":"shop","member":"aaaaaaaa1","role":"writer","term":2,"position":"2.1.9","members":[{"member":"dddddddd4","address":"10.0.0.4:1","state":"copies","position":"2.1.7","lagEntries":2}],
		"missingModels":[{"indexUid":"films","embedder":"e","directory":"models/m"}]}`
	answers := func(status int, bodies ...string) []groupAnswer {
		var all []groupAnswer
		for _, b := range bodies {
			all = append(all, groupAnswer{status, b})
		}
		return all
	}
	for _, x := range []struct {
		args   string
		server map[string][]groupAnswer
		code   int
		out    []string // printed words
		errs   string
		asked  string // bodies of the requests
	}{
		{"status", map[string][]groupAnswer{"GET /group": answers(200, voters)}, 0, []string{
			"group shop", "MEMBER ROLE STATE POSITION BEHIND ADDRESS", "aaaaaaaa voter leads 1.1.20 0 10.0.0.1:7701",
			"bbbbbbbb voter follows 1.1.18 2 10.0.0.2:7701", "cccccccc joins away ? 10.0.0.3:7701",
		}, "", ""},
		{"status", map[string][]groupAnswer{"GET /group": answers(200, leaderless)}, 0, []string{"problem the group has no leader", "problem the disk is full"}, "", ""},
		{"status", map[string][]groupAnswer{"GET /group": answers(200, reader)}, 0, []string{"dddddddd reader follows 2.1.7 3 answers reads, follows 10.0.0.1:7701", "problem away"}, "", ""},
		{"status", map[string][]groupAnswer{"GET /group": answers(200, writer)}, 0, []string{
			"aaaaaaaa writer writes 2.1.9", "dddddddd reader copies 2.1.7 2 10.0.0.4:1", "problem the model of embedder e of index films is missing: models/m",
		}, "", ""},
		{"status", map[string][]groupAnswer{"GET /group": answers(200, alone)}, 0, []string{"this server does not belong to a group"}, "", ""},
		{"status --json", map[string][]groupAnswer{"GET /group": answers(200, alone)}, 0, []string{`"role": "alone"`}, "", ""},
		{"status", map[string][]groupAnswer{"GET /group": answers(401, noKey)}, 1, nil, "the server requires a key: set --key or SVC_API_KEY", ""},
		{"transfer", map[string][]groupAnswer{"POST /group/transfer": answers(202, voters), "GET /group": answers(200, voters, voters, other)}, 0,
			[]string{`the member bbbbbbbb at 10.0.0.2:7701 leads the group "shop" now`}, "", `{"member":""}`},
		{"transfer --to bbbb", map[string][]groupAnswer{"POST /group/transfer": answers(202, voters), "GET /group": answers(200, other)}, 0, []string{"leads the group"}, "", `{"member":"bbbb"}`},
		{"transfer", map[string][]groupAnswer{"POST /group/transfer": answers(409, refusal)}, 1, nil, "No other voter of the group can be reached. (transfer_refused)", `{"member":""}`},
		{"transfer", map[string][]groupAnswer{"POST /group/transfer": answers(409, noVoter)}, 1, nil, "This server is no voter of a group. (not_a_voter)", `{"member":""}`},
		{"remove 10.0.0.3:7701", map[string][]groupAnswer{"DELETE /group/members/10.0.0.3:7701": answers(204, "")}, 0, []string{"10.0.0.3:7701 does not belong to the group any more: stop it"}, "", ""},
		{"remove x", map[string][]groupAnswer{"DELETE /group/members/x": answers(404, missing)}, 1, nil, "The group has no member `x`. (group_member_not_found)", ""},
		{"remove a/b", map[string][]groupAnswer{"DELETE /group/members/a%2Fb": answers(409, kept)}, 1, nil, "It could take no writes. (removal_refused)", ""},
		{"promote", map[string][]groupAnswer{"POST /group/promote": answers(200, writer)}, 0, []string{`this server is the writer of the group "shop" now, in term 2`}, "", `{"force":false}`},
		{"promote --force", map[string][]groupAnswer{"POST /group/promote": answers(200, writer)}, 0, []string{"in term 2"}, "", `{"force":true}`},
		{"remove", nil, 2, nil, `expected "<member>"`, ""},
		{"transfer here", nil, 2, nil, "unexpected argument here", ""},
		{"leave", nil, 2, nil, "unexpected argument leave", ""},
		{"status --url nowhere", nil, 1, nil, "--url: ", ""},
	} {
		asked := ""
		server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			b, err := io.ReadAll(r.Body)
			if err != nil {
				t.Error(err)
			}
			if r.Method != "GET" {
				asked += strings.TrimSpace(string(b))
			}
			at := r.Method + " " + r.URL.EscapedPath()
			all := x.server[at]
			if len(all) == 0 {
				t.Errorf("%s sends the request %s", x.args, at)
				return
			}
			if len(all) > 1 {
				x.server[at] = all[1:]
			}
			w.Header().Set("Content-Type", "application/json")
			w.WriteHeader(all[0].status)
			_, _ = io.WriteString(w, all[0].body)
		}))
		args := append([]string{"group"}, strings.Fields(x.args)...)
		if x.server != nil {
			args = append(args, "--url", server.URL)
		}
		code, out, errs := runCommand(args...)
		server.Close()
		printed := strings.Join(strings.Fields(out), " ")
		for _, want := range x.out {
			if !strings.Contains(printed, want) {
				t.Errorf("%s does not print %q:\n%s", x.args, want, out)
			}
		}
		if code != x.code || !strings.Contains(errs, x.errs) || (x.errs == "") != (errs == "") || asked != x.asked {
			t.Errorf("%s: code %d, errors %q, bodies %q; want %d, %q and %q", x.args, code, errs, asked, x.code, x.errs, x.asked)
		}
	}
}

type groupAnswer struct {
	status int
	body   string
}

// TestGroupCommandsOfDirectories checks that commands that change a data directory refuse other directories, and those of other members.
func TestGroupCommandsOfDirectories(t *testing.T) {
	identity := func(role, more string) string {
		dir := t.TempDir()
		if err := os.Mkdir(filepath.Join(dir, "group"), 0o700); err != nil {
			t.Fatal(err)
		}
		if err := sealedjson.Write(vfs.OS, filepath.ToSlash(filepath.Join(dir, "GROUP")), 1, fmt.Appendf(nil, `{"group":"g","name":"shop","member":"m","role":%q,"term":1%s}`, role, more)); err != nil {
			t.Fatal(err)
		}
		return dir
	}
	empty, reader, voter, locked := t.TempDir(), identity("reader", ""), identity("voter", ""), identity("voter", "")
	readerOfVoters := identity("reader", `,"voters":true`)
	lock, err := lockDataDir(vfs.OS, locked)
	if err != nil {
		t.Fatal(err)
	}
	defer lock.Close()
	for _, x := range []struct {
		args []string
		code int
		errs string
	}{
		{[]string{"rejoin"}, 2, "missing flags: --db-path=DIR"},
		{[]string{"recover"}, 2, "missing flags: --db-path=DIR"},
		{[]string{"rejoin", "--db-path", empty}, 1, "is not the data directory of a voter"},
		{[]string{"recover", "--db-path", empty}, 1, "is not the data directory of a voter"},
		{[]string{"promote", "--db-path", empty}, 1, "is not the data directory of a reader"},
		{[]string{"rejoin", "--db-path", reader}, 1, `it belongs to a reader of the group "shop", and not to a voter`},
		{[]string{"recover", "--db-path", reader}, 1, `belongs to a reader of the group "shop", and not to a voter`},
		{[]string{"promote", "--db-path", voter}, 1, "it belongs to a voter, and voters elect their leader"},
		{[]string{"promote", "--db-path", readerOfVoters}, 1, "it belongs to a reader of voters, and voters elect their leader"},
		{[]string{"recover", "--db-path", voter}, 1, "has no data of a group yet"},
		{[]string{"recover", "--db-path", voter, "--group-addr", "somewhere"}, 1, "missing port in address"},
		{[]string{"rejoin", "--db-path", locked}, 1, "another svc is running"},
		{[]string{"recover", "--db-path", locked}, 1, "another svc is running"},
	} {
		code, out, errs := runCommand(slices.Concat([]string{"group"}, x.args)...)
		if code != x.code || !strings.Contains(errs, x.errs) || out != "" {
			t.Errorf("%v: code %d, %q, %q; want %d and %q", x.args, code, out, errs, x.code, x.errs)
		}
	}
	if code, out, errs := runCommand("group", "rejoin", "--db-path", voter); code != 0 || !strings.Contains(out, `it joins the group "shop" and copies what has changed`) || errs != "" {
		t.Errorf("rejoin: %d %q %q", code, out, errs)
	}
}
