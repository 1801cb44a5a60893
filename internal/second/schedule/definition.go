package schedule

import (
	"fmt"
	"sync"

	"go-crontab/job"
	"go-crontab/sql/trip"

	"github.com/hashicorp/golang-lru/v2/simplelru"
)

// Definition is one version of a job's definition, compiled. It never changes.
type Definition struct {
	Spec     *job.Spec
	Schedule job.Schedule // nil if Err is not
	Err      error        // why the definition cannot be used
}

// version names a definition.
type version struct {
	job    int64
	number int32
}

// Definitions caches definitions by job and version. It holds at most maxBytes of their text, the latest used.
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
	// overhead is about what a compiled definition needs besides its text.
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
	d.cache, _ = simplelru.NewLRU(maxBytes/overhead, forget) // fails for no size only
	return d
}

// Latest returns the latest definition of a job that is cached; nil: none is. It may be outdated.
func (d *Definitions) Latest(jobID int64) *Definition {
	d.mu.Lock()
	defer d.mu.Unlock()
	number, ok := d.latest[jobID]
	if !ok {
		return nil
	}
	found, _ := d.cache.Peek(version{jobID, number})
	return found.Definition
}

// Get returns a cached definition.
func (d *Definitions) Get(jobID int64, number int32) (*Definition, bool) {
	d.mu.Lock()
	defer d.mu.Unlock()
	found, ok := d.cache.Get(version{jobID, number})
	return found.Definition, ok
}

// Put compiles a definition as it was read and caches it.
func (d *Definitions) Put(read trip.Definition) *Definition {
	compiled := sized{compile(read.Text), len(read.Text) + overhead}

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

// compile never fails: a job whose definition cannot be used is that job's affair.
func compile(text string) (d *Definition) {
	defer func() {
		if r := recover(); r != nil {
			d = &Definition{Err: fmt.Errorf("schedule: %v", r)}
		}
	}()
	spec, err := job.DecodeSpec(text)
	if err != nil {
		return &Definition{Err: err}
	}
	schedule, err := spec.Compile()
	return &Definition{Spec: &spec, Schedule: schedule, Err: err}
}
