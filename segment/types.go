package segment

// Row numbers a document inside one segment, from 0.
type Row uint32

// DocID numbers a document inside its index. A document keeps it for life, whatever segment it moves to. It is the last tie-break of
// ranking.
type DocID uint32

// FieldID numbers a field (a full dotted path) inside an index.
type FieldID uint16
