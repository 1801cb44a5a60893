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
		{Name: "replaceretry", Dues: 2, Overlap: Replace, Retry: true, Rerun: true, People: askedKill, May: few},
		{Name: "allow", Dues: 2, Overlap: Allow, May: few},
		{Name: "group", Dues: 2, Group: true, Retry: true, May: few},
		{Name: "manual", Dues: 1, Manual: true, People: askedRun, May: few},
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
