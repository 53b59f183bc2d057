package fastapi

import (
	"encoding/json"
	"os"
	"reflect"
	"regexp"
	"strings"
	"testing"
)

var (
	// curlForm matches the commands of examples.
	curlForm = regexp.MustCompile(`(?s)^curl(?: -X (\w+))? (?:'localhost:7700([^']*)'|(?:http://)?localhost:7700(\S*))(?: +-H 'Content-Type: ([^']*)')?(?: +-d '([^']*)')?$`)
	// applied matches shell lines that wait for tasks, and the definition of that function.
	applied    = regexp.MustCompile(`(?m)^applied\b.*\n?`)
	curlStarts = regexp.MustCompile(`(?m)^curl `)
)

// commandsOf returns the commands of a block. It returns none if the block has no curl command or a gap to fill in.
func commandsOf(block string) (commands []string) {
	if strings.Contains(block, "…") {
		return nil
	}
	block = applied.ReplaceAllString(strings.ReplaceAll(block, "\\\n", ""), "")
	starts := curlStarts.FindAllStringIndex(block, -1)
	for i, start := range starts {
		end := len(block)
		if i+1 < len(starts) {
			end = starts[i+1][0]
		}
		commands = append(commands, strings.TrimSpace(block[start[0]:end]))
	}
	return commands
}

// runExamples runs the commands of a document in order, waiting for writes. A JSON block after a command has members that the answer, or
// the details of the task, must have. Arrays are compared as a whole, their objects member by member. REQUEST_UID stands for the
// requestUid of the previous answer. The functions in before run before each command.
func runExamples(t *testing.T, c *client, file string, before ...func()) {
	t.Helper()
	b, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	var answer any
	var request string // requestUid
	commands, compared, jsons := 0, 0, 0
	run := func(command string) {
		t.Helper()
		m := curlForm.FindStringSubmatch(command)
		if m == nil {
			t.Fatalf("%s: unexpected form of command: %s", file, command)
		}
		method, path := m[1], m[2]+m[3]
		switch {
		case method == "" && m[5] != "":
			method = "POST"
		case method == "":
			method = "GET"
		}
		var headers []string
		if m[4] != "" {
			headers = []string{"Content-Type", m[4]}
		}
		for _, f := range before {
			f()
		}
		r := c.send(method, path, strings.NewReader(strings.ReplaceAll(m[5], "REQUEST_UID", request)), headers...)
		if r.status >= 300 {
			t.Fatalf("%s: %s\n%d %s", file, command, r.status, r.body)
		}
		body := r.body
		if r.status == 202 {
			body = c.wait(r)
		}
		answer = nil
		if body != "" {
			if err := json.Unmarshal([]byte(body), &answer); err != nil {
				t.Fatalf("%s: %s\n%s", file, command, body)
			}
		}
		if got, ok := answer.(map[string]any); ok && got["requestUid"] != nil {
			request = got["requestUid"].(string)
		}
		commands++
	}
	for i, block := range strings.Split(string(b), "```") {
		if i%2 == 0 {
			continue
		}
		language, text, _ := strings.Cut(block, "\n")
		switch language {
		case "sh":
			for _, command := range commandsOf(text) {
				run(command)
			}
		case "json":
			jsons++
			var want any
			if err := json.Unmarshal([]byte(text), &want); err != nil {
				t.Fatalf("%s: %s: %v", file, text, err)
			}
			got := answer
			if task, ok := got.(map[string]any); ok && task["enqueuedAt"] != nil {
				got = task["details"]
			}
			if !hasAll(want, got) {
				t.Errorf("%s: the answer lacks %s: %v", file, text, got)
			}
			compared++
		}
	}
	if commands == 0 || compared < jsons {
		t.Errorf("%s: %d commands, %d answers compared", file, commands, compared)
	}
}

// hasAll reports whether got has everything in want.
func hasAll(want, got any) bool {
	switch w := want.(type) {
	case map[string]any:
		g, ok := got.(map[string]any)
		if !ok {
			return false
		}
		for name, x := range w {
			if y, there := g[name]; !there || !hasAll(x, y) {
				return false
			}
		}
		return true
	case []any:
		g, ok := got.([]any)
		if !ok || len(g) != len(w) {
			return false
		}
		for i := range w {
			if !hasAll(w[i], g[i]) {
				return false
			}
		}
		return true
	}
	return reflect.DeepEqual(want, got)
}

func TestTheExamplesOfDocuments(t *testing.T) {
	c, _ := newInstance(t, Options{})
	runExamples(t, c, "../docs/DOCUMENTS.md")
	for id, want := range map[string]string{
		"1": `{"id":1,"name":"boots","stock":0,"tags":["new"],"price":{"eur":70,"usd":75},"views":1}`,
		"2": `{"id":2,"name":"mittens","stock":0,"tags":["sale","winter"]}`,
		"3": `{"id":3,"name":"hat"}`,
	} {
		if r := c.get("/indexes/goods/documents/" + id); r.body != want {
			t.Errorf("document %s: %s, want %s", id, r.body, want)
		}
	}
}

func TestTheExamplesOfTheTutorial(t *testing.T) {
	c, _ := newInstance(t, Options{})
	runExamples(t, c, "../docs/TUTORIAL.md")
}

func TestTheExamplesOfFilters(t *testing.T) {
	c, _ := newInstance(t, Options{})
	runExamples(t, c, "../docs/FILTERS.md")
}

func noTaskFailed(t *testing.T, c *client) {
	t.Helper()
	if r := c.get("/tasks?statuses=failed"); !strings.Contains(r.body, `"total":0`) {
		t.Error(r.body)
	}
}

// TestTheExamplesOfTheReadme also guards the first minutes of a newcomer.
func TestTheExamplesOfTheReadme(t *testing.T) {
	c, _ := newInstance(t, Options{})
	runExamples(t, c, "../README.md")
	noTaskFailed(t, c)
}

func TestTheExamplesOfVectors(t *testing.T) {
	c, _ := newInstance(t, Options{})
	runExamples(t, c, "../docs/VECTORS.md")
	noTaskFailed(t, c)
}

// TestOtherExamplesAreAccepted runs examples whose pages show no answers, on documents that have the attributes they name.
func TestOtherExamplesAreAccepted(t *testing.T) {
	for _, page := range []string{"SETTINGS", "LANGUAGES", "MULTI_SEARCH", "RULES"} {
		t.Run(page, func(t *testing.T) {
			c, _ := newInstance(t, Options{})
			for _, index := range []string{"films", "songs"} {
				c.wait(c.json("PATCH", "/indexes/"+index+"/settings", `{"filterableAttributes": ["genre", "year"]}`))
				c.wait(c.json("POST", "/indexes/"+index+"/documents", `[{"id": 1, "title": "a train", "genre": "drama", "year": 1980}]`))
			}
			runExamples(t, c, "../docs/"+page+".md")
			noTaskFailed(t, c)
		})
	}
}
