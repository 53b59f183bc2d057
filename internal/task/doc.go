// Package task owns the task queue: durable tasks and batches in one bbolt file, payload files beside it, the
// scheduler, cancelation, deletion and lists.
//
// # The life of a task
//
// Callers pass tasks to the committer, a goroutine that stores all waiting tasks in one transaction (group commit). The payload of an
// addition is a file. It is synced before the task that names it is stored, unless a log keeps its content (commit.Keeper). A task is
// stored as enqueued until its batch ends: only memory and the journal know that it is processing. The scheduler takes the next
// batch. A goroutine writes it to the journal, runs it on the indexes, and stores its end in one transaction. So all tasks of a batch
// end at once. A cancellation or deletion of very many tasks takes several transactions, each of which leaves a valid queue.
//
// # Batches
//
// The scheduler grows a batch from the first waiting task of an index while the table in autobatch.go allows. Tasks of an index run
// in the order of their uids, except for the kinds that go first: cancellations, deletions of tasks, compactions, exports, snapshots
// and dumps (priorities in schedule.go). The plan of a batch is decided once and stored in the journal. So a run after a crash does
// the same work, whatever the half-changed indexes would suggest.
//
// # Failures
//
// If the disk is full, a file of an index damaged or an embedder unreachable, no accepted write fails. The tasks of that index wait
// and are retried after pauses of 1 to 30 seconds (parking.go). Other indexes continue. Only a damaged payload fails its task.
//
// After a crash, the batches in the journal run again with the same uids. An index that has such a batch in its manifest does not
// apply it again. If a batch has changed no index, its tasks run one by one, so that only the task that ends the process pays for it
// (apart.go). A task fails after it was running at maxCrashes ends of the process. A process that still lives has not ended: it lost
// the batch to another one (RunIn), which counts up to maxLosses. A task that also runs on other instances of a network has
// maxSharedCrashes (journal.go). These limits never fail a batch that has changed an index, nor a change of the topology.
//
// # Memory
//
// Filters, lists and statistics read the roster, a copy in memory of the fixed part of every record: sets of uids by
// status, kind and index, and columns of times. It is built at the start and never stored. A transaction records what
// it changes, before and after (effects.go); after the commit one function applies these effects to the roster, and
// another to the outbox. A queue that follows another program gets the same effects from the changes of the file
// (follow.go). A build with the tag invariants compares memory and file after each transaction.
//
// # Files
//
// queue.db has three buckets (store.go): tasks and batches by uid, and the names of indexes by number. Three more hold
// the writes that other instances of a network have not got (outbox.go). A record has a fixed head, so that the roster
// is built without decoding contents (record.go). The file "running" is the journal, an append-only list whose last
// whole entry is valid (journal.go). Payloads are in the directory payloads/, and a start removes those that no task
// names. Three more goroutines work beside it: one compacts the file when much of it is free, one removes the payloads
// of many tasks that ended together, and one makes tasks that delete expired documents (expire.go).
//
// # Locks
//
// Every transaction is made with Queue.writing held. Readers share a lock on the roster. Lock order: Queue.catalog,
// Queue.compacting, Queue.writing, roster.mu, outbox.mu, bbolt's locks for a read transaction, progress.mu, watches.mu.
// journal.mu and Queue.telling are taken with Queue.catalog or with none, and journal.mu by a queue that follows with
// Queue.writing. docs/architecture/ownership.md says what each is held for. roster.mu and those behind it are not held
// during a sync, unless an open file cannot be replaced: see Queue.unread.
package task
