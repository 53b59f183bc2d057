package lint

import (
	"fmt"
	"go/ast"
	"maps"
	"slices"
	"strings"
	"testing"
)

// durableCalls are the functions that sync a file, commit a transaction or give a file its name, by package.
var durableCalls = map[string][]string{
	"vfs":        {"Change", "Replace", "Move", "WriteFile", "Stage", "Place"},
	"boltfile":   {"Settle", "Revert", "Supplant", "BeginCopy"},
	"sealedjson": {"Write"},
	"bbolt":      {"Open"},
	"os":         {"Rename", "Link", "Symlink", "WriteFile", "Create", "CreateTemp", "OpenFile"},
}

// durableMethods are the methods of files, file systems and transactions that do so, with their number of arguments.
var durableMethods = map[string]int{"Rename": 2, "Link": 2, "Sync": 0, "SyncDir": 1, "Commit": 0, "CopyLive": 2}

// kind says what a function makes durable.
type kind string

// There are six kinds of commit points. What the data directory holds is what the last of each left, and every prefix of their sequence is
// a good state: recovery, and the tests that crash between any two writes, depend on it. A feature that makes something else durable
// uses one of them, or makes a seventh known here, to recovery and to those tests.
const (
	aTransaction kind = "commit point: a transaction of the queue file"
	aBegin       kind = "commit point: an entry of the journal, when a batch begins"
	aCatalog     kind = "commit point: CATALOG, when an index is created, deleted, swapped, renamed or quarantined"
	aManifest    kind = "commit point: the manifest of an index"
	aKey         kind = "commit point: a transaction of the key file"
	aSealedFile  kind = "commit point: a sealed JSON file that is replaced"
)

// All other calls make nothing known.
const (
	named   kind = "a file that counts once a commit point names it"
	moved   kind = "the content stays the same, or becomes again what it was before a failed commit"
	removed kind = "the end of a removal, which runs again after a crash"
	opening kind = "the data directory, before it is served"
	apart   kind = "a file that is no part of the data"
	copied  kind = "the commit point of another data directory, made again"
	member  kind = "what a member of a group knows of itself, which is no part of what it shares"
	joining kind = "a directory that is to take the place of the data directory, as a whole"
	entries kind = "entries of a log of changes, which comes before the commit points of who follows it"
	before  kind = "counts that a sealed file takes over; a crash may lose those of the last second"
)

