package task

// listed is a whole page.
type listed[T any] struct {
	Results      []T
	Total, Limit int
	From, Next   *uint32
}

func list[T any](p *Page[T], err error) (*listed[T], error) {
	if err != nil {
		return nil, err
	}
	l := &listed[T]{Results: []T{}, Total: p.Total, From: p.From, Next: p.Next}
	for item, err := range p.Results {
		if err != nil {
			return nil, err
		}
		l.Results = append(l.Results, item)
	}
	return l, nil
}

func (q *Queue) listTasks(f Filter) (*listed[*Task], error)    { return list(q.Tasks(f)) }
func (q *Queue) listBatches(f Filter) (*listed[*Batch], error) { return list(q.Batches(f)) }
