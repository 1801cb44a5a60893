package protocol

import "fmt"

// nodeFaults are those that may happen in every world: lost replies, and all that befalls nodes.
var nodeFaults = Faults{Commit: true, Late: true, Kill: true, Stop: true, Beats: true, Slow: true, Drain: true}

func (f Faults) and(g func(*Faults)) Faults {
	g(&f)
	return f
}

// Worlds are those in which all invariants hold. Together they have everything that the model knows, a few things at a
// time, because all of it at once has too many states. Where the code has a known hole, a world has the rules
// that it should have. The long search has three faults or more in each, and each with three nodes.
func Worlds(long bool) []World {
	rest := func(f *Faults) { f.Guard, f.MySQL = true, true }
	clocks := func(f *Faults) { f.Ahead, f.Back = true, true }
	few := Faults{Commit: true, Late: true, Kill: true, Beats: true, Slow: true}
	worlds := []World{
		{Name: "two due times", Rules: Code(), Dues: 2, Faults: 3, May: nodeFaults.and(rest)},
		{Name: "guards that do not come back", Rules: Code(), Dues: 2, Faults: 3, May: Faults{Commit: true, Kill: true, Stop: true, Beats: true, Guard: true, NoGuard: true}},
		{Name: "retries", Rules: Code(), Dues: 2, Retry: true, Backoff: true, Faults: 2, May: nodeFaults},
		{Name: "retries at once", Rules: Code(), Dues: 2, Retry: true, Faults: 2, May: nodeFaults},
		{Name: "what is lost is started again", Rules: Code(), Dues: 1, Retry: true, Rerun: true, Faults: 3, May: nodeFaults.and(rest)},
		{Name: "two due times, both started again", Rules: Code(), Dues: 2, Rerun: true, Faults: 2, May: nodeFaults},
		{Name: "runs may overlap", Rules: Code(), Dues: 2, Overlap: Allow, Faults: 3, May: nodeFaults},
		{Name: "queue", Rules: Code(), Dues: 2, Overlap: Queue, Retry: true, Backoff: true, Rerun: true, Faults: 2, May: nodeFaults.and(rest)},
		{Name: "replace", Rules: Code(), Dues: 2, Overlap: Replace, Retry: true, Backoff: true, Rerun: true, People: askedKill, Faults: 2, May: nodeFaults},
		{Name: "group", Rules: Code(), Dues: 2, Group: true, Retry: true, Faults: 2, May: nodeFaults},
		{Name: "group, one job paused", Rules: Code(), Dues: 2, Group: true, Retry: true, People: askedPause | askedResume, Faults: 1, May: nodeFaults},
		{Name: "kill", Rules: Code(), Dues: 1, Retry: true, Rerun: true, People: askedKill, Faults: 3, May: nodeFaults.and(rest)},
		{Name: "a run by hand", Rules: Safe(), Dues: 1, Idle: 1, Manual: true, People: askedRun, Faults: 2, May: nodeFaults.and(clocks).and(func(f *Faults) { f.Unanswered = true })},
		{Name: "planning", Rules: Code(), Dues: 2, Unready: true, Faults: 2, May: nodeFaults.and(rest)},
		{Name: "pause and resume", Rules: Code(), Dues: 2, Unready: true, People: askedPause | askedResume, Faults: 3, May: few},
		{Name: "edit", Rules: Code(), Dues: 2, Unready: true, Retry: true, People: askedEdit, Faults: 1, May: nodeFaults},
		{Name: "edit and delete", Rules: Code(), Dues: 2, Unready: true, People: askedEdit | askedDelete, Faults: 3, May: few},
		{Name: "pause, resume, edit", Rules: Code(), Dues: 2, Unready: true, People: askedPause | askedResume | askedEdit, Faults: 1, May: nodeFaults},
		{Name: "pause of an app", Rules: Code(), Dues: 2, Unready: true, People: askedAppPause | askedAppResume, Faults: 1, May: nodeFaults.and(rest)},
		{Name: "MySQL's clock is set", Rules: Safe(), Dues: 2, Faults: 3, May: nodeFaults.and(clocks)},
		{Name: "… and the job edited", Rules: Safe(), Dues: 2, Unready: true, People: askedEdit, Faults: 2, May: few.and(clocks)},
		{Name: "… and the job paused", Rules: Safe(), Dues: 2, People: askedPause | askedResume, Faults: 2, May: Faults{Kill: true, Beats: true}.and(clocks)},
		{Name: "… and the app paused", Rules: Safe(), Dues: 2, People: askedAppPause | askedAppResume, Faults: 1, May: few.and(clocks)},
		{Name: "… and due times expire", Rules: Safe(), Dues: 2, Overlap: Queue, Expires: true, People: askedEdit, Faults: 2, May: few.and(clocks)},
	}
	for i := range worlds {
		worlds[i].Nodes = 2
	}
	if !long {
		return worlds
	}
	const most = 12_000_000 // a gigabyte
	var out []World
	for _, w := range worlds {
		w.Most = most
		more := w
		more.Faults = max(3, w.Faults+1)
		more.Name = fmt.Sprintf("%s, %d faults", w.Name, more.Faults)
		three := w
		three.Name, three.Nodes = w.Name+", three nodes", 3
		out = append(out, more, three)
	}
	return out
}
