package session

import (
	"strings"
	"testing"

	"github.com/google/uuid"

	"go-crontab/job"
)

// TestOutputOfTheLost: what a dead session's attempts had written becomes the output of their lost runs, whether or not
// they are started again, and the pieces of others stay.
func TestOutputOfTheLost(t *testing.T) {
	f := setUp(t)
	s := f.join("one")
	dead, living := uuid.UUID{0: 201}, f.peer(202)
	r, _ := f.reaper(s)
	over, living2, again := f.owned(dead, 2, 3), f.owned(living, 0, 1), f.owned(dead, 0, 1)
	f.exec("UPDATE job SET spec = REPLACE(spec, '\"fail\"', '\"rerun\"') WHERE id = ?", again)
	launch := func(jobID, i int64) int64 { return jobID*100_000 + i }
	put := func(id uuid.UUID, launch, at int64, data string) {
		f.exec("INSERT INTO chunk (session_id, launch, at_byte, data) VALUES (?, ?, ?, ?)", id[:], launch, at, []byte(data))
	}
	put(dead, launch(over, 2), 0, "it said \xff")
	put(dead, launch(over, 2), 9, ", and on")
	put(dead, launch(over, 3), 0, "head")
	put(dead, launch(over, 3), 100, "alone")
	put(dead, launch(over, 3), 200, "ta")
	put(dead, launch(over, 3), 202, "il")
	put(dead, launch(again, 0), 0, "the first attempt")
	put(living, launch(living2, 0), 0, "goes on")
	if err := r.reap(t.Context(), at(0)); err != nil {
		t.Fatal(err)
	}
	for n, want := range map[int64]string{
		launch(over, 2): "it said \uFFFD, and on", launch(over, 3): "head\n… 196 bytes dropped …\ntail", launch(over, 4): "", launch(again, 0): "the first attempt",
	} {
		run, err := f.beside.Run(t.Context(), job.Launch{Session: dead, N: n})
		if err != nil || run.Outcome != job.Lost || run.Output.Text() != want || run.Kept != int64(len(run.Output.Head)+len(run.Output.Tail)) {
			t.Errorf("run %d: got %v %q, %d kept, %v, want lost, %q", n, run.Outcome, run.Output.Text(), run.Kept, err, want)
		}
	}
	f.want("outputs", 3, "SELECT COUNT(*) FROM output")
	f.want("pieces", 1, "SELECT COUNT(*) FROM chunk")
	f.want("those of the living", 1, "SELECT COUNT(*) FROM chunk WHERE session_id = ?", living[:])
	f.want("the task that is started again", 1, "SELECT COUNT(*) FROM task WHERE job_id = ? AND attempt = 2", again)
}

// TestMuchOutputOfTheLost is more than one statement may carry.
func TestMuchOutputOfTheLost(t *testing.T) {
	f := setUp(t)
	s := f.join("one")
	dead := uuid.UUID{0: 201}
	r, _ := f.reaper(s)
	jobID := f.owned(dead, 0, 60)
	for i := range int64(60) {
		for at := range int64(3) {
			f.exec("INSERT INTO chunk (session_id, launch, at_byte, data) VALUES (?, ?, ?, ?)", dead[:], jobID*100_000+i, at*32768, strings.Repeat("'", 32768))
		}
	}
	if err := r.reap(t.Context(), at(0)); err != nil {
		t.Fatal(err)
	}
	f.want("kept", 60*3*32768, "SELECT SUM(output_kept) FROM history WHERE outcome = 5")
	f.want("written", 60*3*32768, "SELECT SUM(LENGTH(head) + LENGTH(tail)) FROM output")
	f.want("pieces", 0, "SELECT COUNT(*) FROM chunk")
}
