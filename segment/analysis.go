package segment

import (
	"cmp"
	"context"
	"encoding/binary"
	"slices"
)

// AnalysisPart is a version of a part of the text analysis that made words of a segment. The segment stores the numbers; the caller of the
// builder gives them a meaning.
type AnalysisPart struct {
	Pipeline uint16
	Version  uint16
	List     uint64 // identifies a word list that replaced the built-in one; 0: the built-in list
}

// UnrecordedPipeline is the pipeline of words without a recorded version.
const UnrecordedPipeline = 0xffff

var unrecorded = []AnalysisPart{{Pipeline: UnrecordedPipeline}}

func compareParts(a, b AnalysisPart) int {
	return cmp.Or(cmp.Compare(a.Pipeline, b.Pipeline), cmp.Compare(a.Version, b.Version), cmp.Compare(a.List, b.List))
}

const (
	analysisHead  = 8
	analysisEntry = 16
)

// writeAnalysis writes the parts, which are ascending:
//
//	u32 parts, u32 0
//	parts × { u16 pipeline, u16 version, u32 0, u64 list }
func writeAnalysis(f *fileWriter, parts []AnalysisPart) {
	b := binary.LittleEndian.AppendUint32(nil, uint32(len(parts)))
	b = binary.LittleEndian.AppendUint32(b, 0)
	for _, p := range parts {
		b = binary.LittleEndian.AppendUint16(b, p.Pipeline)
		b = binary.LittleEndian.AppendUint16(b, p.Version)
		b = binary.LittleEndian.AppendUint32(b, 0)
		b = binary.LittleEndian.AppendUint64(b, p.List)
	}
	f.add(tagAnalysis, 0, b)
}

// Analyzed sets the parts of the analysis that made the words of all documents; nil: they are not recorded.
func (b *Builder) Analyzed(parts []AnalysisPart) { b.analysis = parts }

func buildAnalysis(_ context.Context, b *Builder, f *fileWriter) error {
	if b.analysis == nil {
		return nil
	}
	parts := slices.SortedFunc(slices.Values(b.analysis), compareParts)
	writeAnalysis(f, slices.Compact(parts))
	return nil
}

// openAnalysis reads the parts of the analysis that the texts of the segment went through. A segment without
// the section, from a writer that did not record them, gets the value unrecorded.
func (r *Reader) openAnalysis() error {
	s := r.section(tagAnalysis)
	if len(s) == 0 {
		r.analysis = unrecorded
		return nil
	}
	if len(s) < analysisHead || uint64(len(s)) != analysisHead+analysisEntry*uint64(binary.LittleEndian.Uint32(s)) {
		return r.damaged(tagAnalysis, "%d bytes", len(s))
	}
	for e := s[analysisHead:]; len(e) > 0; e = e[analysisEntry:] {
		r.analysis = append(r.analysis, AnalysisPart{binary.LittleEndian.Uint16(e), binary.LittleEndian.Uint16(e[2:]), binary.LittleEndian.Uint64(e[8:])})
	}
	return nil
}

// Analysis returns the parts of the analysis that made the words, ascending and shared. A merged segment may have several versions of a
// pipeline.
func (r *Reader) Analysis() []AnalysisPart { return r.analysis }

// mergeAnalysis writes the parts of all inputs.
func (m *merger) mergeAnalysis() error {
	var parts []AnalysisPart
	for _, l := range m.in {
		parts = append(parts, l.analysis...)
	}
	slices.SortFunc(parts, compareParts)
	writeAnalysis(m.f, slices.Compact(parts))
	return nil
}

func (r *Reader) verifyAnalysis() error {
	for i, p := range r.analysis {
		if i > 0 && compareParts(r.analysis[i-1], p) >= 0 {
			return r.damaged(tagAnalysis, "part %d is out of order", i)
		}
	}
	return nil
}

func (i *inspector) analysis() {
	n := i.u32()
	i.field(4, "%d parts of the analysis", n)
	i.field(4, "reserved")
	for range n {
		pipeline := i.u16()
		i.field(2, "pipeline %d", pipeline)
		i.field(2, "version %d", i.u16())
		i.field(4, "reserved")
		i.field(8, "word list %016x", i.u64())
	}
}
