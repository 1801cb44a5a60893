package schedule

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"sync"
	"sync/atomic"

	"go-crontab/job"
	"go-crontab/sql"
	"go-crontab/sql/trip"

	"github.com/hashicorp/golang-lru/v2/simplelru"
)

// Definition is a compiled version of a job's definition. It never changes.
type Definition struct {
	Spec     *job.Spec
	Schedule job.Schedule // nil if Err is set
	Place    job.Selector // the nodes that may run it
	Err      error        // why the definition cannot be used

	slow atomic.Bool // its due times take long to compute
}

// admits reports whether a node with these labels may run the job. Any node may take a job with an
// invalid definition, because the job's runs are refused anyway.
func (d *Definition) admits(labels map[string]string) bool {
	return d.Err != nil || d.Place.Takes(labels)
}

// rank returns the priority of the job's runs.
func (d *Definition) rank() int {
	if d.Err != nil {
		return 0
	}
	return d.Spec.Priority
}

// version identifies a definition.
type version struct {
	job    int64
	number int32
}

// Definitions caches definitions by job and version. It keeps the most recently used ones, up to
// maxBytes.
type Definitions struct {
	mu     sync.Mutex
	cache  *simplelru.LRU[version, sized]
	latest map[int64]int32 // the latest version of each job that is in the cache
	bytes  int
}

type sized struct {
	*Definition
	bytes int
}

const (
	maxBytes = 64 << 20
	// overhead is the approximate size of a compiled definition besides its text.
	overhead = 2 << 10
)

// NewDefinitions returns an empty cache.
func NewDefinitions() *Definitions {
	d := &Definitions{latest: map[int64]int32{}}
	forget := func(v version, gone sized) {
		d.bytes -= gone.bytes
		if d.latest[v.job] == v.number {
			delete(d.latest, v.job)
		}
	}
	d.cache, _ = simplelru.NewLRU(maxBytes/overhead, forget) // NewLRU fails only for a size of zero or less
	return d
}

// Latest returns the latest cached definition of a job, which may be outdated; nil: none is cached.
func (d *Definitions) Latest(jobID int64) *Definition {
	_, found := d.latestOf(jobID)
	return found
}

// Name returns the full name of a job for the log, or its id if no definition is cached.
func (d *Definitions) Name(jobID int64) string {
	if known := d.Latest(jobID); known != nil && known.Spec != nil {
		return known.Spec.FullName()
	}
	return fmt.Sprintf("id %d", jobID)
}

func (d *Definitions) latestOf(jobID int64) (number int32, found *Definition) {
	d.mu.Lock()
	defer d.mu.Unlock()
	number, ok := d.latest[jobID]
	if !ok {
		return 0, nil
	}
	cached, _ := d.cache.Peek(version{jobID, number})
	return number, cached.Definition
}

// Get returns a cached definition.
func (d *Definitions) Get(jobID int64, number int32) (*Definition, bool) {
	d.mu.Lock()
	defer d.mu.Unlock()
	found, ok := d.cache.Get(version{jobID, number})
	return found.Definition, ok
}

// Put compiles and caches a definition that was read.
func (d *Definitions) Put(read trip.Definition) *Definition {
	compiled := sized{compile(read.Text, read.Calendars), len(read.Text) + overhead}

	d.mu.Lock()
	defer d.mu.Unlock()
	key := version{read.JobID, read.Version}
	d.cache.Remove(key)
	d.cache.Add(key, compiled)
	d.latest[key.job] = max(d.latest[key.job], key.number)
	for d.bytes += compiled.bytes; d.bytes > maxBytes; {
		d.cache.RemoveOldest()
	}

	return compiled.Definition
}

// compile never fails. It keeps errors and panics in the Definition, because an invalid definition
// must affect only its own job.
func compile(text string, calendars []*job.Calendar) (d *Definition) {
	defer func() {
		if r := recover(); r != nil {
			d = &Definition{Err: fmt.Errorf("schedule: %v", r)}
		}
	}()
	spec, err := job.DecodeSpec(text)
	if err != nil {
		return &Definition{Err: err}
	}

	place, err := spec.Place()
	if err != nil {
		return &Definition{Err: err}
	}

	schedule, err := spec.Compile(calendars...)
	return &Definition{Spec: &spec, Schedule: schedule, Place: place, Err: err}
}

// current returns the current definitions of the jobs of runs, and reads missing ones into the
// cache. A deleted job has no definition.
func (d *Definitions) current(r sql.Reader, runs []trip.Held) (map[int64]*Definition, error) {
	jobs := map[int64]bool{}
	for i := range runs {
		jobs[runs[i].JobID] = true
	}

	versions, err := trip.Versions(r, slices.Sorted(maps.Keys(jobs)))
	if err != nil {
		return nil, err
	}

	out := make(map[int64]*Definition, len(versions))
	var unknown []int64
	for id, number := range versions {
		if known, ok := d.Get(id, number); ok {
			out[id] = known
		} else {
			unknown = append(unknown, id)
		}
	}

	read, err := trip.Definitions(r, unknown)
	for _, definition := range read {
		out[definition.JobID] = d.Put(definition)
	}

	return out, err
}

// Spec returns a version of a job's definition; nil if it cannot be used. known is false if the cache
// does not have it.
func (d *Definitions) Spec(jobID int64, number int32) (spec *job.Spec, known bool) {
	found, known := d.Get(jobID, number)
	if !known || found.Err != nil {
		return nil, known
	}
	return found.Spec, true
}

// Reader reads definitions into a cache.
type Reader struct {
	*Definitions
	DB *sql.DB
}

// Learn reads the current definitions of jobs into the cache.
func (r Reader) Learn(ctx context.Context, jobs []int64) error {
	read, err := trip.Definitions(r.DB.Reader(ctx), jobs)
	for _, d := range read {
		r.Put(d)
	}
	return err
}
