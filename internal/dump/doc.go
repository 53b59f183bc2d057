// Package dump owns exports and imports of whole instances: dumps, which are portable and in the format V6 that other engines of this
// API read and write; snapshots, which are svc's own files; and exports to another instance.
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
// All three run as tasks while no batch changes an index. They use views that are frozen when they start, so they show one state
// while new tasks are accepted.
//
// # Writing
//
// Everything is streamed. An archive needs the size of an entry before its bytes, so lines of unknown length first go to a spool,
// which is a file once it is large (archive.go). A dump is written beside its place as NAME.part, and renamed when it is complete and
// synced. After a crash, a note in work/ makes the next task remove the partial file. Before documents of a segment are copied, its
// checksums are verified.
//
// A snapshot has the files of a data directory as they are, VERSION first. No batch ends while it is made, segments do not change,
// and the frozen views keep files that merges replace meanwhile.
//
// # Reading
//
// Imports run before any store is open, into an empty directory. After an error that directory is unusable, which the marker
// IMPORTING shows. An archive is not trusted: numbers of entries, names, lines and the ratio of decompression are bounded
// (unpack.go). Embedders that cannot be used are skipped, and their vectors stay in the documents. Entries for packages above this
// one go to Place.Kept, where those packages take them from.
//
// # Salvage
//
// salvage.go writes a dump of everything readable in a damaged directory, and reports what is missing. It opens nothing for writing.
//
// # Caveats
//
//   - Dumps and snapshots contain secrets in clear, and are created with rights for the owner only.
//   - The names of kinds of tasks in dumps are a format of their own (tasktype.go): a new kind needs a row in contents.
//   - A dump has no counts of searches, no webhook cursors and no logs.
package dump
