// Package standby keeps a data directory in step with another one. It applies the changes that a log recorded (package commit), one
// after the other, and fetches the files that they name.
//
// The directory may be closed, or open in stores that follow. Stores that follow apply the changes of their own files, so what they
// show changes at the same time. A program that starts on the directory continues as if it had been killed after the last change: it
// runs unfinished batches again and recognises applied ones.
//
// # Invariants
//
//   - A file that a change names is copied under a temporary name, synced and renamed, and its directory is synced, before the change
//     is made. So every named file exists at each moment.
//   - Apply is idempotent. After an error or a crash the caller repeats the last change before the next one.
//   - Names in a change come from another machine. They are checked to be below the data directory.
//   - A file of the same name is not always the same file. Numbers of segments and bases are reused if the first file was never
//     named. So a file is kept only if the local manifest or CATALOG names it. Payloads have random names, so an existing payload is
//     always kept.
//   - What a manifest or CATALOG no longer names is removed with the change.
package standby
