package protocol

import (
	"fmt"
	"strings"
)

// What is what happens in a step.
type What uint8

// What happens.
const (
	dueInstant What = iota
	comesNear
	plans
	readsCursor
	lists
	claimsIt
	believes
	settlesIt
	changesSets
	drops
	readsSiblings
	startsIt
	startsTogether
	refusesIt
	waits
	forgets
	spawnsIt
	forks
	exits
	fails
	kills
	finishesIt
	finds
	throws
	givesBack
	looks
	listsOrphan
	freesIt
	loses
	sweepsUp
	passesOn
	expires
	arrivesIt
	arrivesBlind
	rolledBack
	beats
	ages
	lapses
	readsClock
	ends
	joins
	joined
	buries
	newGuard
	guardKills
	restarts
	goesOn
	clearsSpool
	givesUp
	graceEnds
	leaves
	leavesAll
	pauses
	resumes
	edits
	deletes
	wantsKilled
	runsNow
	pausesApp
	resumesApp
	holdsIt
	releases
	windowPasses
	looksAgain
	mysqlBack
	mysqlAway
	clockAhead
	clockBack
	killed
	stops
	stopsForking
	stopsBoth
	noBeats
	guardDies
	guardGone
	terminated
	tooLate
	whats
)

// words say what happens: $ stands for the node, # for the due time.
var words = [whats]string{
	dueInstant:     "the due instant of # passes",
	comesNear:      "the due instant of # comes near",
	plans:          "$ plans #",
	readsCursor:    "$ reads the cursor, which stands at #",
	lists:          "$ sees that # is idle",
	claimsIt:       "$ claims #",
	believes:       "$ takes the unknown start of # for committed",
	settlesIt:      "$ settles the unknown commit of #",
	changesSets:    "$ changes its sets for #",
	drops:          "$ finds that the row of # is not its any more",
	readsSiblings:  "$ begins the start of #: reads what else is executing",
	startsIt:       "$ commits the start of #",
	startsTogether: "$ decides the starts of both due times in one transaction",
	refusesIt:      "$ ends # without a start",
	waits:          "$ has # wait",
	forgets:        "$ may not spawn # and forgets it",
	spawnsIt:       "$ spawns #",
	forks:          "$ forks #, for which it had looked at the lease before it was stopped",
	exits:          "the child of # on $ exits",
	fails:          "the child of # on $ fails",
	kills:          "$ kills # because that was asked for",
	finishesIt:     "$ writes the outcome of #",
	finds:          "$ finds the run of # ended by a peer",
	throws:         "$ throws away the outcome of #",
	givesBack:      "$ gives back #, which no set of it knows",
	looks:          "$ reads the sessions",
	listsOrphan:    "$ lists # as a dead session's",
	freesIt:        "$ frees # from a dead session",
	loses:          "$ writes that the run of # is lost",
	sweepsUp:       "$ sweeps up #, which waits for nothing",
	passesOn:       "$ gives # the slot of one that does not begin",
	expires:        "$ ends #, whose start deadline has passed while it waited",
	arrivesIt:      "the late COMMIT arrives: #",
	arrivesBlind:   "the late COMMIT arrives: #; who had listed it as prepared writes that its run is lost",
	rolledBack:     "the late COMMIT comes to nothing: #",
	beats:          "$ beats, its lease is fresh again",
	ages:           "the lease of $ becomes stale",
	lapses:         "the lease of $ lapses",
	readsClock:     "$ reads MySQL's clock",
	ends:           "$ loses its session: kills its commands, clears its sets",
	joins:          "$ joins with a new session",
	joined:         "the row of the session of $ is committed",
	buries:         "a session of $ is buried",
	newGuard:       "$ gets a new guard",
	guardKills:     "the guard of $ kills what it has spawned",
	restarts:       "$ is started again",
	goesOn:         "SIGCONT to $",
	clearsSpool:    "$ clears its spool",
	givesUp:        "$ forgets # in its prepare set",
	graceEnds:      "$ kills # because its grace is over",
	leaves:         "$ leaves the cluster",
	leavesAll:      "$ ends, and leaves its session to its peers",
	pauses:         "somebody pauses the job",
	resumes:        "somebody resumes the job",
	edits:          "somebody edits the job",
	deletes:        "somebody deletes the job",
	wantsKilled:    "somebody wants the run of # killed, and is told that it will be",
	runsNow:        "somebody asks for a run now: #",
	pausesApp:      "somebody pauses the app",
	resumesApp:     "somebody resumes the app",
	holdsIt:        "$ holds the job",
	releases:       "$ releases the job",
	windowPasses:   "the spawn window of # passes",
	looksAgain:     "who pauses the app sees that # is not on its way any more",
	mysqlBack:      "MySQL is back",
	mysqlAway:      "MySQL restarts",
	clockAhead:     "MySQL's clock is put on",
	clockBack:      "MySQL's clock is put back",
	killed:         "kill -9 of $",
	stops:          "SIGSTOP to $",
	stopsForking:   "SIGSTOP to $ right before it forks #",
	stopsBoth:      "SIGSTOP to $ and its guard, not to the commands",
	noBeats:        "the beats of $ do not get through",
	guardDies:      "the guard of $ is killed",
	guardGone:      "the guard of $ is killed, and no other comes for a while",
	terminated:     "SIGTERM to $",
}

