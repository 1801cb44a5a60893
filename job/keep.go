package job

import (
	"encoding/json"
	"time"

	"go-crontab/job/problem"
)

// Keep says which records of runs to keep, together with their output. For a zero field, the rule
// of the app applies. If that is zero, too, the rule of the cluster applies. If all are zero, there
// is no bound.
type Keep struct {
	Age      Duration `json:"age,omitempty"`      // remove records that ended longer ago
	Runs     int64    `json:"runs,omitempty"`     // keep only the latest records of each job
	Bytes    Size     `json:"bytes,omitempty"`    // keep only the latest records of each job, up to this much output
	Failures Duration `json:"failures,omitempty"` // overrides the others: keep failures for at least this long
}

// Bounds of Keep.
const (
	LeastKept   = time.Minute
	LongestKept = 100 * 366 * 24 * time.Hour
	MostKept    = 1_000_000_000 // records of a job
	LargestKept = Size(1) << 50
)

// Over fills the zero fields of k from a wider rule.
func (k Keep) Over(wider Keep) Keep {
	if k.Age == 0 {
		k.Age = wider.Age
	}

	if k.Runs == 0 {
		k.Runs = wider.Runs
	}

	if k.Bytes == 0 {
		k.Bytes = wider.Bytes
	}

	if k.Failures == 0 {
		k.Failures = wider.Failures
	}

	return k
}

// Bounded reports whether the rule removes any record.
func (k Keep) Bounded() bool { return k.Age > 0 || k.Runs > 0 || k.Bytes > 0 }

func (k *Keep) validate(p *Problems, place string) {
	for field, d := range map[string]Duration{"age": k.Age, "failures": k.Failures} {
		if d != 0 && (time.Duration(d) < LeastKept || time.Duration(d) > LongestKept) {
			p.Add(place+field, problem.NotBetween, d, Duration(LeastKept), Duration(LongestKept))
		}
	}

	if k.Runs < 0 || k.Runs > MostKept {
		p.Add(place+"runs", problem.NotBetween, k.Runs, 1, MostKept)
	}

	if k.Bytes < 0 || k.Bytes > LargestKept {
		p.Add(place+"bytes", problem.NotBetween, k.Bytes, "1B", LargestKept)
	}
}

// validateKeepJob checks how long the job itself is kept. Only a job whose definition makes it end
// can be finished.
func (s *Spec) validateKeepJob(p *Problems) {
	switch d := time.Duration(s.KeepJob); {
	case d == 0:
	case d < LeastKept || d > LongestKept:
		p.Add("keep_job", problem.NotBetween, s.KeepJob, Duration(LeastKept), Duration(LongestKept))
	case s.At == nil && s.End == nil && s.MaxFires == 0:
		p.Add("keep_job", problem.OnlyWith, "at, end or max_fires")
	}
}

// FinishedJob is a job without further due times that is deleted by its own definition.
type FinishedJob struct {
	ID      int64
	Changes int32    // of the job, when it was judged
	Keep    Duration // its keep_job
	At      Micros   // since when it counts as finished
}

// RemoveAt returns when the job is deleted.
func (j *FinishedJob) RemoveAt() Micros { return j.At.Add(time.Duration(j.Keep)) }

// Retention is the rule of an app, or of the cluster.
type Retention struct {
	Keep
	// Archive is allowed only in the cluster's rule. It keeps every record until a node with an
	// archive command has archived the record.
	Archive bool `json:"archive,omitempty"`
}

// Validate returns all problems of an app's rule. If app is "", it checks the cluster's rule.
func (r *Retention) Validate(app string) error {
	var p Problems
	r.Keep.validate(&p, "")
	if r.Archive && app != "" {
		p.Add("archive", problem.ArchiveOfApp)
	}
	if p == nil {
		return nil
	}
	return p
}

// Encode returns the rule as it is stored, in JSON.
func (r *Retention) Encode() string {
	b, _ := json.Marshal(r) // cannot fail for these types
	return string(b)
}

// DecodeRetention reads the output of Encode.
func DecodeRetention(text string) (r Retention, err error) {
	err = json.Unmarshal([]byte(text), &r)
	return r, err
}