// commitPoints are the functions that make something durable, by package, with what that is.
var commitPoints = map[string]kind{
	"internal/task.Queue.endTxn":                  aTransaction,
	"internal/task.journal.append":                aBegin,
	"internal/task.journal.restart":               aBegin,
	"internal/index.Catalog.write":                aCatalog,
	"internal/index.Index.write":                  aManifest,
	"internal/auth.Keys.change":                   aKey,
	"internal/sealedjson.replace":                 aSealedFile,
	"internal/sealedjson.create":                  aSealedFile,
	"fastapi.Features.change":                     aSealedFile,
	"internal/analytics.Recorder.writeHour":       aSealedFile, // searches of a finished hour
	"internal/chat.Store.replace":                 aSealedFile,
	"internal/network.stored.write":               aSealedFile,
	"internal/rule.Store.replace":                 aSealedFile,
	"internal/webhook.Sender.save":                aSealedFile, // delivery progress; without it, tasks are delivered again
	"internal/webhook.Store.replace":              aSealedFile,
	"internal/analytics.Recorder.beginJournal":    before,
	"internal/analytics.Recorder.extendJournal":   before,
	"internal/analytics.Recorder.retain":          removed,
	"internal/index.Catalog.createIndex":          named, // the first manifest of an index, which CATALOG then names
	"internal/index.Index.writeSettings":          named,
	"internal/index.Index.writeTombstones":        named,
	"internal/task.Payload.finish":                named,
	"internal/task.Queue.nameAhead":               named, // payloads
	"internal/task.Payload.rename":                named,
	"internal/index.Index.rename":                 named,
	"segment.fileWriter.finish":                   named,
	"internal/group.Identity.write":               member,
	"internal/group.Identity.forget":              member,
	"internal/group.positions.settle":             member,
	"internal/group.positions.sync":               member,
	"internal/group.sums.keep":                    member,
	"internal/group.positions.restart":            member,
	"internal/group.Reader.exchange":              joining,
	"internal/group.Reader.fetch":                 joining,
	"internal/group.Reader.fill":                  joining,
	"internal/group.Reader.get":                   joining,
	"internal/group.Reader.settling":              member,
	"internal/group.Reader.stage":                 joining,
	"internal/group.Reader.take":                  joining,
	"cmd/svc.options.initVoter":                   opening,
	"internal/consensus.logs.StoreLogs":           entries,
	"internal/consensus.logs.fly":                 entries,
	"internal/consensus.stable.set":               member,
	"internal/consensus.notes.keep":               member,
	"internal/group.mender.entry":                 entries, // payloads, as entries have their contents
	"internal/group.unsynced.settle":              entries,
	"internal/group.linkOrCopy":                   entries, // files that entries name, and files for joining members
	"internal/group.openSpool":                    entries,
	"internal/group.spool.add":                    entries,
	"internal/group.spool.put":                    entries,
	"internal/group.spool.receive":                entries,
	"internal/group.spool.syncNames":              entries,
	"internal/group.spoolFile.Link":               copied,
	"internal/commit.Later.Link":                  named, // files named by the caller
	"internal/commit.Later.Rename":                named,
	"internal/commit.Later.SyncDir":               named,
	"internal/group.holdFS.Link":                  named, // files named by the caller
	"internal/group.holdFS.Rename":                named,
	"internal/logstore.Log.begin":                 entries,
	"internal/logstore.Log.removeUnused":          entries,
	"internal/logstore.Log.Close":                 entries,
	"internal/logstore.Log.sync":                  entries,
	"internal/logstore.Log.settle":                entries,
	"internal/logstore.Log.renew":                 entries,
	"internal/bucket.directory.name":              apart, // an object of a bucket
	"internal/bucket.directory.write":             apart,
	"internal/publish.Archive.Restore":            joining,
	"internal/publish.restore.fetchOnce":          joining,
	"internal/publish.restore.fill":               joining,
	"internal/publish.restore.leaveOne":           joining,
	"internal/publish.transactions.finish":        joining,
	"internal/standby.Directory.copy":             copied,
	"internal/standby.Directory.fetch":            copied,
	"internal/standby.Directory.keep":             copied,
	"internal/standby.Directory.replace":          copied,
	"internal/standby.Directory.transaction":      copied,
	"internal/index.Catalog.followCatalog":        copied,
	"internal/index.Catalog.followManifest":       copied,
	"internal/index.Index.install":                copied,
	"internal/auth.Keys.revert":                   moved,
	"internal/index.file.rebuildColumns":          moved,
	"internal/task.Queue.beginCopy":               moved,
	"internal/task.Queue.takeName":                moved,
	"internal/task.Queue.revert":                  moved,
	"internal/task.Queue.settle":                  moved,
	"internal/task.Queue.writable":                moved,
	"internal/chat.Store.Adopt":                   removed, // of adopted files
	"internal/rule.Store.takeIn":                  removed,
	"internal/task.Queue.moveToLost":              removed, // payloads that no task names
	"cmd/svc.emptyDir":                            opening,
	"cmd/svc.importInto":                          opening,
	"cmd/svc.noteStores":                          opening,
	"cmd/svc.writeVersion":                        opening,
	"internal/dump.SnapshotImportOptions.extract": opening,
	"internal/dump.SnapshotImportOptions.run":     opening,
	"internal/dump.importer.features":             opening,
	"internal/dump.importer.keep":                 opening,
	"internal/dump.importer.network":              opening,
	"internal/dump.importer.store":                opening,
	"internal/task.Restore.Close":                 opening,
	"cmd/svc.checkpoints.save":                    apart, // progress of the importing client
	"cmd/svc.salvageCommand.Run":                  apart,
	"internal/audit.Log.append":                   apart,
	"internal/audit.Log.open":                     apart,
	"internal/audit.Log.rotate":                   apart,
	"internal/dump.Maker.publish":                 apart, // a dump or a snapshot
	"internal/dump.Salvage":                       apart,
	"internal/embed.models.download":              apart, // models, which are fetched again
	"internal/embed.models.fetch":                 apart,
	"internal/task.Queue.CopyTo":                  apart, // into a snapshot
}

// logged are the functions that pass commit points through commit.Do, so that followers of the data directory receive them.
var logged = map[string]kind{
	"internal/task.Queue.change":         aTransaction,
	"internal/task.journal.put":          aBegin,
	"internal/index.Catalog.write":       aCatalog,
	"internal/index.Catalog.createIndex": aManifest,
	"internal/index.Index.write":         aManifest,
	"internal/auth.Keys.change":          aKey,
	"internal/sealedjson.Write":          aSealedFile,
}

