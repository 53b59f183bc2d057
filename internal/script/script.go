package script

// Limits of a script. Together they keep the time and memory for its translation proportional to its size.
const (
	maxSource    = 64 << 10 // bytes
	maxDepth     = 128      // levels of expressions and blocks
	maxOperators = 512      // in a row, without parentheses
	maxLinks     = 64       // of a chain such as a.b[0].c()
	maxParams    = 64       // of a function
)

type node interface{}

type (
	unitLit  struct{}
	boolLit  struct{ value bool }
	intLit   struct{ digits string }
	floatLit struct{ text string }
	strLit   struct{ value string }
	template struct{ parts []node } // strings and blocks

	variable struct{ name string }
	this     struct{}
	arrayLit struct{ items []node }
	mapLit   struct {
		keys   []string
		values []node
	}
	closure struct {
		params []string
		body   statement
	}
	unary struct {
		op      string
		operand node
	}
	// binary is any operator with two operands, && || ?? in .. included.
	binary struct {
		op          string
		left, right node
	}
	call struct {
		name string
		args []node
	}
	// property, index and method are the links of a chain. Optional ones (?. and ?[) end the chain with () if their left side is ().
	property struct {
		of       node
		name     string
		optional bool
	}
	index struct {
		of, at   node
		optional bool
	}
	method struct {
		of       node
		name     string
		args     []node
		optional bool
	}

	statement struct {
		node
		line int
	}
	block struct {
		list  []statement
		value bool // the last of list is the block's value
	}
	ifNode struct {
		cond node
		then *block
		els  node // *block, *ifNode or nil
	}
	switchCase struct {
		values []node // literals and ranges; nil: any
		guard  node   // or nil
		body   statement
	}
	switchNode struct {
		subject node
		cases   []switchCase
	}
	// loop is loop, while and do: cond is nil for loop.
	loop struct {
		line  int
		cond  node
		until bool // loop while cond is false
		after bool // cond stands after the body
		body  *block
	}
	forNode struct {
		line          int
		item, counter string // counter may be ""
		in            node
		body          *block
	}
	let struct {
		name     string
		value    node // or nil
		constant bool
	}
	assign struct {
		op     string // "" or the operator before =
		target node
		value  node
	}
	jump struct {
		kind  string // break, continue, return or throw
		value node   // or nil
	}
	tryNode struct {
		body  *block
		name  string // of the error, or ""
		catch *block
	}
	function struct {
		line   int
		name   string
		params []string
		body   *block
	}
)
