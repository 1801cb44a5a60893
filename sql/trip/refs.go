package trip

// RefKind is the kind of named object that a job refers to.
type RefKind int8

// Kinds of references.
const (
	RefGroup    RefKind = 1
	RefCalendar RefKind = 2
	RefSecret   RefKind = 3 // even to a secret without a row: a node may have it
	RefPing     RefKind = 4 // to the URL that it calls when a due time has ended; it has no name here
	RefHandler  RefKind = 5
)
