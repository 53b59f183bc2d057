package main

import (
	"io"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
)

var (
	blockOfCode = regexp.MustCompile("(?ms)^ *```(\\w*)\n(.*?)^ *```")
	codeInLine  = regexp.MustCompile("`(svc [^`\n]+)`")
	// assignment matches a variable that a shell sets for one command.
	assignment = regexp.MustCompile(`^[A-Za-z_]\w*=`)
	// lacksArguments matches the error of a command that a sentence shows without its arguments.
	lacksArguments = regexp.MustCompile(`^(missing|expected|must provide) |: expected `)
)

// words splits a shell line up to the end of its first command. A substitution counts as one word.
func words(line string) (all []string) {
	var word strings.Builder
	some, quote, depth := false, byte(0), 0
	end := func() {
		if some {
			all = append(all, word.String())
		}
		word.Reset()
		some = false
	}
	for i := 0; i < len(line); i++ {
		switch c := line[i]; {
		case c == '$' && i+1 < len(line) && line[i+1] == '(' && quote != '\'':
			depth++
			i++
			some = true
		case depth > 0:
			if c == ')' {
				depth--
			}
			some = true
		case quote != 0:
			if c == quote {
				quote = 0
			} else {
				word.WriteByte(c)
			}
		case c == '\'' || c == '"':
			quote, some = c, true
		case c == ' ' || c == '\t':
			end()
		case c == '|' || c == ';' || c == '&' || c == '>' || c == '<' || c == ')' || c == '#' && !some:
			end()
			return all
		default:
			word.WriteByte(c)
			some = true
		}
	}
	end()
	return all
}

// commandIn returns the arguments of svc in a shell line; ok is false if the line does not begin with svc.
func commandIn(line string) (args []string, ok bool) {
	all := words(strings.TrimPrefix(strings.TrimSpace(line), "$ "))
	for len(all) > 0 && (all[0] == "sudo" || assignment.MatchString(all[0])) {
		all = all[1:]
	}
	if len(all) == 0 || all[0] != "svc" && all[0] != "./svc" {
		return nil, false
	}
	return all[1:], true
}

// TestCommandsOfPagesAreValid parses each svc command on a page: its name, options and arguments. It runs none of them.
func TestCommandsOfPagesAreValid(t *testing.T) {
	var pages []string
	for _, pattern := range []string{"*.md", "docs/*.md", "docs/*/*.md"} {
		more, err := filepath.Glob(filepath.Join("../..", pattern))
		if err != nil {
			t.Fatal(err)
		}
		pages = append(pages, more...)
	}
	parser, err := newParser(program{getenv: func(string) (string, bool) { return "", false }, out: io.Discard, err: io.Discard})
	if err != nil {
		t.Fatal(err)
	}
	read := 0
	for _, page := range pages {
		b, err := os.ReadFile(page)
		if err != nil {
			t.Fatal(err)
		}
		check := func(line string, whole bool) {
			args, ok := commandIn(line)
			if !ok || slices.Contains(args, "--help") || slices.Contains(args, "--version") { // these would exit
				return
			}
			read++
			n := len(args)
			args = slices.DeleteFunc(args, func(s string) bool { return s == "…" }) // stands for the rest, or for a value
			err := unknownCommand(parser, args)
			if err == nil {
				_, err = parser.Parse(args)
			}
			if err != nil && (whole && n == len(args) || !lacksArguments.MatchString(err.Error())) {
				t.Errorf("%s: %s: %v", page, line, err)
			}
		}
		for _, block := range blockOfCode.FindAllStringSubmatch(string(b), -1) {
			if block[1] != "sh" && block[1] != "" {
				continue
			}
			for line := range strings.Lines(strings.ReplaceAll(block[2], "\\\n", " ")) {
				check(strings.TrimSuffix(line, "\n"), true)
			}
		}
		for _, code := range codeInLine.FindAllStringSubmatch(string(b), -1) {
			check(code[1], false)
		}
	}
	if read < 100 {
		t.Errorf("only %d commands found", read)
	}
}

// TestCommandIn tests commandIn.
func TestCommandIn(t *testing.T) {
	for line, want := range map[string]string{
		"svc --a b":                             "--a|b",
		"  SVC_KEY=x ./svc dump # a comment":    "dump",
		"sudo svc search 'a b' \"c d\" > file":  "search|a b|c d",
		"svc import films x.csv | cat":          "import|films|x.csv",
		"svc restore --at $(date -d \"1 h\") x": "restore|--at||x",
		"svcs":                                  "none",
		"cp \"$(svc snapshot)\" x":              "none",
	} {
		args, ok := commandIn(line)
		got := strings.Join(args, "|")
		if !ok {
			got = "none"
		}
		if got != want {
			t.Errorf("%s: %s, want %s", line, got, want)
		}
	}
}
