package rank

// effort estimates the cost of work in nanoseconds on one core of a server, with its files in memory. Access paths are compared by
// effort, so only ratios count. They are chosen such that earlier, measured thresholds of rules stay the same; the nanoseconds
// themselves are not measured.
type effort int64

// How long each kind of work takes.
const (
	atHand      effort = 0    // sets that exist already: the query found them, or all documents have the same cost
	judgeRow    effort = 1920 // a row, by positions: for all rules that read them together
	classifyRow effort = 640  // a row among many, for one rule
	readByte    effort = 30   // of positions
	compareRow  effort = 20   // a row, by the known levels and words
	filterRow   effort = 80   // a row that a filter looks at
	scanRow     effort = 10   // a row of a segment for which a filter is evaluated
	measureRow  effort = 100  // the point of a row, or a point visited by a ring search
	lookUpValue effort = 50   // a row's value
	selectRow   effort = 20   // the same, without sorting more rows than are needed
	walkValue   effort = 200  // from a value to the next one, and its rows
	scoreRow    effort = 100  // a row, by score functions
)

// Paths that start with work for the whole bucket pay off from these numbers of rows on. (Variables, so that tests can lower them.)
var (
	classRows = 48  // intersecting cached classes, instead of judging each row
	listRows  = 512 // a pruner, or a walk over values, instead of judging each row
)

// ofClasses is the effort of splitting by cached classes.
func ofClasses() effort { return effort(classRows) * judgeRow }

// ofPruner is the effort of finding the first documents of a bucket.
func ofPruner() effort { return effort(listRows+1) * judgeRow }

// Further choices based on efforts. (Variables, so that tests can change them.)
var (
	fewOf      = int(filterRow / scanRow) // if the query finds fewer than one in so many rows of a segment, the filter tests each found row
	startBytes = int(judgeRow / readByte) // bytes of positions that can be read in the time of judging a row
)
