package text

import (
	"cmp"
	"encoding/binary"
	"slices"

	"github.com/cespare/xxhash/v2"
)

// Pipeline is a part of the analysis with its own version: the code that segments and normalises texts of one script or language.
// Segments store the numbers, so a number is never reused.
type Pipeline uint16

const (
	Common Pipeline = iota // separators, symbols, numbers, ASCII words: every text goes through it
	Latin                  // Latin letters beyond ASCII
	Cyrillic
	Arabic // the script, in all languages
	Devanagari
	Hebrew
	Ethiopic
	Georgian
	Bengali
	Korean
	Ideographs // folding of ideographs and kana, in all languages
	Greek
	Kannada
	Tamil
	Thai
	Gujarati
	Gurmukhi
	Telugu
	Malayalam
	Oriya
	Myanmar
	Sinhala
	Khmer
	German // texts whose locales allow German
	Chinese
	Japanese
	StopWords // all texts, when the settings have stop words

	pipelines = iota // number of pipelines

	// Unrecorded is the pipeline of a segment that was written before segments recorded versions.
	Unrecorded Pipeline = 0xffff
)

// versions are the versions of the pipelines in this program. A change of the words, forms or positions that a text gives must raise the
// version of each pipeline whose texts change, and add a line here. svc then indexes segments of other versions again in the background.
// Until then it also reads queries as the older versions did, if this program still can: see kept.
//
//	German 2: the list of the parts of compounds is part of the program. It was a separate file, without which compounds stayed whole.
//	StopWords 2: stop words have entries and positions of their own, and their case does not matter. They had no entries.
//	Common 2, and those of scripts with signs of currencies: symbols separate words, and entries of the dictionary count in any case.
//	Latin 2, German 3: ß is ss.
//	Arabic 2, Hebrew 2: words are indexed with and without their article.
//	Ideographs, Korean, Thai, Khmer 2: digits before letters of another script belong to these.
//	Latin 3, Greek 3, Arabic 3, Hebrew 3, Thai 3: words with accents have entries of their spellings.
//	Chinese 2: long words are cut so that words of two characters have most of theirs, and the index has those across the cuts.
//	Arabic 4: words with letters of Persian or Urdu have no article, and are indexed as they are written alone.
//	Chinese 3: words in traditional characters are cut as those in simplified ones are.
//	Cyrillic 2: ё is е, ґ is г, and accents that show the stress are dropped. Words with these have entries of their spellings.
//	Common 3, and those of scripts with digits: digits of all scripts are ASCII ones, and marks of the direction of writing are dropped.
//	Korean 3, Thai 4, Khmer 3, German 4, Chinese 4, Japanese 2: decomposed letters and dropped characters do not matter for cuts.
//	Thai 4, Khmer 3: numbers are whole.
//	Thai 5: letters that are typed for sara ae and sara am are those.
//	Ideographs 3: small ka and ke are ordinary ones.
//	Common 4: joiners behind letters are dropped.
//	Devanagari 3: chandrabindu is anusvara, and nukta is dropped.
//	Devanagari 4: words with these have entries of their spellings.
//	Malayalam 3: chillu letters are a consonant with virama.
//	Cyrillic 3: the letter apostrophe is dropped.
//	Latin 4: soft hyphens and control characters are no Latin letters, so that they end no word of another script.
//	Common 5: the selectors of Mongolian and the vowels of Syriac are dropped, and the tone marks of Lao have one place.
//	Arabic 6: the forms of heh in Urdu are heh.
//	Hebrew 4: the ligatures of Yiddish are two letters.
//	Common 5: entries of the dictionary match texts with the same key, and nonSeparatorTokens count in all widths.
//	StopWords 3: stop words match texts with the same key.
//	Korean 4, Thai 6, Khmer 4: inner words have entries.
//	Devanagari 5, Bengali 4, Gujarati 4, Kannada 3, Telugu 3: a nasal without a vowel is an anusvara before a stop of its class.
//	Ideographs 4: more forms of ideographs in Japanese names are one.
//	Ethiopic 2: letters of one sound are one letter. Words with these have entries of their spellings.
//	Tamil 4: sha is sa, with entries of spellings, too.
//	Arabic 7: heh with a hamza above is heh.
//	Greek 4: a final sigma inside a word, as in an entry of the dictionary, is a sigma.
var versions = Versions{Common: 5, Latin: 4, Cyrillic: 3, Arabic: 7, Devanagari: 5, Hebrew: 4, Ethiopic: 2, Bengali: 4, Korean: 4, Ideographs: 4, Greek: 4, Kannada: 3,
	Tamil: 4, Thai: 6, Gujarati: 4, Gurmukhi: 2, Telugu: 3, Malayalam: 3, Oriya: 2, Myanmar: 2, Sinhala: 2, Khmer: 4, German: 4, Chinese: 4, Japanese: 2,
	StopWords: 3}.atLeast(1)

