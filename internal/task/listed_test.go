package task

// listed is one page of a list.
type listed[T any] struct {
	Results []T     `json:"results"`
	Total   int     `json:"total"`
	Limit   int     `json:"limit"`
	From    *uint32 `json:"from"`
	Next    *uint32 `json:"next"`
}

func list[T any](limit int, p *Page[T], err error) (*listed[T], error) {
	if err != nil {
		return nil, err
	}
	l := &listed[T]{Results: []T{}, Total: p.Total, Limit: limit, From: p.From, Next: p.Next}
	for item, err := range p.Results {
		if err != nil {
			return nil, err
		}
		l.Results = append(l.Results, item)
	}
	return l, nil
}

func (q *Queue) listTasks(f Filter) (*listed[*Task], error) {
	p, err := q.Tasks(f)
	return list(f.Limit, p, err)
}

func (q *Queue) listBatches(f Filter) (*listed[*Batch], error) {
	p, err := q.Batches(f)
	return list(f.Limit, p, err)
}
