package protocol

import (
	"fmt"
	"os"
	"strconv"
	"strings"
	"testing"
	"time"
)

func TestTry(t *testing.T) {
	f, _ := strconv.Atoi(os.Getenv("F"))
	all := Faults{Commit: true, Late: true, Kill: true, Stop: true, Beats: true, Guard: true, MySQL: true, Drain: true}
	few := Faults{Commit: true, Late: true, Kill: true, Stop: true, Beats: true, Drain: true}
	clocks := few
	clocks.Ahead, clocks.Back = true, true
	for _, w := range []World{
		{Name: "base", Dues: 2, May: all},
		{Name: "one due", Dues: 1, May: all},
		{Name: "retry", Dues: 2, Retry: true, May: few},
		{Name: "rerun", Dues: 2, Rerun: true, May: few},
		{Name: "retryrerun", Dues: 1, Rerun: true, Retry: true, May: few},
		{Name: "queue", Dues: 2, Overlap: Queue, May: few},
		{Name: "queueretry", Dues: 2, Overlap: Queue, Retry: true, Rerun: true, May: few},
		{Name: "replace", Dues: 2, Overlap: Replace, May: few},
		{Name: "replaceretry", Dues: 2, Overlap: Replace, Retry: true, Backoff: true, Rerun: true, People: askedKill, May: few},
		{Name: "allow", Dues: 2, Overlap: Allow, May: few},
		{Name: "group", Dues: 2, Group: true, Retry: true, May: few},
		{Name: "manual", Dues: 1, Manual: true, People: askedRun, May: few},
		{Name: "retrybackoff", Dues: 2, Retry: true, Backoff: true, May: few},
		{Name: "kill", Dues: 1, Retry: true, Rerun: true, People: askedKill, May: few},
		{Name: "plan", Dues: 2, Unready: true, May: few},
		{Name: "pause", Dues: 2, People: askedPause | askedResume, May: few},
		{Name: "edit", Dues: 2, Unready: true, People: askedEdit, May: few},
		{Name: "editretry", Dues: 2, Retry: true, People: askedEdit, May: few},
		{Name: "delete", Dues: 2, People: askedDelete, May: few},
		{Name: "pauseedit", Dues: 2, Unready: true, People: askedPause | askedResume | askedEdit, May: few},
		{Name: "app", Dues: 2, Unready: true, People: askedAppPause | askedAppResume, May: few},
		{Name: "clocks", Dues: 2, May: clocks},
		{Name: "clockspause", Dues: 2, People: askedPause | askedResume, May: clocks},
		{Name: "clocksedit", Dues: 2, Unready: true, People: askedEdit, May: clocks},
		{Name: "clocksapp", Dues: 2, People: askedAppPause | askedAppResume, May: clocks},
		{Name: "clocksmanual", Dues: 1, Manual: true, People: askedRun, May: clocks},
		{Name: "queueexpire", Dues: 2, Overlap: Queue, Expires: true, People: askedEdit, May: clocks},
	} {
		if o := os.Getenv("W"); o != "" && o != w.Name {
			continue
		}
		w.Nodes, w.Faults, w.Rules = 2, f, Safe()
		for _, off := range strings.Fields(os.Getenv("OFF")) {
			setRule(&w.Rules, off, false)
		}
		begin := time.Now()
		r := Search(&w)
		fmt.Println(w.Name, r.States, r.Total(), r.Steps, time.Since(begin).Round(time.Millisecond))
		if r.Found != nil {
			fmt.Println(r.Found)
		}
	}
}

