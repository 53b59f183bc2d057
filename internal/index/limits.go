package index

// Bounds, each with its reason.
const (
	// maxFields is the number of field paths in an index: what a segment.FieldID can number.
	maxFields = 1<<16 - 1

	// maxPathBytes bounds the path of a field, and maxNamesBytes all paths of an index together. A key of a megabyte with a thousand
	// members would otherwise make a gigabyte of paths, which every manifest has.
	maxPathBytes  = 8 << 10
	maxNamesBytes = 16 << 20

	// DefaultSearchCacheBytes is for callers without a limit of their own. It suits a host with 1 GiB of memory: a server with varied
	// searches then stays far below half of that. The option of the server has another default, 128 MiB.
	DefaultSearchCacheBytes = 64 << 20

	// maxBuilderBytes bounds the buffers of one worker. With twice as much, an import of 500,000 package descriptions took 1 to 9% less
	// processor time and 4 to 20% more memory, or 26% less and 46% more where one worker left one segment.
	maxBuilderBytes = 64 << 20

	// A worker that has written earlySegments segments in a batch gathers laterShareParts quarters of its share for each of the next
	// ones, if the memory allows it. An import of 1.1 million short texts leaves 10 segments instead of 14, and needs a third more memory.
	earlySegments   = 2
	laterShareParts = 7 // quarters of the share

	// minBuilderBytes keeps a tiny memory limit from writing a segment for each document.
	minBuilderBytes = 1 << 20

	// chunkDocuments is the number of documents that a worker takes at once: enough that the queue's lock costs nothing,
	// few enough that all workers end together.
	chunkDocuments = 128

	// maxRunDocuments bounds how many documents in a row a worker is dealt.
	maxRunDocuments = 16 << 10

	// chunkEmbedded is chunkDocuments where vectors may have to be made: enough texts for all calls that a provider gets at
	// a time.
	chunkEmbedded = 512

	// gatherBytes bounds what a worker holds of documents, rendered texts and vectors while it waits for their embedder.
	gatherBytes = 8 << 20

	// chunkMoved is how many stored documents are checked together for whether a change of embedders concerns them.
	chunkMoved = 4096

	// A segment is recast if a batch changes at least minRecastRows of its documents, and one in recastShare, but none of their words. A
	// lower share would read and write many unchanged documents for few changed ones.
	minRecastRows = 256
	recastShare   = 8

	// recastSample is how many documents of a segment are compared first. If words of more than half of them change, the segment is
	// not recast: comparing all documents of a new import with the stored ones does not pay off.
	recastSample = 32

	// readAhead is how much of a payload a worker reads at once when documents follow each other, in bytes.
	readAhead = 256 << 10

	// largeBytes is from which size on a document is not read into memory, but is in a mapping of its payload or of a file of its own.
	largeBytes = 1 << 20

	// smallMergeBytes and mediumMergeBytes divide the lanes of the compactor: merges up to these sizes do not wait for larger ones,
	// so that segments of single-document batches or large ones never pile up behind a long merge.
	smallMergeBytes  = 32 << 20
	mediumMergeBytes = 512 << 20

	// manySegments is more than any import leaves that is not followed by another one soon. Above it, long merges run at full speed.
	manySegments = 24
)
