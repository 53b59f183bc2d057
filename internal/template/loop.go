package template

import (
	"fmt"
	"math"
	"slices"
	"strconv"
)

// loop is for and tablerow.
type loop struct {
	line                int
	table               bool
	name                string
	over                expression // nil for a range
	from, to            expression
	limit, offset, cols expression // nil when not given
	reversed            bool
	body, otherwise     []node
}

func readFor(p *parser, in *phrase, line int) (node, error) {
	n := &loop{line: line}
	if err := n.readHead(in); err != nil {
		return nil, err
	}
	body, end, err := p.block("else", "endfor")
	if err != nil {
		return nil, err
	}
	n.body = body
	if end.name == "else" {
		if n.otherwise, end, err = p.block("endfor"); err != nil {
			return nil, err
		}
	}
	return n, end.args.end()
}

func readTableRow(p *parser, in *phrase, line int) (node, error) {
	n := &loop{line: line, table: true}
	if err := n.readHead(in); err != nil {
		return nil, err
	}
	body, end, err := p.block("endtablerow")
	if err != nil {
		return nil, err
	}
	n.body = body
	return n, end.args.end()
}

// readHead reads the rest of the tag after its name: the variable, the collection, and the parameters.
func (n *loop) readHead(in *phrase) (err error) {
	if n.name, err = in.name(); err != nil {
		return err
	}
	if !in.word("in") {
		return fmt.Errorf("missing `in` after %s", n.name)
	}
	if in.sign("(") {
		if n.from, err = in.value(); err != nil {
			return err
		}
		if !in.sign("..") {
			return fmt.Errorf("a range has the form (1..5)")
		}
		if n.to, err = in.value(); err != nil {
			return err
		}
		if !in.sign(")") {
			return fmt.Errorf("a range ends with )")
		}
	} else if n.over, err = in.value(); err != nil {
		return err
	}
	for {
		in.sign(",")
		word, ok := in.peek().text, in.peek().kind == tokenName
		if !ok {
			return in.end()
		}
		in.next()
		if word == "reversed" && !n.table {
			n.reversed = true
			continue
		}
		var dst *expression
		switch {
		case word == "limit":
			dst = &n.limit
		case word == "offset":
			dst = &n.offset
		case word == "cols" && n.table:
			dst = &n.cols
		default:
			return fmt.Errorf("a loop cannot have `%s`", word)
		}
		if !in.sign(":") {
			return fmt.Errorf("missing `:` after %s", word)
		}
		if *dst, err = in.value(); err != nil {
			return err
		}
	}
}

// number evaluates an expression that must be a whole number.
func (r *renderer) number(e expression, what string) (int64, error) {
	v, err := e.eval(r)
	if err != nil {
		return 0, err
	}
	n, ok := r.whole(v)
	if !ok {
		return 0, r.fail("%s must be a whole number, but is `%s`", what, r.brief(v))
	}
	return n, nil
}

// items returns how many items the loop runs over, and how to get one.
func (n *loop) items(r *renderer) (count int64, item func(i int64) value, err error) {
	if n.over == nil {
		from, err := r.number(n.from, "the start of a range")
		if err != nil {
			return 0, nil, err
		}
		to, err := r.number(n.to, "the end of a range")
		if err != nil {
			return 0, nil, err
		}
		if to < from {
			return 0, nil, nil
		}
		if count = to - from + 1; count <= 0 { // beyond 64 bits
			return 0, nil, r.work(math.MaxInt)
		}
		return count, func(i int64) value { return integer(from + i) }, nil
	}
	v, err := n.over.eval(r)
	if err != nil {
		return 0, nil, err
	}
	switch v.kind {
	case kindArray:
		return int64(len(v.list)), func(i int64) value { return v.item(r.meter, int(i)) }, nil
	case kindObject:
		return int64(len(v.object.members)), func(i int64) value {
			return array(append(r.makeList(2), text(v.object.members[i].name), v.object.at(r.meter, int(i))))
		}, nil
	case kindNil, kindEmpty, kindBlank:
		return 0, nil, nil
	}
	return 0, nil, r.fail("a loop needs an array, an object or a range, not `%s`", r.brief(v))
}