func TestMutants(t *testing.T) {
	type c struct {
		rule string
		w    World
	}
	for _, c := range []c{
		{"PlanLock", World{Dues: 1, Unready: true}},
		{"PlanGuard", World{Dues: 1, Unready: true}},
		{"PlanLock PlanGuard", World{Dues: 1, Unready: true}},
		{"LastDue", World{Dues: 2, Unready: true, People: askedEdit}},
		{"LastDue", World{Dues: 2, Unready: true, People: askedPause | askedResume}},
		{"CatchUp", World{Dues: 1, Unready: true, People: askedEdit}},
		{"CatchUp", World{Dues: 1, Unready: true, People: askedPause}},
		{"ClaimGuard", World{Dues: 1}},
		{"StartGuard", World{Dues: 1, May: Faults{Beats: true}}},
		{"StartLock", World{Dues: 2}},
		{"AnyoneLate", World{Dues: 1}},
		{"Transaction", World{Dues: 2, May: Faults{Commit: true, Late: true, Beats: true}}},
		{"Settle", World{Dues: 1, May: Faults{Commit: true}}},
		{"SettleLocking", World{Dues: 1, May: Faults{Commit: true, Late: true, Beats: true, Kill: true}}},
		{"SettleLocking", World{Dues: 1, Manual: true, People: askedRun, May: Faults{Unanswered: true}}},
		{"SettleAnswers", World{Dues: 1, Manual: true, People: askedRun, May: Faults{Unanswered: true}}},
		{"SetsLast", World{Dues: 1}},
		{"Alone", World{Dues: 1, May: Faults{Commit: true, Beats: true}}},
		{"AddFirst", World{Dues: 1, May: Faults{Commit: true, Beats: true}}},
		{"Alone AddFirst", World{Dues: 1}},
		{"LeaseCheck", World{Dues: 1, May: Faults{Beats: true}}},
		{"SpawnWindow", World{Dues: 1, People: askedPause}},
		{"SpawnWindow", World{Dues: 1, People: askedEdit}},
		{"SpawnWindow", World{Dues: 1, People: askedDelete}},
		{"PauseWaits", World{Dues: 1, People: askedPause}},
		{"PauseWaits", World{Dues: 1, People: askedDelete}},
		{"PauseWaits", World{Dues: 1, People: askedEdit}},
		{"AppWaits", World{Dues: 1, People: askedAppPause}},
		{"ClockFirst", World{Dues: 1, People: askedAppPause}},
		{"FinishGuard", World{Dues: 1, May: Faults{Commit: true}}},
		{"FinishAlways", World{Dues: 1, May: Faults{Beats: true}}},
		{"FinishLock", World{Dues: 2, Overlap: Queue}},
		{"WakeAtEnd", World{Dues: 2, Overlap: Queue}},
		{"Sweeper", World{Dues: 2, Overlap: Queue, May: Faults{Beats: true}}},
		{"FinishLock Sweeper", World{Dues: 2, Overlap: Queue}},
		{"GroupLock", World{Dues: 2, Group: true}},
		{"Spool", World{Dues: 1, May: Faults{Drain: true}}},
		{"Register", World{Dues: 1, May: Faults{Beats: true}}},
		{"Compensation", World{Dues: 1, May: Faults{Commit: true, Beats: true}}},
		{"Orphans", World{Dues: 1, May: Faults{Kill: true}}},
		{"OwnersFirst", World{Dues: 1, May: Faults{Beats: true}}},
		{"OrphanGuard", World{Dues: 1, May: Faults{Beats: true, Kill: true}}},
		{"OwnClock", World{Dues: 1, May: Faults{Ahead: true}}},
		{"Watchdog", World{Dues: 1, May: Faults{Beats: true}}},
		{"KillAtEnd", World{Dues: 1, May: Faults{Beats: true}}},
		{"KillAtEnd Guard", World{Dues: 1, May: Faults{Beats: true}}},
		{"ClearAtEnd", World{Dues: 1, May: Faults{Beats: true}}},
		{"Guard", World{Dues: 1, May: Faults{Kill: true}}},
		{"Guard", World{Dues: 1, May: Faults{Stop: true}}},
		{"GuardWaits", World{Dues: 1, May: Faults{Kill: true}}},
		{"GuardEnds", World{Dues: 1, May: Faults{Stop: true}}},
		{"GuardFirst", World{Dues: 1, May: Faults{Guard: true, Kill: true, Stop: true}}},
		{"AllSiblings", World{Dues: 1, Idle: 1, Manual: true, People: askedRun, May: Faults{Back: true}}},
	} {
		w := c.w
		w.Nodes, w.Faults, w.Rules = 2, 3, Safe()
		for _, off := range strings.Fields(c.rule) {
			setRule(&w.Rules, off, false)
		}
		r := Search(&w)
		fmt.Println("#####", c.rule, r.States)
		if r.Found != nil {
			fmt.Println(r.Found)
		} else {
			fmt.Println("NOTHING")
		}
	}
}
