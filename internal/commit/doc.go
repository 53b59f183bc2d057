// Package commit reports every durable change of a data directory to a log. There are six kinds of changes, one for
// each commit point of svc.
//
// The data directory is the result of the last change to each of its files, and every prefix of the sequence of changes
// is a valid state. If another directory applies the same changes in the same order, it has the same content. Groups
// and continuous backups rely on this.
//
// # Effects, not commands
//
// A change carries effects: the new content of a file, or the changed pairs of a bbolt file. So clocks, random names and limits are
// decided once, where the change is made, and applying it needs no engine. Files that never change, such as segments and payloads,
// are not part of a change: the change names new ones, which are synced before. A change is idempotent, so a log only needs to know
// where it stopped.
//
// # The log
//
// The log belongs to the file system that the stores of a directory write to: see On. Stores call Do at each commit point, with or
// without a log. Without one, Do only calls the function that writes, and does not build the change. A log decides when the function
// runs. The log of a group's writer runs it and then appends the change. The log of a voter first has the group agree.
//
// # Caveats
//
//   - A commit point that does not go through Do is invisible to readers and backups. internal/lint refuses code that
//     syncs or renames elsewhere.
//   - The lock of a store serializes the changes of its file. Changes of different files may happen at the same time.
//   - Do may wait for other machines, and the store holds its locks meanwhile. Readers must not need them.
//   - After an error of Do the file may have the change or not. The next change of the same file ends that doubt.
package commit
