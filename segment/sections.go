package segment

import (
	"context"
	"encoding/binary"
	"slices"
)

// tag names a kind of section by four letters.
type tag uint32

func newTag(s string) tag { return tag(binary.LittleEndian.Uint32([]byte(s))) }

func (t tag) String() string {
	b := binary.LittleEndian.AppendUint32(nil, uint32(t))
	for i, c := range b {
		if c < 'a' || c > 'z' {
			b[i] = '.'
		}
	}
	return string(b)
}

var (
	tagDocs        = newTag("docs")
	tagDocIndex    = newTag("didx")
	tagDicts       = newTag("ddic")
	tagConcord     = newTag("conc")
	tagConcordDir  = newTag("cdir")
	tagMeta        = newTag("meta")
	tagDocIDs      = newTag("dids")
	tagExternalIDs = newTag("xids")
	tagIDHash      = newTag("xhsh")
	tagPostings    = newTag("post")
	tagTerms       = newTag("term")
	tagTermFilter  = newTag("tflt")
	tagAnalysis    = newTag("anls")
	tagPrefixPosts = newTag("pfxp")
	tagPrefixes    = newTag("pfxk")
	tagNeighbours  = newTag("pair")
	tagPresence    = newTag("pres")
	tagDottedKeys  = newTag("dkey")
	tagWordCounts  = newTag("wcnt")
	tagColumns     = newTag("cols")
	tagColumnDir   = newTag("cold")
	tagInfix       = newTag("infx")
	tagGeo         = newTag("geop")
	tagShapes      = newTag("gshp")

	// Of the objects in arrays that are filtered one by one.
	tagElements         = newTag("elem")
	tagElementScopes    = newTag("elsc")
	tagElementPresence  = newTag("elpr")
	tagElementColumns   = newTag("elco")
	tagElementColumnDir = newTag("elcd")
	tagElementPoints    = newTag("elgp")

	// Sections of vectors, one per embedder; the section's aux is the embedder's number.
	tagVectors    = newTag("vrow")
	tagVectorSets = newTag("vset")
	tagCodes      = newTag("vcod")
	tagSigns      = newTag("vsgc")
	tagWideSigns  = newTag("vsgw")
	tagOldSigns   = newTag("vsgn")
	tagGraph      = newTag("vgrf")

	tagHost = newTag("host")
	tagSums = newTag("sums")
)

// sectionKind has all operations on the sections of one kind. Every kind has its own inspect. with names another kind whose functions
// write, open and verify both.
type sectionKind struct {
	tag     tag
	meaning string
	since   uint32 // the first format version that has it
	small   bool   // Open verifies its checksum: every call reads it, and it is small compared with the file (except the dictionary)
	late    bool   // OpenQuick may leave that to the first reads: it grows with the documents
	in      files  // 0: inSegments
	with    tag    // 0: none

	// scattered: searches read few, distant pages. It is false for columns, which are read in runs, for small sections, and for those
	// of vectors, which request their pages.
	scattered bool

	build  func(ctx context.Context, b *Builder, f *fileWriter) error
	open   func(r *Reader) error
	merge  func(m *merger) error
	copy   func(m *merger) error // merge of the only input, which has no deleted rows; nil: byte by byte
	verify func(r *Reader) error // beyond checksums; other sections that it reads may be damaged

	inspect func(i *inspector)
}

// files are the kinds of files that can contain a kind of section.
type files uint8

const (
	inSegments files = 1 << iota
	inColumns        // files of columns beside a segment
)

// sectionKinds are the kinds of sections in file order. Readers skip unknown kinds.
var sectionKinds []sectionKind

func init() { sectionKinds = allSectionKinds() } // some of these functions look into the table

