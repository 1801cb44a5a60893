package model

// one returns a world with a single job, changed by options.
func one(name string, r Rules, options ...func(*World)) *World {
	w := &World{Name: name, Rules: r}
	for _, o := range options {
		o(w)
	}
	return w
}

// Options of worlds.
func faults(n uint8) func(*World) {
	return func(w *World) {
		w.Faults = n
		w.Kills, w.Stops, w.Lames, w.Lapses, w.Guards = true, true, true, true, true
		w.Replies, w.LateCommits, w.Busy = true, true, true
	}
}

// kills allows only kill -9 and lost replies: enough for worlds about other questions.
func kills(n uint8) func(*World) {
	return func(w *World) { w.Faults, w.Kills, w.Replies = n, true, true }
}

func three(w *World)   { w.Runs = 3 }
func nodes3(w *World)  { w.Nodes = 3 }
func alone(w *World)   { w.Nodes = 1 }
func pauses(w *World)  { w.Pause = true }
func edits(w *World)   { w.Edit = true }
func deletes(w *World) { w.Delete = true }
func aKill(w *World)   { w.Kill = true }
func retries(w *World) { w.Retry = true }
func reruns(w *World)  { w.Rerun = true }
func slow(w *World)    { w.Slow = true }
func keeps(w *World)   { w.Retain = 1 }
func purges(w *World)  { w.Retain = 2 }
func back(w *World)    { w.ClockBack, w.Faults = true, max(w.Faults, 1) }
func misfire(w *World) { w.Misfire = true }
func byHand(w *World)  { w.Manual = 2 }
func idles(w *World)   { w.ToIdle = true }
func direct(w *World)  { w.Direct = true }
func refused(w *World) { w.Refused, w.Faults = true, max(w.Faults, 1) }
func certify(w *World) { w.Certified = true }

func policy(before, after Overlap) func(*World) {
	return func(w *World) { w.Overlap = [2]Overlap{before, after} }
}

// twoJobs gives each of two jobs a run at the same instant. A third run is a later one of the first
// job.
func twoJobs(w *World) {
	w.Job, w.Due = [maxRuns]uint8{0, 1, 0}, [maxRuns]uint8{0, 0, 1}
}

// sameInstant makes both runs of a job due at once.
func sameInstant(w *World) { w.Due = [maxRuns]uint8{0, 0, 1} }

func group(slots uint8) func(*World) {
	return func(w *World) {
		twoJobs(w)
		w.Slots = slots
	}
}

func leaves(w *World)    { w.Leaves, w.Edit = true, true }
func pinned(w *World)    { twoJobs(w); w.Pinned = true }
func stuckLock(w *World) { twoJobs(w); w.StuckLock = true }
func poison(w *World)    { twoJobs(w); w.Poison = 2 }

