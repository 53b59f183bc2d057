// Package commit reports every durable change of a data directory to a log. There are six kinds of changes, one for
// each commit point of svc.
//
// The data directory is the result of the last change to each of its files, and every prefix of the sequence of changes
// is a valid state. If another directory applies the same changes in the same order, it has the same content. Groups
// and continuous backups rely on this.
//
// # Effects, not commands
//
// A change carries effects: the new content of a file, or the changed pairs of a bbolt file. So clocks, random names
// and limits are decided once, where the change is made, and applying it needs no engine. Files that never change, such
// as segments and payloads, are not part of a change. The change names those that count from then on, and they are
// synced before. Making a change twice is the same as making it once, so a log needs to know only about where it
// stopped.
//
// # The log
//
// The log belongs to the file system that the stores of a directory write to: see On. Stores call Do at each commit
// point, whether there is a log or not. Without one, Do only calls the function that writes, and does not build the
// change. A log decides when the function runs: that of a writer of a group runs it and appends the change afterwards,
// that of a voter has the group agree first.
//
// # Caveats
//
//   - A commit point that does not go through Do is invisible to readers and backups. internal/lint refuses code that
//     syncs or renames elsewhere.
//   - Changes of one file come one after the other; the store's own lock sees to that. Those of different files may be
//     made at the same time.
//   - Do may wait for other machines, and the store holds its locks meanwhile. Readers must not need them.
//   - After an error of Do the file may have the change or not. The next change of the same file ends that doubt.
package commit
