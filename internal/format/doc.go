// Package format makes what a hit shows of its match: _formatted, with texts cropped and matches marked, and _matchesPosition.
//
// A highlighter finds the matches of the query in a text, by the same analysis that made the words (highlight.go). A textScan cuts a
// text into tokens only as far as needed, and skips runs of words that begin no match (textscan.go).
//
// A crop shows the best run of matches: with the most words of the query, then the closest together, then in the order of the query
// (crop.go, cropscore.go). It skips words that no better run needs (cropneeded.go). Long texts have a concordance in the segment, so that
// a crop reads only the pieces around its run (concord.go, cropconcord.go). Results of the concordance are compared with the text,
// because the concordance may be of an older analysis. Crops of long texts are cached with the segment (cropkept.go).
//
// The text of documents is walked as JSON and never decoded. Memory is charged to the account of the request.
package format
