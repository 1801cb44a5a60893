package model

import (
	"reflect"
	"strings"
)

// Rules are the rules of the protocol. The tag is the sentence that the tests and the documentation
// print.
type Rules struct {
	// Claim
	Cursor     bool `rule:"claim: the cursor is still the one that was read"`
	Version    bool `rule:"claim: the version is still the one that was read"`
	PausedLook bool `rule:"claim: looks at paused and deleted under the lock of the job"`
	SkipLocked bool `rule:"claim and start: skip a locked job and go on with the others"`

	// Every write
	Guarded    bool `rule:"every state change names id, owner, claim and state"`
	ExplicitTx bool `rule:"writes travel in BEGIN ... COMMIT"`

	// Takeover
	Raise    bool `rule:"takeover raises the claim count"`
	Takeover bool `rule:"an overdue prepared run is anybody's"`
	TakeOwn  bool `rule:"... also the node's own that its heap does not hold"`
	OneStep  bool `rule:"takeover and start are one transaction"`

	// Start
	Running    bool `rule:"start: looks at job.running"`
	JobLock    bool `rule:"start: holds the job row from the look to the write"`
	JobWrite   bool `rule:"start: writes the job row (multi-writer engines certify writes, not locks)"`
	Anew       bool `rule:"start: a transaction that runs again decides again"`
	Batch      bool `rule:"start: looks at earlier runs of its own batch"`
	Halve      bool `rule:"start: a batch that MySQL refuses is halved until the culprit is alone"`
	Crowded    bool `rule:"start: after an edit from allow, looks at all executing runs until none is left"`
	RefuseLate bool `rule:"start: a refusal is final only at or after the due time"`
	Flush      bool `rule:"start: finishes of the same job are flushed first"`
	EndDeleted bool `rule:"start: ends the run of a deleted job"`

	// Waiting
	Awaited    bool `rule:"wait: a run that will wait marks the run that it waits for, in the same transaction"`
	EndWakes   bool `rule:"wait: every end of a run wakes the next run that may begin"`
	PeopleWake bool `rule:"wait: pause, edit and delete wake the waiting runs of the job"`
	InOrder    bool `rule:"wait: a due time waits behind an earlier waiting one of its job"`
	RetryWaits bool `rule:"wait: a retry waits for another run of its job, whatever the overlap policy"`
	SlotOfRun  bool `rule:"group: a run gives back the slot of the group under which it started"`
	Newer      bool `rule:"replace: only a later due time replaces an earlier one"`
	KillStays  bool `rule:"kill: a killed run is not tried again"`

	// Spawn
	LockRead  bool `rule:"an unknown start is settled by a locking read"`
	KnownOnly bool `rule:"no spawn while the start is unknown"`
	Lease     bool `rule:"spawn: the lease is looked at first"`
	Gate      bool `rule:"spawn: the look at the lease and the spawn are one step"`
	Window    bool `rule:"spawn: only inside a window; pause, edit and delete answer after the windows"`

	// Lives
	Guard        bool `rule:"a guard process kills and buries"`
	KidsDie      bool `rule:"children die with the guard"`
	BuryLast     bool `rule:"the session is buried after all its children are dead"`
	SessionKnown bool `rule:"a session works only after its row is known to be committed"`
	Reaper       bool `rule:"executing runs of dead sessions are ended"`
	ReaperOrder  bool `rule:"reaper: candidates first, session second, guarded write third"`
	ReaperSkips  bool `rule:"reaper: skips a locked row and goes on with the others"`
	Compensate   bool `rule:"own executing rows in no set are ended"`
	SkipUnknown  bool `rule:"... but not those of an unknown start that is being settled"`
	Mutex        bool `rule:"rows first, sets second, nobody of the node between"`
	Clear        bool `rule:"a new session begins with empty sets"`
	KillJoin     bool `rule:"... and after the old session's children are dead"`
	LeaseTrip    bool `rule:"the lease lapses when starts and finishes do not succeed"`

	// People
	BackFirst  bool `rule:"take back: first attempts of the schedule only (no retries, no manual runs)"`
	BackBegun  bool `rule:"take back: only due times after begun_to (the last that began or ended)"`
	BackFuture bool `rule:"take back: only what is not due yet"`
	SettlePast bool `rule:"edit, delete: what passed unclaimed gets one counted row first"`
	RequestKey bool `rule:"run by hand: a repeated request finds the run of the first one"`
}

// all returns every rule switched on.
func all() Rules {
	var r Rules
	v := reflect.ValueOf(&r).Elem()
	for i := range v.NumField() {
		v.Field(i).SetBool(true)
	}
	return r
}

// without returns the rules except the named ones, joined by "+" ("LockRead+Compensate").
func (r Rules) without(names string) Rules {
	v := reflect.ValueOf(&r).Elem()
	for name := range strings.SplitSeq(names, "+") {
		f := v.FieldByName(name)
		if !f.IsValid() {
			panic("there is no rule " + name)
		}
		f.SetBool(false)
	}
	return r
}

// ruleNames returns the names of all rules in the order of their declaration, and each rule's
// sentence.
func ruleNames() (names []string, text map[string]string) {
	text = map[string]string{}
	for f := range reflect.TypeFor[Rules]().Fields() {
		names = append(names, f.Name)
		text[f.Name] = f.Tag.Get("rule")
	}
	return names, text
}
