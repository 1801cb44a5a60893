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
		{"a pause, answered by a node that came up after MySQL's clock was put on", func(r *Rules) { r.NewClocks = false },
			World{Dues: 1, Idle: 1, People: askedPause, Faults: 2, May: Faults{Kill: true, Ahead: true}}, StartedAfter},
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
