package problem

// Warnings: the definition is allowed, but hardly intended.
var (
	NoDueTimeAhead  = say("no_due_time_ahead", "no due time lies ahead")
	FirstDueFar     = say("first_due_far", "the first due time is %s away, on %s")
	AtIsPast        = say("at_is_past", "at: %s was %s ago, and this job starts at most %s late (%s), so it is not run")
	NeverStartsLate = say("never_starts_late", "misfire.max_age, %s, is shorter than the %s after which a due time is a misfire: none is ever started late")
	QueueNeverFills = say("queue_never_fills", "what waits in the queue is missed after %s (start_deadline), before the next due time comes: the queue never fills")
	NoNodeMatches   = say("no_node_matches", "no node matches %s now: due times wait for one, and are missed when they are too old")
	NodesAreDrained = say("nodes_are_drained", "all nodes that match %s are cordoned or draining now: due times wait, and are missed when they are too old")

	LongerThanGapSkip     = say("longer_than_gap_skip", "it may run for %s (timeout), but is due again after %s: due times are skipped meanwhile (overlap skip)")
	LongerThanGapQueue    = say("longer_than_gap_queue", "it may run for %s (timeout), but is due again after %s: due times wait, and are skipped once %d do (overlap queue)")
	LongerThanGapReplace  = say("longer_than_gap_replace", "it may run for %s (timeout), but is due again after %s: the one before is killed (overlap replace)")
	RetriesMeetDueSkip    = say("retries_meet_due_skip", "its retries wait for %s in all, but it is due again after %s: attempts of several due times meet, and due times are skipped meanwhile (overlap skip)")
	RetriesMeetDueQueue   = say("retries_meet_due_queue", "its retries wait for %s in all, but it is due again after %s: attempts of several due times meet, and due times wait, and are skipped once %d do (overlap queue)")
	RetriesMeetDueReplace = say("retries_meet_due_replace", "its retries wait for %s in all, but it is due again after %s: attempts of several due times meet, and the one before is killed (overlap replace)")
)
