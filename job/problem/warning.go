package problem

// Warnings: the definition is allowed, but hardly intended.
var (
	NoDueTimeAhead  = say("no_due_time_ahead", "the job has no due time in the future")
	FirstDueFar     = say("first_due_far", "the first due time is %s away, on %s")
	AtIsPast        = say("at_is_past", "at: %s was %s ago, and this job starts at most %s late (%s), so it will not run")
	NeverStartsLate = say("never_starts_late", "misfire.max_age, %s, is shorter than the %s after which a due time is a misfire, so no due time ever starts late")
	QueueNeverFills = say("queue_never_fills", "a queued due time is missed after %s (start_deadline), before the next one is due, so the queue never fills")
	NoNodeMatches   = say("no_node_matches", "no node matches %s now: due times wait for one, and are missed when they become too old")
	NodeRefuses     = say("node_refuses", "node %s would refuse its runs: %s")
	NodesAreDrained = say("nodes_are_drained", "all nodes that match %s are cordoned or draining now: due times wait, and are missed when they become too old")

	LongerThanGapSkip     = say("longer_than_gap_skip", "the job may run for %s (timeout), but is due again after %s: due times in between are skipped (overlap skip)")
	LongerThanGapQueue    = say("longer_than_gap_queue", "the job may run for %s (timeout), but is due again after %s: due times wait, and are skipped when %d already wait (overlap queue)")
	LongerThanGapReplace  = say("longer_than_gap_replace", "the job may run for %s (timeout), but is due again after %s: the earlier run is then killed (overlap replace)")
	RetriesMeetDueSkip    = say("retries_meet_due_skip", "the retries wait up to %s in total, but the job is due again after %s: due times in between are skipped (overlap skip)")
	RetriesMeetDueQueue   = say("retries_meet_due_queue", "the retries wait up to %s in total, but the job is due again after %s: due times wait, and are skipped when %d already wait (overlap queue)")
	RetriesMeetDueReplace = say("retries_meet_due_replace", "the retries wait up to %s in total, but the job is due again after %s: the earlier run is then killed (overlap replace)")
)
