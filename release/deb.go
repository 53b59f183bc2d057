package main

import (
	"bytes"
	"compress/gzip"
	"crypto/md5"
	"fmt"
	"os"
	"strings"
)

// packaged are the other files of the package, besides the program, and their sources.
var packaged = [][2]string{
	{"usr/share/bash-completion/completions/svc", "deploy/completions/svc.bash"},
	{"usr/share/doc/svc/README.md", "README.md"},
	{"usr/share/doc/svc/german-words/COPYING", "internal/text/dictionaries/german/COPYING"},
	{"usr/share/doc/svc/german-words/COPYING.LESSER", "internal/text/dictionaries/german/COPYING.LESSER"},
	{"usr/share/doc/svc/german-words/NOTICE.txt", "internal/text/dictionaries/german/NOTICE.txt"},
	{"usr/share/fish/vendor_completions.d/svc.fish", "deploy/completions/svc.fish"},
	{"usr/share/zsh/vendor-completions/_svc", "deploy/completions/_svc"},
}

// description is the description of the package, in the format of deb-control(5).
const description = `Package: svc
Version: %s
Architecture: %s
Maintainer: %s
Installed-Size: %d
Section: database
Priority: optional
Description: search engine with an HTTP API
 A search engine in one program that speaks the HTTP API of Meilisearch. Put
 SVC_MASTER_KEY=... into /etc/svc/env, which root alone reads, and start it:
 systemctl enable --now svc. The data lie in /var/lib/svc.
`

// deb makes the Debian package, as in deb(5): an ar archive of the version of the format, the control data, and the files.
// Installation and removal run no scripts. systemd finds the unit, which is not enabled.
func (s *source) deb(processor string, program, sbom []byte) ([]byte, error) {
	files := []entry{{"usr/bin/svc", 0o755, program}, {"usr/share/doc/svc/sbom.cdx.json", 0o644, sbom}}
	for _, file := range packaged {
		b, err := os.ReadFile(file[1])
		if err != nil {
			return nil, err
		}
		files = append(files, entry{file[0], 0o644, b})
	}
	made, err := s.made()
	if err != nil {
		return nil, err
	}
	files = append(files, made...)

	size := 0
	var sums bytes.Buffer
	for _, f := range files {
		size += (len(f.data) + 1023) / 1024
		fmt.Fprintf(&sums, "%x  %s\n", md5.Sum(f.data), f.name)
	}
	// A pre-release version has to come before the release in Debian's order, too. A - would begin a revision.
	control := fmt.Sprintf(description, strings.ReplaceAll(s.version, "-", "~"), processor, s.maintainer, size)
	described, err := s.tarball([]entry{{"./control", 0o644, []byte(control)}, {"./md5sums", 0o644, sums.Bytes()}})
	if err != nil {
		return nil, err
	}
	files = append(parents(files), files...)
	for i := range files {
		files[i].name = "./" + files[i].name
	}
	data, err := s.tarball(files)
	if err != nil {
		return nil, err
	}
	out := []byte("!<arch>\n")
	for _, member := range []entry{{name: "debian-binary", data: []byte("2.0\n")}, {name: "control.tar.gz", data: described}, {name: "data.tar.gz", data: data}} {
		out = fmt.Appendf(out, "%-16s%-12d%-6d%-6d%-8s%-10d`\n", member.name, s.date.Unix(), 0, 0, "100644", len(member.data))
		out = append(out, member.data...)
		if len(member.data)%2 == 1 {
			out = append(out, '\n')
		}
	}
	return out, nil
}

// made returns the files of the package that are no copies.
func (s *source) made() ([]entry, error) {
	unit, err := os.ReadFile("deploy/svc.service")
	if err != nil {
		return nil, err
	}
	// What its first comment says how to do is done.
	_, text, found := strings.Cut(string(unit), "[Unit]\n")
	if !found || !strings.Contains(text, "ExecStart=/usr/local/bin/svc\n") {
		return nil, fmt.Errorf("deploy/svc.service is not as the package expects it")
	}
	text = "[Unit]\n" + strings.Replace(text, "/usr/local/bin/svc", "/usr/bin/svc", 1)

	manual, err := os.ReadFile("deploy/svc.1")
	if err != nil {
		return nil, err
	}
	var page bytes.Buffer
	w, err := gzip.NewWriterLevel(&page, gzip.BestCompression)
	if err != nil {
		return nil, err
	}
	if _, err := w.Write(manual); err != nil {
		return nil, err
	}
	if err := w.Close(); err != nil {
		return nil, err
	}

	licence, err := os.ReadFile("LICENSE")
	if err != nil {
		return nil, err
	}
	notice, err := os.ReadFile("internal/text/dictionaries/german/NOTICE.txt")
	if err != nil {
		return nil, err
	}
	copyright := string(licence) + "\nOf the German word list in the program, whose licences are in /usr/share/doc/svc/german-words:\n\n" + string(notice)
	return []entry{
		{"usr/lib/systemd/system/svc.service", 0o644, []byte(text)},
		{"usr/share/doc/svc/copyright", 0o644, []byte(copyright)},
		{"usr/share/man/man1/svc.1.gz", 0o644, page.Bytes()},
	}, nil
}
