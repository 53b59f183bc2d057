// Command release builds svc for every supported system. It makes archives and packages, their checksums, and a list of what each
// program was linked from. Their bytes depend only on the commit and on the Go toolchain.
package main

import (
	"bytes"
	"crypto/sha256"
	"errors"
	"flag"
	"fmt"
	"net/mail"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"time"
)

func main() {
	out := flag.String("out", "dist", "directory of the archives")
	targets := flag.String("targets", "linux/amd64", "systems to build for, with commas between them")
	maintainer := flag.String("maintainer", "svc maintainers <maintainers@svc.invalid>", "who answers for the packages of Debian: a name and an address in angle brackets")
	flag.Parse()
	if err := run(*out, *maintainer, strings.Split(*targets, ",")); err != nil {
		fmt.Fprintln(os.Stderr, "release:", err)
		os.Exit(1)
	}
}

// source is the source of a release.
type source struct {
	version, commit string
	date            time.Time // of the commit; every file of an archive has it
	maintainer      string    // of the packages of Debian
}

func run(out, maintainer string, targets []string) error {
	// deb-control(5): a line break could begin another field.
	if a, err := mail.ParseAddress(maintainer); err != nil || a.Name == "" || strings.ContainsAny(maintainer, "\r\n") {
		return fmt.Errorf("%q is no maintainer: write Name <name@example.com>", maintainer)
	}
	src, err := readSource()
	if err != nil {
		return err
	}
	src.maintainer = maintainer
	if err := os.MkdirAll(out, 0o777); err != nil {
		return err
	}
	var sums bytes.Buffer
	for _, target := range targets {
		system, processor, ok := strings.Cut(target, "/")
		if !ok {
			return fmt.Errorf("%q is not system/processor", target)
		}
		files, err := src.build(system, processor)
		if err != nil {
			return fmt.Errorf("%s: %w", target, err)
		}
		for _, f := range files {
			if err := os.WriteFile(filepath.Join(out, f.name), f.data, 0o666); err != nil {
				return err
			}
			fmt.Fprintf(&sums, "%x  %s\n", sha256.Sum256(f.data), f.name)
		}
	}
	os.Stdout.Write(sums.Bytes())
	return os.WriteFile(filepath.Join(out, "SHA256SUMS"), sums.Bytes(), 0o666)
}

// versionLine is where the program says its version.
var versionLine = regexp.MustCompile(`(?m)^\tsvcVersion = "([0-9A-Za-z.+-]+)"$`)

func readSource() (source, error) {
	b, err := os.ReadFile("cmd/svc/version.go")
	if err != nil {
		return source{}, fmt.Errorf("it is run in the root of the repository: %w", err)
	}
	version := versionLine.FindSubmatch(b)
	if version == nil {
		return source{}, errors.New("cmd/svc/version.go does not say the version")
	}
	log, err := exec.Command("git", "log", "-1", "--format=%H %cI").Output()
	if err != nil {
		return source{}, fmt.Errorf("cannot tell the commit: %w", err)
	}
	commit, moment, _ := strings.Cut(strings.TrimSpace(string(log)), " ")
	date, err := time.Parse(time.RFC3339, moment)
	if err != nil {
		return source{}, fmt.Errorf("the commit's date: %w", err)
	}
	return source{version: string(version[1]), commit: commit, date: date.UTC()}, nil
}

func (s *source) name(system, processor string) string {
	return "svc-" + s.version + "-" + system + "-" + processor
}

// build returns the files of a release for a system: an archive and, for Linux, a Debian package.
func (s *source) build(system, processor string) ([]entry, error) {
	work, err := os.MkdirTemp("", "svc-release-")
	if err != nil {
		return nil, err
	}
	defer os.RemoveAll(work)
	program, suffix := "svc", ".tar.gz"
	if system == "windows" {
		program, suffix = "svc.exe", ".zip"
	}
	file := filepath.Join(work, program)
	// The stamp of the go command says whether the tree is clean, too, and that an ignored file may change.
	cmd := exec.Command("go", "build", "-trimpath", "-buildvcs=false", "-o", file, "-ldflags",
		"-s -w -buildid= -X main.commit="+s.commit+" -X main.commitDate="+s.date.Format(time.RFC3339), "./cmd/svc")
	cmd.Env = append(os.Environ(), "GOOS="+system, "GOARCH="+processor, "CGO_ENABLED=0", "GOFLAGS=", "GOAMD64=v1", "GOARM64=v8.0")
	cmd.Stderr = os.Stderr
	if err := cmd.Run(); err != nil {
		return nil, err
	}
	built, err := os.ReadFile(file)
	if err != nil {
		return nil, err
	}
	if err := checkPaths(built); err != nil {
		return nil, err
	}
	parts, err := s.sbom(file)
	if err != nil {
		return nil, err
	}
	name := s.name(system, processor)
	archive, err := s.pack(name, program, built, parts)
	if err != nil || system != "linux" {
		return []entry{{name: name + suffix, data: archive}}, err
	}
	deb, err := s.deb(processor, built, parts)
	return []entry{{name: name + suffix, data: archive}, {name: name + ".deb", data: deb}}, err
}

// checkPaths refuses a program that holds a path of the machine that built it.
func checkPaths(program []byte) error {
	here, err := os.Getwd()
	if err != nil {
		return err
	}
	env, err := exec.Command("go", "env", "GOROOT", "GOMODCACHE", "GOCACHE").Output()
	if err != nil {
		return fmt.Errorf("cannot ask go for its directories: %w", err)
	}
	for _, dir := range append(strings.Fields(string(env)), here) {
		if bytes.Contains(program, []byte(dir+string(filepath.Separator))) {
			return fmt.Errorf("the program holds %s, a path of this machine", dir)
		}
	}
	return nil
}