// allSectionKinds is the table, in file order. A row with the same function for several operations owns them
// together.
func allSectionKinds() []sectionKind {
	return []sectionKind{
		{tag: tagDocs, meaning: "documents", since: 1, scattered: true,
			build: buildDocuments, open: (*Reader).openDocuments, merge: (*merger).mergeDocuments, copy: (*merger).copyDocuments, verify: (*Reader).verifyDocuments, inspect: (*inspector).documents},
		{tag: tagDocIndex, meaning: "row → document", since: 1, scattered: true, with: tagDocs, inspect: (*inspector).docIndex},
		{tag: tagDicts, meaning: "dictionaries of documents", since: 1, with: tagDocs, small: true, inspect: (*inspector).dictionaries},
		{tag: tagConcord, meaning: "places of all words in long texts", since: 3, scattered: true,
			build: buildConcordances, open: (*Reader).openConcordances, merge: (*merger).mergeConcordances, verify: (*Reader).verifyConcordances, inspect: (*inspector).concordances},
		{tag: tagConcordDir, meaning: "row, member → places of its words", since: 3, scattered: true, with: tagConcord, inspect: (*inspector).concordanceDir},
		{tag: tagMeta, meaning: "counts", since: 1, small: true,
			build: buildMeta, open: (*Reader).openMeta, merge: (*merger).writeMeta, copy: (*merger).writeMeta, verify: (*Reader).verifyMeta, inspect: (*inspector).meta},
		{tag: tagDocIDs, meaning: "row → DocID", since: 1, scattered: true, small: true, late: true,
			build: buildDocIDs, open: (*Reader).openDocIDs, merge: (*merger).mergeDocIDs, verify: (*Reader).verifyDocIDs, inspect: (*inspector).docIDs},
		{tag: tagExternalIDs, meaning: "row → external id", since: 1, scattered: true,
			build: buildExternalIDs, open: (*Reader).openExternalIDs, merge: (*merger).mergeExternalIDs, verify: (*Reader).verifyExternalIDs, inspect: (*inspector).externalIDs},
		{tag: tagIDHash, meaning: "external id → row", since: 1, scattered: true, with: tagExternalIDs, inspect: (*inspector).idHash},
		{tag: tagPostings, meaning: "postings of words", since: 1, scattered: true,
			build: buildWords, open: (*Reader).openWords, merge: (*merger).mergeWords, verify: (*Reader).verifyWords, inspect: (*inspector).postings},
		{tag: tagTerms, meaning: "word → posting", since: 1, scattered: true, with: tagPostings, small: true, late: true, inspect: (*inspector).terms},
		{tag: tagTermFilter, meaning: "beginnings that words have", since: 4, scattered: true, with: tagPostings, small: true, late: true, inspect: (*inspector).termFilter},
		{tag: tagAnalysis, meaning: "versions of the analysis", since: 4, small: true,
			build: buildAnalysis, open: (*Reader).openAnalysis, merge: (*merger).mergeAnalysis, copy: (*merger).mergeAnalysis, verify: (*Reader).verifyAnalysis, inspect: (*inspector).analysis},
		{tag: tagPrefixPosts, meaning: "postings of short prefixes", since: 1, scattered: true,
			build: buildPrefixes, open: (*Reader).openPrefixes, merge: (*merger).mergePrefixes, copy: (*merger).copyPrefixes, verify: (*Reader).verifyPrefixes, inspect: (*inspector).prefixPostings},
		{tag: tagPrefixes, meaning: "short prefix → posting", since: 1, with: tagPrefixPosts, small: true, inspect: (*inspector).prefixes},
		{tag: tagNeighbours, meaning: "rows where frequent words are neighbours", since: 3, scattered: true,
			build: buildNeighbours, open: (*Reader).openNeighbours, merge: (*merger).mergeNeighbours, verify: (*Reader).verifyNeighbours, inspect: (*inspector).neighbours},
		{tag: tagPresence, meaning: "field → rows that have it", since: 1,
			build: buildPresence, open: (*Reader).openPresence, merge: (*merger).mergePresence, copy: (*merger).copyPresence, verify: (*Reader).verifyPresence, inspect: (*inspector).presence},
		{tag: tagDottedKeys, meaning: "field → rows that have its path as one key", since: 1,
			build: buildDottedKeys, open: (*Reader).openDottedKeys, merge: (*merger).mergeDottedKeys, verify: (*Reader).verifyDottedKeys, inspect: (*inspector).dottedKeys},
		{tag: tagWordCounts, meaning: "field, row → number of words", since: 1, scattered: true,
			build: buildWordCounts, open: (*Reader).openWordCounts, merge: (*merger).mergeWordCounts, verify: (*Reader).verifyWordCounts, inspect: (*inspector).wordCounts},
		{tag: tagHost, meaning: "segment that the columns stand beside", since: 3, small: true, in: inColumns,
			open: (*Reader).openHost, verify: (*Reader).verifyHost, inspect: (*inspector).host},
		{tag: tagColumns, meaning: "columns", since: 1, in: inSegments | inColumns,
			build: buildColumns, open: (*Reader).openColumns, merge: (*merger).mergeColumns, copy: (*merger).mergeColumns, verify: (*Reader).verifyColumns, inspect: (*inspector).columns},
		{tag: tagColumnDir, meaning: "field → column", since: 1, with: tagColumns, small: true, in: inSegments | inColumns, inspect: (*inspector).columnDir},
		{tag: tagInfix, meaning: "trigram → blocks of strings of a column", since: 4, with: tagColumns, in: inSegments | inColumns, inspect: (*inspector).infix},
		{tag: tagGeo, meaning: "points", since: 1,
			build: buildPoints, open: (*Reader).openPoints, merge: (*merger).mergePoints, verify: (*Reader).verifyPoints, inspect: (*inspector).points},
		{tag: tagShapes, meaning: "shapes", since: 1,
			build: buildShapes, open: (*Reader).openShapes, merge: (*merger).mergeShapes, verify: (*Reader).verifyShapes, inspect: (*inspector).shapes},
		{tag: tagElements, meaning: "elements", since: 4,
			build: buildElements, open: (*Reader).openElements, merge: (*merger).mergeElements, copy: (*merger).mergeElements, verify: (*Reader).verifyElements, inspect: (*inspector).elements},
		{tag: tagElementScopes, meaning: "path → elements that stand there", since: 4, with: tagElements, inspect: (*inspector).elementScopes},
		{tag: tagElementPresence, meaning: "field → elements that have it", since: 4, with: tagElements, inspect: (*inspector).elementPresence},
		{tag: tagElementColumns, meaning: "columns of elements", since: 4, with: tagElements, inspect: (*inspector).elementColumns},
		{tag: tagElementColumnDir, meaning: "field → column of elements", since: 4, with: tagElements, small: true, inspect: (*inspector).columnDir},
		{tag: tagElementPoints, meaning: "points of elements", since: 4, with: tagElements, inspect: (*inspector).points},
		{tag: tagVectors, meaning: "vectors", since: 1,
			build: buildVectors, open: (*Reader).openVectors, merge: (*merger).mergeVectors, copy: (*merger).copyVectors, verify: (*Reader).verifyVectors, inspect: (*inspector).vectors},
		{tag: tagVectorSets, meaning: "rows by what their vectors are", since: 1, with: tagVectors, inspect: (*inspector).vectorSets},
		{tag: tagCodes, meaning: "codes of vectors", since: 1, with: tagVectors, inspect: (*inspector).codes},
		{tag: tagSigns, meaning: "signs of codes less their centre", since: 4, with: tagVectors, inspect: (*inspector).signs},
		{tag: tagWideSigns, meaning: "signs that need more comparisons", since: 4, with: tagVectors, inspect: (*inspector).signs},
		{tag: tagOldSigns, meaning: "signs of codes, of earlier programs", since: 3, with: tagVectors, inspect: (*inspector).signs},
		{tag: tagGraph, meaning: "graph over codes", since: 1, with: tagVectors, inspect: (*inspector).graph},
		// The last section: it has the checksums of everything before it.
		{tag: tagSums, meaning: "checksums of blocks", since: 3, small: true, in: inSegments | inColumns,
			build: buildSums, open: (*Reader).openSums, merge: (*merger).writeSums, copy: (*merger).copyRest, verify: (*Reader).verifySums, inspect: (*inspector).sums},
	}
}

// stands reports whether sections of the kind belong in a kind of file.
func (k *sectionKind) stands(where files) bool { return max(k.in, inSegments)&where != 0 }

// kindOf returns the kind with a tag, or nil for a kind that this program does not know.
func kindOf(t tag) *sectionKind {
	if i := slices.IndexFunc(sectionKinds, func(k sectionKind) bool { return k.tag == t }); i >= 0 {
		return &sectionKinds[i]
	}
	return nil
}
