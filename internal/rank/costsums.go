package rank

// sums finds the documents of a bucket by the sum of the costs of several classes.
type sums struct {
	within rows
	items  []*costClasses
	memo   []map[int]rows // memo[i]: documents by the sum of their first i items
}

func newSums(within rows, items []*costClasses) *sums {
	return &sums{within: within, items: items, memo: make([]map[int]rows, len(items)+1)}
}

// most is the largest sum there can be.
func (t *sums) most() int {
	n := 0
	for _, c := range t.items {
		last := c.rest
		if k := len(c.costs); k > 0 {
			last = max(last, c.costs[k-1])
		}
		n += last
	}
	return n
}

// at returns the documents with a sum; nil for none.
func (t *sums) at(sum int) rows { return t.first(len(t.items), sum) }

// first returns the rows whose first i items have a total cost. Results are cached, because sums share parts.
func (t *sums) first(i, sum int) rows {
	if i == 0 {
		if sum == 0 {
			return t.within
		}
		return nil
	}
	if r, ok := t.memo[i][sum]; ok {
		return r
	}
	c := t.items[i-1]
	var out rows
	add := func(r rows) {
		switch {
		case r.isEmpty():
		case out == nil:
			out = r
		default:
			out = out.or(r)
		}
	}
	for k, cost := range c.costs {
		if cost > sum {
			break
		}
		if before := t.first(i-1, sum-cost); !before.isEmpty() {
			add(c.among(k, before))
		}
	}
	if c.rest >= 0 && c.rest <= sum {
		if before := t.first(i-1, sum-c.rest); before != nil {
			add(before.andNot(c.covered))
		}
	}
	if t.memo[i] == nil {
		t.memo[i] = map[int]rows{}
	}
	t.memo[i][sum] = out
	return out
}

// bySums splits a bucket by the sum of the costs of items plus base. ranks is the number of possible costs.
func bySums(b *bucket, items []*costClasses, base, ranks int) split {
	t := newSums(b.rows, items)
	left, most, next := b.n, t.most(), 0
	return split{costSums, func() (*bucket, verdict) {
		for left > 0 && next <= most {
			sum := next
			next++
			r := t.at(sum)
			if r == nil {
				continue
			}
			sub := b.part(r)
			sub.narrowed = true
			left -= sub.n
			return sub, verdict{cost: uint64(base + sum), rank: uint64(ranks - base - sum), ranks: uint64(ranks)}
		}
		return nil, verdict{}
	}}
}
