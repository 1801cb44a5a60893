package protocol

// Rules are the defences of the protocol, one by one. Each can be taken away; the tests say what breaks then.
type Rules struct {
	// Planning and editing.
	PlanLock  bool // a planner reads the cursor under the job's lock, in the transaction that moves it
	PlanGuard bool // it moves the cursor only from where it has read it
	LastDue   bool // planning anew begins after last_due, which only grows
	CatchUp   bool // what has come due and was not planned is planned before an edit, pause or delete

	// Claiming and starting.
	ClaimGuard  bool // a claim takes only what is idle when its row is locked
	StartGuard  bool // a start moves only what is prepared at its launch when its row is locked
	StartLock   bool // a start holds the job's row from the look at the siblings to the commit
	InBatch     bool // those earlier in the same transaction are among the siblings
	AnyoneLate  bool // what is late is claimed by anybody, whatever buckets it prefers
	Transaction bool // a write that is late still holds its row locks: it is a COMMIT, not a statement of its own
	SeesPause   bool // a start refuses what is of a paused job, or of one of a paused app
	SeesDeleted bool // and of a deleted one
	DueFirst    bool // it refuses nothing before the due instant: until then, what stands in the way may go
	EndsFirst   bool // outcomes that wait on its node are written before it, and stand in nobody's way
	RetryWaits  bool // a retry waits for the run that it finds; its due time is not skipped

	// Commits that are unknown.
	Settle        bool // an unknown commit is settled, not taken for applied
	SettleLocking bool // by a locking read, which waits for a COMMIT that is late
	SettleAnswers bool // so is a change that somebody asked for, before it is made once more
	SetsLast      bool // the sets change once the commit is known, not before
	Alone         bool // compensation looks and writes while no other change is between its rows and its sets
	AddFirst      bool // a start puts its task into the executing set before it takes it out of the prepare set
	DropUnknown   bool // an unknown commit whose session is over changes no set any more

	// Spawning.
	LeaseCheck  bool // nothing is spawned but with a fresh lease
	SpawnWindow bool // and only in the spawn window
	PauseWaits  bool // pause, delete and edit are answered when the windows of what has started have passed
	AppWaits    bool // so is the pause of an app, which holds no job's row
	ClockFirst  bool // a start reads the clock, by which its window is counted, before it reads the pauses

	// Finishing and waiting.
	FinishGuard  bool // an outcome is written only where the row is executing at its launch when it is locked
	FinishAlways bool // also when its session is over
	FinishLock   bool // the end of a run for which others may wait holds the job's row
	WakeAtEnd    bool // and wakes who comes next in the same transaction
	Sweeper      bool // what nobody woke is found
	GroupLock    bool // starts hold the group's row while they count its slots
	Spool        bool // a node that is stopped keeps the outcomes that it cannot write

	// Sessions.
	Register     bool // a session claims once its row is known to be committed
	Compensation bool // rows of a session that are in no set of it become idle
	Orphans      bool // rows whose owner has no session are freed
	OwnersFirst  bool // who looks for them reads the owners first and the sessions second
	OrphanGuard  bool // and frees only what is still at the session when its row is locked
	OwnClock     bool // a session expires only if its beat stood still for as long on the observer's own clock, too
	Watchdog     bool // a node kills its commands before its session expires
	KillAtEnd    bool // a node whose session is lost kills its commands before it goes on with another
	ClearAtEnd   bool // and forgets what it has prepared and not spawned
	Guard        bool // there is a guard: what a dead or stopped node has spawned is killed
	GuardWaits   bool // it buries the session of a dead node when nothing of it lives
	GuardEnds    bool // it kills a stopped node that may be forking
	GuardLives   bool // nothing is started or spawned while there is no guard
	GuardClaims  bool // nor claimed
	GuardYields  bool // and what is prepared is given back when no other comes
	GuardHanded  bool // a new guard knows what runs already
	LapseStays   bool // once a guard has taken a lease for lapsed no beat renews it

	// When MySQL's clock is put back, and of what is to be killed.
	Withdraw     bool // an edit withdraws only what is due later than last_due as well
	MarkExpired  bool // a due time whose start deadline passes while it waits advances last_due
	AllSiblings  bool // every executing task of a job counts at a start, also one due later than now
	Relisted     bool // who frees an orphan goes by the row as it is when it is locked, its job included
	WishAtEnd    bool // an attempt that is to be killed and fails by itself is not retried
	WishAtFree   bool // one that is to be killed and is given back, because it was not spawned, is so still: the next start ends it
	WishAtLoss   bool // one that is to be killed and is lost is not started again
	LaterOnly    bool // only an earlier due time is replaced; one that comes late finds its place taken
	SteadyWindow bool // a spawn window is over for good once it has passed on the node's own clock, too
	SlowClocks   bool // an answer waits for spawn windows as they are by any node's clock, not only by its own
	NewClocks    bool // so does that of a node that came up since MySQL's clock was set
}

// Code is what the code does today.
func Code() Rules {
	r := Safe()
	for _, h := range Holes() {
		h.Without(&r)
	}
	return r
}

// Safe is what the code does and what it should do: with it nothing is violated.
func Safe() Rules {
	return Rules{
		PlanLock: true, PlanGuard: true, LastDue: true, CatchUp: true,
		ClaimGuard: true, StartGuard: true, StartLock: true, InBatch: true, AnyoneLate: true, Transaction: true,
		SeesPause: true, SeesDeleted: true, DueFirst: true, EndsFirst: true, RetryWaits: true,
		Settle: true, SettleLocking: true, SettleAnswers: true, SetsLast: true, Alone: true, AddFirst: true, DropUnknown: true,
		LeaseCheck: true, SpawnWindow: true, PauseWaits: true, AppWaits: true, ClockFirst: true,
		FinishGuard: true, FinishAlways: true, FinishLock: true, WakeAtEnd: true, Sweeper: true, GroupLock: true, Spool: true,
		Register: true, Compensation: true, Orphans: true, OwnersFirst: true, OrphanGuard: true, OwnClock: true,
		Watchdog: true, KillAtEnd: true, ClearAtEnd: true, Guard: true, GuardWaits: true, GuardEnds: true,
		GuardLives: true, GuardClaims: true, GuardYields: true, GuardHanded: true, LapseStays: true,
		Withdraw: true, MarkExpired: true, AllSiblings: true, Relisted: true, WishAtEnd: true, WishAtFree: true, WishAtLoss: true, LaterOnly: true, SteadyWindow: true, SlowClocks: true, NewClocks: true,
	}
}