// appliers are the functions that those call to make a change durable.
var appliers = []string{"internal/task.Queue.endTxn", "internal/task.journal.append", "internal/task.journal.restart", "internal/sealedjson.create", "internal/sealedjson.replace"}

// TestCommitPointsAreLogged finds every function that is a commit point without calling commit.Do.
func TestCommitPointsAreLogged(t *testing.T) {
	found := map[string]bool{}
	eachFile(t, func(pkg, file string, f *ast.File) {
		for _, d := range f.Decls {
			fn, ok := d.(*ast.FuncDecl)
			if !ok {
				continue
			}
			place := fmt.Sprintf("%s.%s", pkg, functionName(fn))
			own, logs := false, false
			ast.Inspect(fn, func(n ast.Node) bool {
				if what := durable(n); what != "" && what != "sealedjson.Write" {
					own = true
				}
				if call, ok := n.(*ast.CallExpr); ok {
					if sel, ok := call.Fun.(*ast.SelectorExpr); ok && sel.Sel.Name == "Do" {
						x, ok := sel.X.(*ast.Ident)
						logs = logs || ok && x.Name == "commit"
					}
				}
				return true
			})
			if logs {
				if found[place] = true; logged[place] == "" {
					t.Errorf("%s: %s calls commit.Do: say in logged which of the six commit points it is", file, place)
				}
			}
			if strings.HasPrefix(string(commitPoints[place]), "commit point") && own && !logs && !slices.Contains(appliers, place) {
				t.Errorf("%s: %s is a commit point that does not go through commit.Do", file, place)
			}
		}
	})
	for place := range logged {
		if !found[place] {
			t.Errorf("%s no longer calls commit.Do", place)
		}
	}
	for _, k := range []kind{aTransaction, aBegin, aCatalog, aManifest, aKey, aSealedFile} {
		if !slices.Contains(slices.Collect(maps.Values(logged)), k) {
			t.Errorf("no %s goes through commit.Do", k)
		}
	}
}

// TestCommitPointsAreKnown finds every function that syncs a file, commits a transaction or gives a file its name, and looks it up in
// commitPoints.
func TestCommitPointsAreKnown(t *testing.T) {
	used := map[string]bool{}
	eachFile(t, func(pkg, file string, f *ast.File) {
		switch {
		case pkg == "bench", pkg == "hostile", pkg == "release", pkg == "internal/vfs", pkg == "internal/boltfile", pkg == "internal/powercut", strings.HasSuffix(pkg, "test"):
			return // programs for developers, and those that the calls belong to
		}
		for _, d := range f.Decls {
			fn, ok := d.(*ast.FuncDecl)
			if !ok {
				continue
			}
			place := fmt.Sprintf("%s.%s", pkg, functionName(fn))
			ast.Inspect(fn, func(n ast.Node) bool {
				what := durable(n)
				if what == "" {
					return true
				}
				if used[place] = true; commitPoints[place] == "" {
					t.Errorf("%s: %s calls %s: use one of the six commit points, or say in commitPoints why it is not one", file, place, what)
				}
				return true
			})
		}
	})
	for place := range commitPoints {
		if !used[place] {
			t.Errorf("%s no longer makes anything durable", place)
		}
	}
}

// durable returns the name of what a node calls to make something durable; "" if nothing.
func durable(n ast.Node) string {
	var sel *ast.SelectorExpr
	switch n := n.(type) {
	case *ast.CallExpr:
		sel, _ = n.Fun.(*ast.SelectorExpr)
		if sel != nil {
			if args, ok := durableMethods[sel.Sel.Name]; ok && args == len(n.Args) {
				return sel.Sel.Name
			}
		}
	case *ast.SelectorExpr:
		_, method := durableMethods[n.Sel.Name]
		if _, ok := n.X.(*ast.ParenExpr); ok && method { // of a type, as a value
			return n.Sel.Name
		}
		sel = n
	}
	if sel == nil {
		return ""
	}
	if x, ok := sel.X.(*ast.Ident); ok && slices.Contains(durableCalls[x.Name], sel.Sel.Name) {
		return x.Name + "." + sel.Sel.Name
	}
	return ""
}

// functionName returns the name of a function, after that of the type it is a method of.
func functionName(fn *ast.FuncDecl) string {
	if fn.Recv == nil {
		return fn.Name.Name
	}
	return strings.TrimPrefix(typeName(fn.Recv.List[0].Type), "*") + "." + fn.Name.Name
}