// render iterates over the items. Limit and offset count from the first item, and reversed reverses the remaining items.
func (n *loop) render(r *renderer) error {
	r.line = n.line
	count, item, err := n.items(r)
	if err != nil {
		return err
	}
	first := int64(0)
	if n.offset != nil {
		offset, err := r.number(n.offset, "offset")
		if err != nil {
			return err
		}
		first = min(max(offset, 0), count)
		count -= first
	}
	if n.limit != nil {
		limit, err := r.number(n.limit, "limit")
		if err != nil {
			return err
		}
		count = min(count, max(limit, 0))
	}
	cols := count
	if n.cols != nil {
		if cols, err = r.number(n.cols, "cols"); err != nil {
			return err
		}
		if cols < 1 {
			return r.fail("cols must be at least 1")
		}
	}
	if count == 0 {
		return r.block(n.otherwise)
	}
	outer, nested := r.lookup("forloop")
	scope := r.makeObject(2)
	state := r.makeProgress(n.table)
	if r.err != nil {
		return r.err
	}
	if n.table {
		scope.set("tablerowloop", value{kind: kindObject, object: state.object})
	} else {
		scope.set("forloop", value{kind: kindObject, object: state.object})
		if nested {
			state.set("parentloop", outer)
		}
	}
	r.scopes = append(r.scopes, scope)
	defer func() { r.scopes = r.scopes[:len(r.scopes)-1] }()
	for i := range count {
		if err := r.work(4); err != nil {
			return err
		}
		at := first + i
		if n.reversed {
			at = first + count - 1 - i
		}
		scope.set(n.name, item(at))
		state.round(i, count, cols)
		if n.table {
			if err := r.write(cellStart(i, cols)); err != nil {
				return err
			}
		}
		err := r.block(n.body)
		if err != nil && err != errContinue && err != errBreak {
			return err
		}
		if n.table {
			end := "</td>"
			if (i+1)%cols == 0 || i+1 == count {
				end = "</td></tr>"
			}
			if err := r.write(end); err != nil {
				return err
			}
		}
		if err == errBreak {
			return nil
		}
	}
	return nil
}

// progress is the content of forloop or tablerowloop. It is one object, which changes in each round.
type progress struct{ *object }

var (
	loopMembers  = []string{"length", "index", "index0", "rindex", "rindex0", "first", "last"}
	tableMembers = slices.Concat(loopMembers, []string{"col", "col0", "col_first", "col_last", "row"})
)

// makeProgress makes the object forloop or tablerowloop of a loop. Its members change with each round.
func (m *meter) makeProgress(table bool) progress {
	names := loopMembers
	if table {
		names = tableMembers
	}
	o := m.makeObject(len(names) + 1) // parentloop
	o.live = true
	for _, name := range names {
		o.members = append(o.members, member{name: name})
	}
	return progress{o}
}

// round records that round i of count runs, in a table with cols columns.
func (p progress) round(i, count, cols int64) {
	values := []value{integer(count), integer(i + 1), integer(i), integer(count - i), integer(count - i - 1), boolean(i == 0), boolean(i == count-1),
		integer(i%cols + 1), integer(i % cols), boolean(i%cols == 0), boolean((i+1)%cols == 0 || i+1 == count), integer(i/cols + 1)}
	for k := range min(len(p.members), len(values)) {
		if p.members[k].name == "parentloop" {
			break
		}
		p.members[k].value = values[k]
	}
}

func cellStart(i, cols int64) string {
	start := ""
	if i%cols == 0 {
		start = `<tr class="row` + strconv.FormatInt(i/cols+1, 10) + `">`
	}
	return start + `<td class="col` + strconv.FormatInt(i%cols+1, 10) + `">`
}
