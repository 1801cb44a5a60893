package protocol

// Case is a search that must find something, or, with Breaks 0, nothing.
type Case struct {
	Name    string       // what is taken away, or what happens
	Without func(*Rules) // takes it away
	World   World        // where that is looked for
	Breaks  Violation    // what it breaks first
}

// Holes are what the code does not do today, each with a world in which that violates an invariant. Who mends one takes
// it out of here, and adds its rule to Defences.
func Holes() []Case {
	return []Case{
		{"an edit loses a due time that waits for its retry, after MySQL's clock was put back", func(r *Rules) { r.Withdraw = false },
			World{Dues: 1, Retry: true, People: askedEdit, Faults: 1, May: Faults{Back: true}}, NoRecord},
		{"a pause and a resume do, too", func(r *Rules) { r.Withdraw = false },
			World{Dues: 1, Retry: true, People: askedPause | askedResume, Faults: 1, May: Faults{Back: true}}, NoRecord},
		{"a due time whose start deadline passed while it waited is planned again by an edit after MySQL's clock was put back", func(r *Rules) { r.MarkExpired = false },
			World{Dues: 2, Overlap: Queue, Expires: true, People: askedEdit, Faults: 1, May: Faults{Back: true}}, EndedTwice},
		{"a run that was asked for by hand is no sibling after MySQL's clock was put back", func(r *Rules) { r.AllSiblings = false },
			World{Dues: 1, Idle: 1, Manual: true, People: askedRun, Faults: 1, May: Faults{Back: true}}, Overlaps},
		{"an orphan whose start arrives while its row is waited for is not started again", func(r *Rules) { r.Relisted = false },
			World{Dues: 1, Rerun: true, Faults: 2, May: Faults{Late: true, Kill: true}}, NotRerun},
		{"an attempt that fails before its node reads that it is to be killed is retried", func(r *Rules) { r.WishAtEnd = false },
			World{Dues: 1, Retry: true, People: askedKill}, NotKilled},
		{"an attempt that is to be killed and is given back is started", func(r *Rules) { r.WishAtFree = false },
			World{Dues: 1, People: askedKill, Faults: 1, May: Faults{Beats: true}}, NotKilled},
		{"so is one that is to be replaced", func(r *Rules) { r.WishAtFree = false },
			World{Dues: 2, Overlap: Replace, Faults: 1, May: Faults{Beats: true}}, NotReplaced},
		{"an attempt that is to be killed and is lost is started again", func(r *Rules) { r.WishAtLoss = false },
			World{Dues: 1, Rerun: true, People: askedKill, Faults: 1, May: Faults{Kill: true}}, NotKilled},
		{"a retry replaces the run of a later due time", func(r *Rules) { r.LaterOnly = false },
			World{Dues: 2, Overlap: Replace, Retry: true, Backoff: true}, NotReplaced},
		{"MySQL's clock is put back by as much as a spawn is late", func(r *Rules) { r.SteadyWindow = false },
			World{Dues: 1, People: askedPause, Faults: 1, May: Faults{Back: true}}, StartedAfter},
		{"a pause is answered by a node whose clock is before that of one that starts something", func(r *Rules) { r.SlowClocks = false },
			World{Dues: 1, Idle: 1, People: askedPause, Faults: 1, May: Faults{Ahead: true}}, StartedAfter},
		{"so is the pause of an app", func(r *Rules) { r.SlowClocks = false },
			World{Dues: 1, Idle: 1, People: askedAppPause, Faults: 1, May: Faults{Ahead: true}}, StartedAfter},
	}
}

// Limits are what is not promised: faults against which there is no defence, or none that would always be there.
func Limits() []Case {
	all := func(*Rules) {}
	return []Case{
		{"there is no guard (Config.NoGuard, or a system without), and a node is killed", func(r *Rules) { r.Guard = false },
			World{Dues: 1, Faults: 1, May: Faults{Kill: true}}, Outlived},
		{"there is no guard, and a node is stopped for longer than its lease", func(r *Rules) { r.Guard = false },
			World{Dues: 1, Faults: 1, May: Faults{Stop: true}}, Outlived | Unleased},
		{"a node and its guard are killed before there is another guard", all,
			World{Dues: 1, Faults: 2, May: Faults{Kill: true, Guard: true, BothDie: true}}, Outlived},
		{"a node and its guard are stopped together while the commands go on", all,
			World{Dues: 1, Faults: 1, May: Faults{BothStop: true}}, Outlived | Unleased},
		{"a node is stopped between its last look and the fork for longer than a spawn window", all,
			World{Dues: 1, People: askedPause, Faults: 1, May: Faults{Stop: true, Forks: true}}, StartedAfter},
	}
}
