package lint

import (
	"go/ast"
	"strings"
	"testing"
)

// passing are types of values that are passed from call to call and not stored: contexts, and turns, which end with the call that receives
// them. work is the context of a request.
var passing = map[string]bool{"context.Context": true, "turns.Turn": true, "*turn": true, "*work": true}

// keepers may store a context or a turn in a field: by package, type and field, with what ends no later than the context or turn. A keeper
// that outlives the call that made it has a context of its own, never that of a request.
var keepers = map[string]string{
	"fastapi.Server.searching":            "the server has its own, which ends with Shutdown",
	"fastapi.bodyReader.turn":             "the reader lives in receive, which made the turn",
	"fastapi.growingAnswer.turn":          "the answer made the turn, and gives it back in end",
	"fastapi.turn.work":                   "the context of the request, of which the turn is a part",
	"fastapi.work.parent":                 "the context of the server: work is a context",
	"fastapi.waited.Context":              "the same context as work, for those who wait",
	"internal/chat.conversation.ctx":      "Converse, which the conversation lives in",
	"internal/chat.answerStream.ctx":      "the stream cancels it itself",
	"internal/dump.archive.ctx":           "the task that writes the archive",
	"internal/dump.until.ctx":             "the archive that it writes",
	"internal/dump.parts.ctx":             "the upload, which cancels it itself",
	"internal/dump.exporter.ctx":          "the task of the export",
	"internal/dump.importer.ctx":          "Import, which the importer lives in",
	"internal/suggest.Builder.ctx":        "the builder has its own, which ends with Close",
	"internal/dump.meter.ctx":             "the import that it bounds",
	"internal/bucket.interrupted.ctx":     "the read or the write of one object",
	"internal/publish.paced.ctx":          "the upload that reads the file",
	"cmd/svc.takeover.ctx":                "the request that waits for it",
	"internal/group.stream.ctx":           "the change that reads the file, or the copy",
	"internal/group.download.ctx":         "as above",
	"internal/publish.resumed.ctx":        "the read of one object",
	"internal/index.batch.ctx":            "Apply, which the batch lives in",
	"internal/index.columnCollector.ctx":  "the batch or the repair that collects",
	"internal/index.compactor.ctx":        "the compactor has its own, which ends with the catalog",
	"internal/index.writer.ctx":           "the batch that writes",
	"internal/index.recasting.ctx":        "the merge that holds the segment, which ends after the batch",
	"internal/network.changing.ctx":       "the task of the change",
	"internal/network.Node.ctx":           "the node has its own, which ends with Close",
	"internal/rank.request.ctx":           "Search, which the state lives in: it is pooled without it",
	"internal/rank.request.turn":          "Search, as for the context",
	"internal/aggregate.work.turn":        "Compute, Merge or AppendJSON, which the work lives in",
	"internal/aggregate.render.work":      "AppendJSON, which the render lives in",
	"internal/search.candidateCounts.ctx": "distribution, which the counts live in",
	"internal/format.clock.turn":          "the hitWriter of one answer",
	"internal/search.merger.turn":         "Federate, which the merger lives in",
	"internal/search.hitWriter.turn":      "AppendMembers, AppendPeer or Passages, which the writer lives in",
	"internal/task.Queue.ctx":             "the queue has its own, which ends with Close",
	"internal/task.running.ctx":           "the batch has its own, which its end cancels",
	"internal/trace.sender.ctx":           "the sender has its own, which its end cancels",
	"internal/turns.none.ctx":             "a turn made of a context lasts as long as that",
	"internal/turns.derived.ctx":          "a turn made of a context lasts as long as that",
	"internal/webhook.Sender.ctx":         "the sender has its own, which ends with Close",
	"segment.merger.ctx":                  "Merge, which the state lives in",
	"segment.vectorWriter.ctx":            "the merge or the build that writes",
}

// TestContextsAreNotStored finds fields that store a context or a turn. A turn stored for longer than its call once took a slot of the
// running searches that was never released.
func TestContextsAreNotStored(t *testing.T) {
	found := map[string]bool{}
	eachFile(t, func(pkg, file string, f *ast.File) {
		if pkg == "bench" || pkg == "hostile" || pkg == "release" {
			return
		}
		ast.Inspect(f, func(n ast.Node) bool {
			spec, ok := n.(*ast.TypeSpec)
			if !ok {
				return true
			}
			for _, field := range fieldsOf(spec.Type) {
				name := typeName(field.Type)
				if !passing[name] {
					continue
				}
				fields := []string{strings.TrimPrefix(name[strings.LastIndexByte(name, '.')+1:], "*")} // embedded
				if field.Names != nil {
					fields = nil
					for _, n := range field.Names {
						fields = append(fields, n.Name)
					}
				}
				for _, own := range fields {
					key := pkg + "." + spec.Name.Name + "." + own
					if found[key] = true; keepers[key] == "" {
						t.Errorf("%s: %s stores a %s: pass it to the calls that need it, or say in keepers what ends before it does", file, key, name)
					}
				}
			}
			return true
		})
	})
	for key := range keepers {
		if !found[key] {
			t.Errorf("%s is among keepers and stores nothing", key)
		}
	}
}

// fieldsOf returns the fields of a struct, including those of nested structs; none for other types.
func fieldsOf(of ast.Expr) (all []*ast.Field) {
	s, ok := of.(*ast.StructType)
	if !ok {
		return nil
	}
	for _, f := range s.Fields.List {
		all = append(all, f)
		all = append(all, fieldsOf(f.Type)...)
	}
	return all
}

// typeName returns the name of a type as written; "" if it has none.
func typeName(of ast.Expr) string {
	switch of := of.(type) {
	case *ast.Ident:
		return of.Name
	case *ast.StarExpr:
		return "*" + typeName(of.X)
	case *ast.SelectorExpr:
		return typeName(of.X) + "." + of.Sel.Name
	}
	return ""
}