var fates = [...]string{Known: "", Applied: ", the reply to COMMIT is lost", Never: ", the COMMIT gets lost", OnItsWay: ", the COMMIT is late and its sender gives up"}

func (m Move) String() string {
	s := words[m.What]
	s = strings.ReplaceAll(s, "$", string(rune('A'+max(m.Node, 0))))
	s = strings.ReplaceAll(s, "#", fmt.Sprintf("#%d", m.Task+1))
	s += fates[m.Fate]
	if m.Fault {
		s += "  (fault)"
	}
	return s
}

func (f *Finding) String() string {
	var b strings.Builder
	fmt.Fprintf(&b, "%s (%d faults, %d steps)\n", f.Bad, f.Faults, len(f.Moves))
	for i, m := range f.Moves {
		fmt.Fprintf(&b, "%4d. %s\n", i+1, m)
	}
	if f.Bad == Stuck {
		b.WriteString("      and from here, without faults:\n")
		for _, m := range f.Then {
			fmt.Fprintf(&b, "      … %s\n", m)
		}
	}
	fmt.Fprintf(&b, "      then: %s\n", &f.End)
	return b.String()
}

var (
	rowStates  = [...]string{"gone", "idle", "prepared", "executing", "waiting"}
	phaseNames = [...]string{"", "seen idle", "claim unknown", "claim known", "prepared", "start reads: free", "start reads: busy", "start unknown", "start known",
		"committed", "about to fork", "running"}
	procNames  = [...]string{"dead", "", "stopped", "draining"}
	leaseNames = [...]string{"", "lease stale", "lease lapsed", "without a session"}
)

// String says in a line what is where.
func (s *State) String() string {
	var out []string
	for d := range s.tasks {
		r := &s.tasks[d]
		text := fmt.Sprintf("#%d %s", d+1, rowStates[r.state])
		switch {
		case r.own == buried:
			text += " of a buried session"
		case r.own >= left:
			text += fmt.Sprintf(" of a dead session of %c", 'A'+r.own-left)
		case r.own >= older:
			text += fmt.Sprintf(" of the former session of %c", 'A'+r.own-older)
		case r.own >= ours:
			text += fmt.Sprintf(" of %c", 'A'+r.own-ours)
		}
		if s.history&bit(d) != 0 {
			text += ", recorded"
		}
		out = append(out, text)
	}
	for i := range s.nodes {
		n := &s.nodes[i]
		if n.proc == dead && n.lease == without && n.child == [maxTasks]uint8{} && n.spool == [maxTasks]uint8{} {
			continue
		}
		var is []string
		for _, text := range []string{procNames[n.proc], leaseNames[n.lease]} {
			if text != "" && (n.proc != dead || text == "dead") {
				is = append(is, text)
			}
		}
		for d := range n.sets {
			if n.sets[d].phase != out0 {
				is = append(is, fmt.Sprintf("#%d %s", d+1, phaseNames[n.sets[d].phase]))
			}
			if n.ended[d] != none {
				is = append(is, fmt.Sprintf("outcome of #%d", d+1))
			}
			if n.child[d] != 0 {
				is = append(is, fmt.Sprintf("child of #%d alive", d+1))
			}
			if n.spool[d] != none {
				is = append(is, fmt.Sprintf("#%d in the spool", d+1))
			}
		}
		if len(is) > 0 {
			out = append(out, fmt.Sprintf("%c: %s", 'A'+i, strings.Join(is, ", ")))
		}
	}
	return strings.Join(out, "; ")
}

const out0 = out

// rank is in which order a fair schedule takes what it can: the lowest first, time last. 0: it does not rely on it.
var rank = [whats]int{
	mysqlBack: 1, arrivesIt: 2, arrivesBlind: 2, newGuard: 3, guardKills: 4, readsClock: 5,
	ends: 6, settlesIt: 7, believes: 7, changesSets: 7, goesOn: 8, beats: 9, restarts: 10, joined: 11, joins: 11,
	kills: 12, exits: 13, forks: 13, spawnsIt: 14, forgets: 15, drops: 16, finds: 17, throws: 17, finishesIt: 18, clearsSpool: 19,
	givesUp: 20, leaves: 21, leavesAll: 22, buries: 23,
	givesBack: 24, looks: 25, freesIt: 26, loses: 26, listsOrphan: 27,
	holdsIt: 29, releases: 29, readsCursor: 30, plans: 31,
	startsIt: 32, startsTogether: 32, refusesIt: 32, waits: 32, readsSiblings: 33, claimsIt: 34, lists: 35, sweepsUp: 36,
	looksAgain: 79, windowPasses: 80, comesNear: 89, dueInstant: 90,
}
