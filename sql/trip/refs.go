package trip

// RefKind is the kind of named object that a job refers to.
type RefKind int8

// Kinds of references.
const (
	RefGroup    RefKind = 1
	RefCalendar RefKind = 2
	RefSecret   RefKind = 3 // the secret may have no row, if a node has it
	RefPing     RefKind = 4 // the URL that the job calls when a due time has ended; this reference has no name
	RefHandler  RefKind = 5
	RefUpstream RefKind = 6 // a job that the job follows; the definition says of which app
	RefManual   RefKind = 8 // nobody: the job has no schedule; it has no name
	RefDelay    RefKind = 7 // the job's own runs: its next due time comes with their ends; it has no name
)
