// Package standby keeps a data directory that holds the same as another one. It makes the changes there that a log was
// told of (package commit), one after the other, and fetches the files that they name.
//
// Either nobody has the directory open, or its stores follow: then they make the changes of their files, and what they
// show changes with them. A program that is started on the directory continues as one that was killed after the last
// change: unfinished batches run again, and applied ones are recognised.
//
// # Invariants
//
//   - A file that a change names is copied under a temporary name, synced, renamed, and its directory synced, before
//     the change is made. So whatever is named is there, at each moment.
//   - Apply is idempotent. After an error or a crash the caller repeats the last change before the next one.
//   - Names in a change are checked to be below the data directory: they come from another machine.
//   - A file of the same name is not always the same file. Numbers of segments and bases are used again if the first
//     file was never named, so a file is kept only if the manifest, or CATALOG, that is here names it. Payloads have
//     random names: one that is here is kept.
//   - What a manifest or CATALOG no longer names is removed with the change.
package standby
