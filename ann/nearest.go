package ann

import (
	"cmp"
	"slices"
)

// nearest keeps the best candidates: a heap with the worst on top. Equal scores prefer the lower row.
type nearest struct {
	keep int
	heap []Neighbour
}

func worse(a, b Neighbour) bool {
	return a.Score < b.Score || a.Score == b.Score && a.Row > b.Row
}

// add keeps a row if it is among the best so far. The worst one is at the top of the heap.
func (n *nearest) add(row uint32, score int32) {
	x := Neighbour{row, score}
	if len(n.heap) < n.keep {
		n.heap = append(n.heap, x)
		for i := len(n.heap) - 1; i > 0; {
			parent := (i - 1) / 2
			if !worse(n.heap[i], n.heap[parent]) {
				break
			}
			n.heap[i], n.heap[parent] = n.heap[parent], n.heap[i]
			i = parent
		}
		return
	}
	if !worse(n.heap[0], x) {
		return
	}
	n.heap[0] = x
	for i := 0; ; {
		child := 2*i + 1
		if child >= len(n.heap) {
			return
		}
		if child+1 < len(n.heap) && worse(n.heap[child+1], n.heap[child]) {
			child++
		}
		if !worse(n.heap[child], n.heap[i]) {
			return
		}
		n.heap[i], n.heap[child] = n.heap[child], n.heap[i]
		i = child
	}
}

// sorted returns the candidates, best first. It destroys the heap.
func (n *nearest) sorted() []Neighbour {
	slices.SortFunc(n.heap, func(a, b Neighbour) int {
		return cmp.Or(cmp.Compare(b.Score, a.Score), cmp.Compare(a.Row, b.Row))
	})
	return n.heap
}
