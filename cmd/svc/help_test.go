package main

import (
	"bytes"
	"os"
	"strings"
	"testing"
)

// runProgram runs a command line with an environment (pairs) and returns the exit code and the output.
func runProgram(env map[string]string, args ...string) (int, string) {
	var printed bytes.Buffer
	p := program{
		getenv: func(name string) (string, bool) { v, ok := env[name]; return v, ok },
		environ: func() (pairs []string) {
			for name, value := range env {
				pairs = append(pairs, name+"="+value)
			}
			return pairs
		},
		out: &printed, err: &printed,
	}
	return p.run(args), printed.String()
}

// TestHelpOfCommands checks that each command prints only its own options, and the program those of the server.
func TestHelpOfCommands(t *testing.T) {
	for _, tt := range []struct {
		args  []string
		has   []string
		hasNo []string
	}{
		{nil, []string{"Usage: svc <command>", "segment verify", "health", "version", "--db-path", "[SVC_DB_PATH]", "Limits of requests:", "--version"}, nil},
		{[]string{"serve"}, []string{"Usage: svc serve", "--db-path", "[SVC_DB_PATH]"}, []string{"segment verify"}},
		{[]string{"segment"}, []string{"Usage: svc segment", "segment inspect", "segment verify"}, []string{"--db-path", "SVC_"}},
		{[]string{"segment", "verify"}, []string{"Usage: svc segment verify", "<path>"}, []string{"--db-path", "SVC_"}},
		{[]string{"health"}, []string{"Usage: svc health", "--url"}, []string{"--db-path", "SVC_"}},
	} {
		code, help := runProgram(nil, append([]string{"help"}, tt.args...)...)
		if code != 0 {
			t.Errorf("help %q: exit code %d", tt.args, code)
		}
		for _, s := range tt.has {
			if !strings.Contains(help, s) {
				t.Errorf("help %q has no %q:\n%s", tt.args, s, help)
			}
		}
		for _, s := range tt.hasNo {
			if strings.Contains(help, s) {
				t.Errorf("help %q has %q:\n%s", tt.args, s, help)
			}
		}
		if n := strings.Count(help, "--help"); n > 2 {
			t.Errorf("help %q names --help %d times", tt.args, n)
		}
	}
	for _, tt := range []struct {
		args []string
		code int
		says string
	}{
		{[]string{"help", "nonsense"}, exitFailure, "svc: there is no command nonsense; the commands are serve, health, "},
		{[]string{"nonsense"}, exitUsage, "svc: there is no command nonsense; the commands are serve, health, "},
		{[]string{"serch", "films"}, exitUsage, "svc: there is no command serch: did you mean search?"},
		{[]string{"help", "imports"}, exitFailure, "svc: there is no command imports: did you mean import?"},
	} {
		if code, out := runProgram(nil, tt.args...); code != tt.code || !strings.HasPrefix(out, tt.says) || strings.Contains(out, "generate") {
			t.Errorf("%q: %d %s", tt.args, code, out)
		}
	}
}

// TestVariablesAreTheServers checks that errors in the environment or the file of the server do not stop other commands.
func TestVariablesAreTheServers(t *testing.T) {
	env := map[string]string{"SVC_MASTERKEY": "misspelt", "SVC_LOG_LEVEL": "loud", "SVC_CONFIG_FILE_PATH": "none.toml"}
	t.Chdir(t.TempDir())
	if err := os.WriteFile(versionFile, nil, 0o600); err != nil { // segment verify wants a data directory
		t.Fatal(err)
	}
	code, out := runProgram(env, "version")
	if want := versionNotice() + "\n"; code != 0 || out != want || !strings.Contains(out, "LGPL") {
		t.Errorf("version: %d %q, want %q", code, out, want)
	}
	if code, out := runProgram(env, "segment", "verify", "."); code != 0 || !strings.Contains(out, "0 damaged") {
		t.Errorf("verify: %d %s", code, out)
	}
	if code, out := runProgram(map[string]string{"SVC_MASTERKEY": "misspelt"}); code != exitUsage || !strings.Contains(out, "did you mean SVC_MASTER_KEY?") {
		t.Errorf("the server: %d %s", code, out)
	}
	if code, out := runProgram(nil, "--db-path", "x", "segment", "verify", "."); code != exitUsage {
		t.Errorf("an option of the server for another command: %d %s", code, out)
	}
}