// kept are the older versions that this program can repeat: if versions differ, the code checks Analyzer.versions. A change that does
// not keep the older behaviour removes the versions of its pipelines.
var kept = []Part{{Pipeline: uint16(German), Version: 1}, {Pipeline: uint16(Chinese), Version: 2}}

// Versions has a version for each pipeline.
type Versions [pipelines]uint16

func (v Versions) atLeast(least uint16) Versions {
	for p := range v {
		v[p] = max(v[p], least)
	}
	return v
}

// Pipelines is a set of pipelines.
type Pipelines uint64

const allPipelines = Pipelines(1<<pipelines - 1)

func (s *Pipelines) add(p Pipeline) { *s |= 1 << p }

// Has reports whether a pipeline is in the set.
func (s Pipelines) Has(p Pipeline) bool { return s&(1<<p) != 0 }

// ofScript returns the pipeline of a script.
func ofScript(s script) Pipeline {
	return Pipeline(s) // other is Common
}

// pipelines adds the pipelines that process the text of a group.
func (g group) pipelines(s *Pipelines, text []byte) {
	s.add(Common)
	if g.script != latin || !isASCII(text) {
		s.add(ofScript(g.script))
	}
	switch g.language {
	case deu:
		if g.script == latin {
			s.add(German)
		}
	case cmn:
		s.add(Chinese)
	case jpn:
		s.add(Japanese)
	}
}

// Part is a version of a pipeline that made words of a segment.
type Part struct {
	Pipeline uint16
	Version  uint16
	// List identifies a word list that replaced the built-in one (see UseGermanWords). 0 is the built-in list.
	List uint64
}

// ComparePart orders parts.
func ComparePart(a, b Part) int {
	return cmp.Or(cmp.Compare(a.Pipeline, b.Pipeline), cmp.Compare(a.Version, b.Version), cmp.Compare(a.List, b.List))
}

// Analysis returns the parts that make the words of texts in some pipelines, in the order of ComparePart.
func (a *Analyzer) Analysis(used Pipelines) []Part {
	var parts []Part
	for p := range Pipeline(pipelines) {
		if used.Has(p) {
			parts = append(parts, a.part(p))
		}
	}
	return parts
}

func (a *Analyzer) part(p Pipeline) Part {
	part := Part{Pipeline: uint16(p), Version: a.versions[p]}
	if own := germanReplacement.Load(); own != nil && p == German && part.Version == versions[p] {
		part.List = xxhash.Sum64String(*own)
	}
	return part
}

// Possible returns the pipelines that texts with one of the given locales may go through.
func Possible(locales ...Locales) Pipelines {
	possible := allPipelines
	if !slices.ContainsFunc(locales, func(l Locales) bool { return l.allow(deu) }) {
		possible &^= 1 << German
	}
	return possible
}

// Stale returns the parts whose version differs from that of this program, ascending. Unrecorded stands for the first version of each
// possible pipeline.
func (a *Analyzer) Stale(made []Part, possible Pipelines) []Part {
	if len(a.stop) == 0 {
		possible &^= 1 << StopWords
	}
	var stale []Part
	add := func(part Part) {
		if int(part.Pipeline) >= pipelines || part != a.part(Pipeline(part.Pipeline)) {
			stale = append(stale, part)
		}
	}
	for _, part := range made {
		if Pipeline(part.Pipeline) != Unrecorded {
			add(part)
			continue
		}
		for p := range Pipeline(pipelines) {
			if possible.Has(p) {
				add(Part{Pipeline: uint16(p), Version: 1})
			}
		}
	}
	slices.SortFunc(stale, ComparePart)
	return slices.Compact(stale)
}

// VersionsOf returns the versions of the older program that made words by stale parts. lost are the parts that this program cannot repeat;
// their pipelines have the current version.
func VersionsOf(stale []Part) (v Versions, lost []Part) {
	v = versions
	for _, part := range stale {
		if !slices.Contains(kept, part) {
			lost = append(lost, part)
			continue
		}
		v[part.Pipeline] = min(v[part.Pipeline], part.Version)
	}
	return v, lost
}

// At returns an analyzer with the same settings that repeats the given versions of the pipelines.
func (a *Analyzer) At(v Versions) *Analyzer { return newAt(a.config, v) }

// appendVersions appends the versions of all pipelines, which concordances depend on.
func appendVersions(dst []byte, v Versions) []byte {
	for _, version := range v {
		dst = binary.LittleEndian.AppendUint16(dst, version)
	}
	return dst
}
