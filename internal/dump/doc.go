// Package dump owns what leaves an instance and comes back: dumps, which are portable and in the format V6 that other
// engines of this API read and write; snapshots, which are svc's own files; and exports to another instance.
//
// A dump is a gzipped tar. Its entries, with / for the root:
//
//	metadata.json                        {"dumpVersion":"V6","dbVersion","dumpDate","svcVersion"}
//	keys.jsonl                           one API key a line, as of the request
//	tasks/queue.jsonl                    one task a line, in the order of uids
//	tasks/update_files/T.jsonl           the documents of the enqueued addition T, one a line
//	batches/queue.jsonl                  one batch a line
//	indexes/U/metadata.json              {"uid","primaryKey","createdAt","updatedAt"}
//	indexes/U/settings.json              all settings, secrets in clear
//	indexes/U/documents.jsonl            one document a line, with _vectors
//	experimental-features.json           a flag for each
//	webhooks.json                        {"webhooks":{UUID:{"url","headers"}}}
//	network.json                         {"self","leader","remotes","shards","version"}
//	chat-completions-settings/W.json     settings of a chat workspace, with its key in clear
//	dynamic-search-rules/N.json          a search rule, as the API shows it
//
// All three run as tasks while no batch changes an index, on views that are frozen when they begin, so that they show
// one state while tasks are accepted.
//
// # Writing
//
// Everything is streamed. An archive needs the size of an entry before its bytes, so lines of unknown length go to a
// spool first, which is a file once it is large (archive.go). A dump is written beside its place as NAME.part, and
// renamed when it is whole and synced; a note in work/ has the next task remove what a crash left. Before documents of
// a segment are copied, its checksums are verified.
//
// A snapshot has the files of a data directory as they are, VERSION first. No batch ends while it is made, segments do
// not change, and the frozen views keep the files that a merge replaces meanwhile.
//
// # Reading
//
// Imports run before any store is open, into an empty directory; after an error that directory is of no use, and the
// marker IMPORTING says so. An archive is not trusted: numbers of entries, names, lines and the ratio of decompression
// are bounded (unpack.go). Embedders that cannot be used are skipped, and their vectors stay in the documents. What a
// dump has for packages above this one is put into Place.Kept, from where they take it.
//
// # Salvage
//
// salvage.go writes a dump of what can be read in a damaged directory, and reports what is missing. It opens nothing
// for writing.
//
// # Caveats
//
//   - Dumps and snapshots contain secrets in clear, and are created with rights for the owner only.
//   - The names of kinds of tasks in dumps are a format of their own (tasktype.go): a new kind needs a row in contents.
//   - A dump has no counts of searches, no webhook cursors and no logs.
package dump
