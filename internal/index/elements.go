package index

import (
	"svc/internal/document"
)

// elementWorker is a worker that also visits objects, for an index with elements.
type elementWorker struct{ *worker }

var (
	_ document.KeyVisitor    = elementWorker{}
	_ document.Spooler       = elementWorker{}
	_ document.ObjectVisitor = elementWorker{}
)

// Enter implements document.ObjectVisitor.
func (k elementWorker) Enter(field, at, arrays int) {
	f := &k.fields[field]
	if f.scope {
		k.builder.EnterElement(f.id, arrays)
	}
	if f.place {
		k.placeAt, k.placeArrays = at, arrays
	}
}

// Leave implements document.ObjectVisitor. An element with an invalid place gets no point; its document is not refused.
func (k elementWorker) Leave(field, at int) {
	f := &k.fields[field]
	if f.scope {
		k.builder.LeaveElement()
	}
	if f.place {
		if p, ok, _ := parsePoint(k.doc[k.placeAt:at]); ok {
			k.builder.ElementPoint(k.placeArrays, p.lat, p.lng)
		}
	}
}

// NullIn implements document.ObjectVisitor.
func (k elementWorker) NullIn(field, arrays int) {
	if f := &k.fields[field]; f.elements {
		k.builder.ElementNull(f.id, arrays)
	}
}

// EmptyIn implements document.ObjectVisitor.
func (k elementWorker) EmptyIn(field, arrays int) {
	if f := &k.fields[field]; f.elements {
		k.builder.ElementEmpty(f.id, arrays)
	}
}