// sound returns the worlds in which all rules together must hold. The long search allows more
// faults.
func sound(more uint8) []*World {
	r := all()

	return []*World{
		one("two due times", r, faults(2+more)),
		one("three nodes", r, kills(2), nodes3),
		one("retry", r, faults(1+more), retries),
		one("on_lost: rerun", r, faults(1+more), reruns),
		one("claims insert idle", r, faults(1+more), idles),
		one("claims start what is due", r, faults(1+more), direct),
		one("claims start what is due, queue", r, kills(1+more), direct, three, policy(Queue, Queue)),
		one("claims start what is due, replace", r, kills(1+more), direct, three, policy(Replace, Replace)),
		one("claims start what is due, retry", r, kills(1+more), direct, retries),
		one("claims start what is due, pause, edit, delete", r, kills(more), direct, pauses, edits, deletes, slow),
		one("claims start what is due, several writers", r, kills(1+more), direct, certify, sameInstant),
		one("MySQL refuses a start once", r, kills(1+more), refused),
		one("three due times", r, kills(1+more), three),
		one("two jobs at one instant", r, faults(1+more), twoJobs),
		one("placement", r, faults(1+more), pinned),
		one("queue", r, faults(1+more), three, policy(Queue, Queue)),
		one("queue, retry", r, kills(1+more), policy(Queue, Queue), retries),
		one("replace", r, faults(1+more), three, policy(Replace, Replace)),
		one("replace, on_lost: rerun", r, kills(1+more), policy(Replace, Replace), reruns),
		one("allow", r, faults(1+more), policy(Allow, Allow)),
		one("group of one slot", r, faults(1+more), group(1)),
		one("group of one slot, queue", r, kills(1+more), three, group(1), policy(Queue, Queue)),
		one("group of two slots, queue", r, kills(1+more), three, group(2), policy(Queue, Queue)),
		one("group, edit out of it", r, kills(1+more), group(1), leaves),
		one("kill", r, faults(1+more), aKill, reruns),
		one("kill, retry", r, kills(1+more), aKill, retries),
		one("pause", r, faults(1+more), pauses),
		one("pause, missed by policy", r, kills(1+more), pauses, misfire),
		one("pause, retry", r, kills(1+more), pauses, retries),
		one("pause, run by hand", r, kills(1+more), pauses, byHand),
		one("pause, queue", r, kills(more), three, pauses, policy(Queue, Queue)),
		one("edit", r, faults(1+more), edits),
		one("edit, retry", r, kills(more), edits, retries),
		one("edit from allow to skip", r, kills(more), three, edits, policy(Allow, Skip)),
		one("edit from queue to skip", r, kills(1+more), edits, policy(Queue, Skip)),
		one("delete, retry", r, faults(more), deletes, retries),
		one("delete, queue", r, kills(1+more), deletes, policy(Queue, Queue)),
		one("pause, edit, delete, slow claims", r, kills(more), pauses, edits, deletes, slow),
		one("pause, edit, ended rows stay", r, kills(more), pauses, edits, keeps),
		one("pause, edit, retention at any time", r, kills(more), pauses, edits, purges),
		one("pause, edit, the clock steps back", r, back, pauses, edits),
		one("somebody keeps the rows of another job", r, kills(1+more), stuckLock),
		one("MySQL refuses one run for ever", r, kills(1+more), poison),
		one("several writers", r, kills(1+more), certify, sameInstant),
	}
}

// A need is a world that shows a violation without some rules. A rule that is spare appears
// together with the rule that does the same.
type need struct {
	rules string
	world func(Rules) *World
}

func in(options ...func(*World)) func(Rules) *World {
	return func(r Rules) *World { return one("", r, options...) }
}

var needed = []need{
	{"Cursor", in(pauses, slow)},
	{"Version", in(edits, slow)},
	{"PausedLook", in(pauses, slow)},
	{"SkipLocked", in(stuckLock)},
	{"Guarded", in(faults(2))},
	{"ExplicitTx", in(faults(2))},
	{"Takeover", in(faults(1))},
	{"TakeOwn", in(alone, faults(1))},
	{"OneStep", in()},
	{"Running", in()},
	{"JobLock", in()},
	{"JobWrite", in(certify)},
	{"Anew", in(refused)},
	{"Batch", in()},
	{"Halve", in(poison)},
	{"Crowded", in(three, edits, policy(Allow, Skip))},
	{"RefuseLate", in()},
	{"Flush", in()},
	{"EndDeleted", in(deletes, retries)},
	{"Awaited", in(policy(Queue, Queue))},
	{"EndWakes", in(policy(Queue, Queue))},
	{"PeopleWake", in(group(1), leaves)},
	{"InOrder", in(three, policy(Queue, Queue))},
	{"RetryWaits", in(retries)},
	{"SlotOfRun", in(group(1), leaves)},
	{"Newer", in(three, policy(Replace, Replace))},
	{"KillStays", in(aKill, retries)},
	{"LockRead+Compensate", in(faults(1))},
	{"KnownOnly", in(faults(1))},
	{"Lease", in(faults(1))},
	{"Gate", in(faults(1))},
	{"Window", in(pauses)},
	{"Guard", in(faults(1))},
	{"KidsDie", in(faults(2))},
	{"BuryLast", in(faults(1))},
	{"SessionKnown", in(faults(2))},
	{"Reaper", in(faults(1))},
	{"ReaperOrder", in(faults(2))},
	{"ReaperSkips", in(stuckLock, kills(1))},
	{"Mutex", in(faults(1))},
	{"Clear", in(faults(1))},
	{"KillJoin", in(faults(1))},
	{"LeaseTrip", in(faults(1))},
	{"BackFirst", in(pauses, byHand)},
	{"BackBegun", in(pauses)},
	{"BackFuture", in(edits)},
	{"SettlePast", in(edits)},
	{"RequestKey", in(byHand)},
}

// spare lists the rules that the model does not need while all others hold. docs/internals/model.md
// says why each stays.
var spare = []string{"Raise", "LockRead", "Compensate", "SkipUnknown"}
