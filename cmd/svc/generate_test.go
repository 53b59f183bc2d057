package main

import (
	"bytes"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
)

// generatedFiles are the files of deploy/ that make generate writes from the table of options.
var generatedFiles = map[string]string{
	"bash": "completions/svc.bash", "zsh": "completions/_svc", "fish": "completions/svc.fish", "man": "svc.1",
}

func TestGeneratedFilesAreUpToDate(t *testing.T) {
	for what, file := range generatedFiles {
		var made bytes.Buffer
		if err := generate(&made, what); err != nil {
			t.Fatal(err)
		}
		there, err := os.ReadFile(filepath.Join("..", "..", "deploy", filepath.FromSlash(file)))
		if err != nil || !bytes.Equal(there, made.Bytes()) {
			t.Errorf("deploy/%s is out of date (%v): run make generate", file, err)
		}
		for _, name := range []string{"db-path", "experimental-allowed-ip-networks", "verify"} {
			if !strings.Contains(strings.ReplaceAll(made.String(), `\-`, "-"), name) {
				t.Errorf("%s lacks %s", what, name)
			}
		}
	}
	if err := generate(new(bytes.Buffer), "tcsh"); err == nil {
		t.Error("a completion for tcsh is generated")
	}
}

// TestBashCompletes asks bash, if it is installed, for completions.
func TestBashCompletes(t *testing.T) {
	bash, err := exec.LookPath("bash")
	if err != nil {
		t.Skip("there is no bash")
	}
	var script bytes.Buffer
	if err := generate(&script, "bash"); err != nil {
		t.Fatal(err)
	}
	// compopt exists only within a completion
	script.WriteString("compopt() { echo compopt; }\nCOMP_WORDS=(\"$@\"); COMP_CWORD=$(($#-1)); _svc; echo \"${COMPREPLY[@]}\"\n")
	for words, want := range map[string]string{
		"svc se":                          "serve search settings segment",
		"svc segment ":                    "inspect verify salvage --help --version",
		"svc segment verify ":             "compopt\n--help --version",
		"svc --db-p":                      "--db-path",
		"svc serve --db-p":                "--db-path",
		"svc --env p":                     "production",
		"svc --db-path ":                  "compopt",
		"svc --master-key ":               "",
		"svc health --":                   "--url --help --version",
		"svc --db-path data --no-dash":    "--no-dashboard",
		"svc --no-dashboard segment veri": "verify",
	} {
		cmd := exec.Command(bash, append([]string{"--norc", "-c", script.String(), "bash"}, strings.Split(words, " ")...)...)
		out, err := cmd.CombinedOutput()
		if got := strings.TrimSpace(string(out)); err != nil || got != want {
			t.Errorf("%q: offers %q, %v; want %q", words, got, err, want)
		}
	}
}
