package trip

// RefKind says to what kind of named object a job refers.
type RefKind int8

// The kinds of what jobs refer to.
const (
	RefGroup    RefKind = 1
	RefCalendar RefKind = 2
	RefSecret   RefKind = 3 // also one that is not there: a node may have it
	RefPing     RefKind = 4 // to what it calls when a due time has ended; it has no name here
	RefHandler  RefKind = 5
)
