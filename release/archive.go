package main

import (
	"archive/tar"
	"bytes"
	"compress/gzip"
	"os"
	"path"
)

// beside are the files that lie beside the program, and where they come from. The terms of the German word list, which is in the
// program, are those that svc licenses prints, too.
var beside = [][2]string{
	{"LICENSE", "LICENSE"},
	{"README.md", "README.md"},
	{"LICENSE-german-words/COPYING", "internal/text/dictionaries/german/COPYING"},
	{"LICENSE-german-words/COPYING.LESSER", "internal/text/dictionaries/german/COPYING.LESSER"},
	{"LICENSE-german-words/NOTICE.txt", "internal/text/dictionaries/german/NOTICE.txt"},
}

// pack makes the archive: one directory of which every file is of root and of the commit's date.
func (s *source) pack(dir, name string, program, sbom []byte) ([]byte, error) {
	var packed bytes.Buffer
	zip, err := gzip.NewWriterLevel(&packed, gzip.BestCompression)
	if err != nil {
		return nil, err
	}
	archive := tar.NewWriter(zip)
	add := func(name string, mode int64, b []byte) error {
		err := archive.WriteHeader(&tar.Header{
			Name: path.Join(dir, name), Mode: mode, Size: int64(len(b)), ModTime: s.date, Uname: "root", Gname: "root", Format: tar.FormatUSTAR,
		})
		if err != nil {
			return err
		}
		_, err = archive.Write(b)
		return err
	}
	if err := add(name, 0o755, program); err != nil {
		return nil, err
	}
	if err := add("sbom.cdx.json", 0o644, sbom); err != nil {
		return nil, err
	}
	for _, file := range beside {
		b, err := os.ReadFile(file[1])
		if err != nil {
			return nil, err
		}
		if err := add(file[0], 0o644, b); err != nil {
			return nil, err
		}
	}
	if err := archive.Close(); err != nil {
		return nil, err
	}
	if err := zip.Close(); err != nil {
		return nil, err
	}
	return packed.Bytes(), nil
}
