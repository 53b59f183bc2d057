package rank

// effort estimates the cost of work in nanoseconds on one core of a server, with its files in memory. Access paths are compared by
// effort, so only ratios count. They are chosen such that earlier, measured thresholds of rules stay the same; the nanoseconds
// themselves are not measured.
type effort int64

// How long each kind of work takes.
const (
	atHand      effort = 0    // sets that are there before the rule asks: the query found them, or all documents cost the same
	judgeRow    effort = 1920 // a row, by positions: for all rules that look at them together
	classifyRow effort = 640  // a row among many, for one rule
	readByte    effort = 30   // of positions
	compareRow  effort = 20   // a row, by the levels and words that are known of it
	filterRow   effort = 80   // a row that a filter looks at
	scanRow     effort = 10   // a row of a segment that a filter is evaluated for
	measureRow  effort = 100  // a row's point; and a point that a ring is searched for
	lookUpValue effort = 50   // a row's value
	walkValue   effort = 200  // from a value to the next one, and its rows
	scoreRow    effort = 100  // a row, by score functions
)

// Paths that start with work for the whole bucket pay off from these numbers of rows on. (Variables, so that tests can lower them.)
var (
	classRows = 48  // classes that are kept: sets to intersect, instead of judging so many rows
	listRows  = 512 // a pruner, or a walk over values, beside judging so many rows
)

// ofClasses is the effort of splitting by cached classes.
func ofClasses() effort { return effort(classRows) * judgeRow }

// ofPruner is the effort of finding the first documents of a bucket.
func ofPruner() effort { return effort(listRows+1) * judgeRow }

// Further choices based on efforts. (Variables, so that tests can change them.)
var (
	fewOf      = int(filterRow / scanRow) // where fewer than one row of so many is found in a segment, a filter looks at each row that is found
	startBytes = int(judgeRow / readByte) // bytes of positions that are read as soon as a row is judged
)
