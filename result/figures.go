package result

import (
	"context"
	"encoding/json"
	"fmt"
	"log/slog"
	"maps"
	"slices"
	"sync"
	"time"

	"go-crontab/internal/loop"
	"go-crontab/job"
	"go-crontab/sql"
	"go-crontab/sql/read"

	"github.com/google/uuid"
)

// Figures counts the starts and ends of this process for the console. It counts in memory, in
// steps of ten seconds, and writes after each step. If the process dies, the numbers of the last
// step are lost. The numbers are only for display.
type Figures struct {
	db     *sql.DB
	now    func() job.Micros // MySQL's clock
	source uuid.UUID
	log    *slog.Logger

	mu    sync.Mutex
	parts map[job.Micros]*part
}

type part struct {
	read.Figure
	changes, written int64 // number of changes now, and at the last write
}

// figuresKept is the lifetime of a part.
const figuresKept = 20 * time.Minute

// NewFigures returns Figures that count at once. The caller runs them.
func NewFigures(db *sql.DB, now func() job.Micros, log *slog.Logger) *Figures {
	return &Figures{db: db, now: now, source: uuid.New(), log: log, parts: map[job.Micros]*part{}}
}

// Began counts the start of an attempt.
func (f *Figures) Began(at job.Micros, late time.Duration) {
	f.change(at, func(p *part) { p.Starts++; p.Late[job.LateClass(late)]++ })
}

// Ended counts the end of an attempt that had begun.
func (f *Figures) Ended(at job.Micros, o job.Outcome) {
	f.change(at, func(p *part) {
		p.Ends++
		if o != job.Succeeded && o != job.Skipped {
			p.Failed++
		}
	})
}

func (f *Figures) change(at job.Micros, fn func(*part)) {
	at -= at % job.Micros(job.FigureStep/time.Microsecond)
	f.mu.Lock()
	defer f.mu.Unlock()
	p := f.parts[at]
	if p == nil {
		p = &part{Figure: read.Figure{At: at}}
		f.parts[at] = p
	}
	p.changes++
	fn(p)
}

// Run writes until ctx ends.
func (f *Figures) Run(ctx context.Context) error {
	return loop.Loop{
		First:  loop.Jitter(job.FigureStep),
		Period: job.FigureStep,
		Log:    f.log,
		Failed: "cannot write run statistics, trying again",
	}.Run(ctx, loop.Each(f.write))
}

// write writes changed parts. If a commit is unknown, write treats it as refused and writes the
// same parts again.
func (f *Figures) write(ctx context.Context) error {
	now := f.now()
	kept := now.Add(-figuresKept)
	f.mu.Lock()
	maps.DeleteFunc(f.parts, func(at job.Micros, _ *part) bool { return at < kept })

	var figures []read.Figure
	changes := map[job.Micros]int64{}
	for _, at := range slices.Sorted(maps.Keys(f.parts)) {
		if p := f.parts[at]; p.changes != p.written {
			figures = append(figures, p.Figure)
			changes[at] = p.changes
		}
	}
	f.mu.Unlock()

	if figures == nil {
		return nil
	}

	err := f.db.Tx(ctx, func(tx *sql.Tx) error { return putFigures(tx, f.source, figures, kept) })
	if err != nil {
		return err
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	for at, n := range changes {
		if p := f.parts[at]; p != nil {
			p.written = n
		}
	}
	return nil
}

// putFigures replaces the figures of a process for the given times, and removes old figures of all
// processes. A repetition does no harm.
func putFigures(tx *sql.Tx, source uuid.UUID, figures []read.Figure, before job.Micros) error {
	if len(figures) > 0 {
		var args []any
		for i := range figures {
			f := &figures[i]
			late, err := json.Marshal(pairs(&f.Late))
			if err != nil {
				return fmt.Errorf("write run statistics: %w", err)
			}
			args = append(args, int64(f.At), source[:], f.Starts, f.Ends, f.Failed, string(late))
		}
		_, err := tx.Exec("write run statistics", `
			INSERT INTO figure (at, source, starts, ends, failed, late)
			VALUES `+sql.Values(len(figures), 6)+`
			ON DUPLICATE KEY UPDATE
				starts = VALUES(starts), ends = VALUES(ends), failed = VALUES(failed), late = VALUES(late)`, args...)
		if err != nil {
			return err
		}
	}

	_, err := tx.Exec("remove old run statistics", "DELETE FROM figure WHERE at < ?", int64(before))
	return err
}

func pairs(l *job.Lates) [][2]int64 {
	out := [][2]int64{}
	for class, n := range l {
		if n != 0 {
			out = append(out, [2]int64{int64(class), n})
		}
	}
	return out
}
