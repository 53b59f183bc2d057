package main

import (
	"crypto/sha256"
	"debug/buildinfo"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"os"
	"strings"
	"time"
)

// bom is a bill of materials of CycloneDX 1.5 (https://cyclonedx.org/docs/1.5/json).
type bom struct {
	Format     string      `json:"bomFormat"`
	Spec       string      `json:"specVersion"`
	Version    int         `json:"version"`
	Metadata   metadata    `json:"metadata"`
	Components []component `json:"components"`
}

type metadata struct {
	Timestamp string    `json:"timestamp"`
	Component component `json:"component"`
}

type component struct {
	Type        string    `json:"type"`
	Name        string    `json:"name"`
	Version     string    `json:"version,omitempty"`
	Description string    `json:"description,omitempty"`
	Hashes      []hash    `json:"hashes,omitempty"`
	Licenses    []licence `json:"licenses,omitempty"`
	PURL        string    `json:"purl,omitempty"` // https://github.com/package-url/purl-spec
}

type licence struct {
	License struct {
		ID string `json:"id"` // of SPDX
	} `json:"license"`
}

// germanWords is the list in the program that has its own licence, which also applies to those who distribute the program.
const germanWords = "internal/text/dictionaries/german/dictionary-de.txt"

func germanList() (component, error) {
	list, err := os.ReadFile(germanWords)
	if err != nil {
		return component{}, err
	}
	c := component{Type: "data", Name: "german-decompounder/dictionary-de.txt", Description: "Parts of German compounds, in the program; svc licenses prints their terms.",
		Hashes: []hash{{"SHA-256", fmt.Sprintf("%x", sha256.Sum256(list))}}, Licenses: make([]licence, 1)}
	c.Licenses[0].License.ID = "LGPL-3.0-or-later"
	return c, nil
}

type hash struct {
	Algorithm string `json:"alg"`
	Content   string `json:"content"`
}

// sbom lists what the program in a file was linked from, as the go command recorded it in the program. The hash of a module is that
// of go.sum (dirhash "h1"), not of one file.
func (s *source) sbom(file string) ([]byte, error) {
	info, err := buildinfo.ReadFile(file)
	if err != nil {
		return nil, err
	}
	b := bom{Format: "CycloneDX", Spec: "1.5", Version: 1, Metadata: metadata{
		Timestamp: s.date.Format(time.RFC3339), Component: component{Type: "application", Name: "svc", Version: s.version},
	}}
	version := strings.TrimPrefix(info.GoVersion, "go")
	b.Components = append(b.Components, component{Type: "library", Name: "std", Version: version, PURL: "pkg:golang/std@" + version})
	for _, m := range info.Deps {
		if m.Replace != nil {
			m = m.Replace
		}
		c := component{Type: "library", Name: m.Path, Version: m.Version, PURL: "pkg:golang/" + m.Path + "@" + strings.ReplaceAll(m.Version, "+", "%2B")}
		if h1, ok := strings.CutPrefix(m.Sum, "h1:"); ok {
			sum, err := base64.StdEncoding.DecodeString(h1)
			if err != nil {
				return nil, fmt.Errorf("the sum of %s: %w", m.Path, err)
			}
			c.Hashes = []hash{{"SHA-256", fmt.Sprintf("%x", sum)}}
		}
		b.Components = append(b.Components, c)
	}
	words, err := germanList()
	if err != nil {
		return nil, err
	}
	b.Components = append(b.Components, words)
	text, err := json.MarshalIndent(b, "", "  ")
	return append(text, '\n'), err
}
