package main

import (
	"archive/tar"
	"archive/zip"
	"bytes"
	"compress/flate"
	"compress/gzip"
	"io"
	"io/fs"
	"os"
	"path"
	"slices"

	documents "svc"
)

// beside lists the files that accompany the program, and their sources. svc licenses also prints the terms of the German word list,
// which is part of the program.
var beside = [][2]string{
	{"LICENSE", "LICENSE"},
	{"README.md", "README.md"},
	{"LICENSE-german-words/COPYING", "internal/text/dictionaries/german/COPYING"},
	{"LICENSE-german-words/COPYING.LESSER", "internal/text/dictionaries/german/COPYING.LESSER"},
	{"LICENSE-german-words/NOTICE.txt", "internal/text/dictionaries/german/NOTICE.txt"},
	{"svc.service", "deploy/svc.service"},
	{"man/svc.1", "deploy/svc.1"},
	{"completions/svc.bash", "deploy/completions/svc.bash"},
	{"completions/svc.fish", "deploy/completions/svc.fish"},
	{"completions/_svc", "deploy/completions/_svc"},
}

// besides returns beside and the documents, including README.md.
func besides() ([][2]string, error) {
	all := slices.Clone(beside)
	err := fs.WalkDir(documents.Documents, ".", func(file string, d fs.DirEntry, err error) error {
		if err == nil && !d.IsDir() && file != "LICENSE" && file != "README.md" {
			all = append(all, [2]string{file, file})
		}
		return err
	})
	return all, err
}

// entry is a file of an archive or a package.
type entry struct {
	name string
	mode int64
	data []byte
}

// pack makes the archive, a zip for Windows: one directory, in which every file is owned by root and has the date of the commit.
func (s *source) pack(dir, name string, program, sbom []byte) ([]byte, error) {
	files := []entry{{path.Join(dir, name), 0o755, program}, {path.Join(dir, "sbom.cdx.json"), 0o644, sbom}}
	all, err := besides()
	if err != nil {
		return nil, err
	}
	for _, file := range all {
		b, err := os.ReadFile(file[1])
		if err != nil {
			return nil, err
		}
		files = append(files, entry{path.Join(dir, file[0]), 0o644, b})
	}
	if path.Ext(name) == ".exe" {
		return s.zip(files)
	}
	return s.tarball(files)
}

// tarball makes a tar file, compressed with gzip.
func (s *source) tarball(files []entry) ([]byte, error) {
	var packed bytes.Buffer
	compressed, err := gzip.NewWriterLevel(&packed, gzip.BestCompression)
	if err != nil {
		return nil, err
	}
	archive := tar.NewWriter(compressed)
	for _, f := range files {
		h := tar.Header{Name: f.name, Mode: f.mode, Size: int64(len(f.data)), ModTime: s.date, Uname: "root", Gname: "root", Format: tar.FormatUSTAR}
		if f.name[len(f.name)-1] == '/' {
			h.Typeflag = tar.TypeDir
		}
		if err := archive.WriteHeader(&h); err != nil {
			return nil, err
		}
		if _, err := archive.Write(f.data); err != nil {
			return nil, err
		}
	}
	if err := archive.Close(); err != nil {
		return nil, err
	}
	if err := compressed.Close(); err != nil {
		return nil, err
	}
	return packed.Bytes(), nil
}

func (s *source) zip(files []entry) ([]byte, error) {
	var packed bytes.Buffer
	archive := zip.NewWriter(&packed)
	archive.RegisterCompressor(zip.Deflate, func(w io.Writer) (io.WriteCloser, error) { return flate.NewWriter(w, flate.BestCompression) })
	for _, f := range files {
		h := zip.FileHeader{Name: f.name, Method: zip.Deflate, Modified: s.date}
		h.SetMode(os.FileMode(f.mode))
		w, err := archive.CreateHeader(&h)
		if err != nil {
			return nil, err
		}
		if _, err := w.Write(f.data); err != nil {
			return nil, err
		}
	}
	err := archive.Close()
	return packed.Bytes(), err
}

// parents returns entries for the directories of files, in order.
func parents(files []entry) []entry {
	var names []string
	for _, f := range files {
		for dir := path.Dir(f.name); dir != "."; dir = path.Dir(dir) {
			names = append(names, dir+"/")
		}
	}
	slices.Sort(names)
	names = slices.Compact(names)
	dirs := make([]entry, len(names))
	for i, name := range names {
		dirs[i] = entry{name: name, mode: 0o755}
	}
	return dirs
}
