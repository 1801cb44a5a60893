package trip

// RefKind is the kind of named object that a job refers to.
type RefKind int8

// Kinds of references.
const (
	RefGroup    RefKind = 1
	RefCalendar RefKind = 2
	RefSecret   RefKind = 3 // the secret may have no row: a node can have it
	RefPing     RefKind = 4 // the URL that the job calls when a due time has ended; without a name
	RefHandler  RefKind = 5
	RefUpstream RefKind = 6 // a job that the job follows; its app is only in the definition
	RefDelay    RefKind = 7 // the job's own runs: their ends give the next due time; without a name
	RefManual   RefKind = 8 // nothing: the job has no schedule; without a name
)
