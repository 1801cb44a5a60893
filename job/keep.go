package job

import (
	"encoding/json"
	"time"

	"go-crontab/job/problem"
)

// Keep says which records of runs are kept, with their output. The zero Keep is all of them, or what the app's and then
// the cluster's rule says.
type Keep struct {
	Age      Duration `json:"age,omitempty"`      // records that ended longer ago go
	Runs     int64    `json:"runs,omitempty"`     // of each job only the latest so many stay
	Bytes    Size     `json:"bytes,omitempty"`    // of each job only the latest stay whose kept output comes to no more
	Failures Duration `json:"failures,omitempty"` // what did not succeed stays at least so long, whatever the others say
}

// Bounds of Keep.
const (
	LeastKept   = time.Minute
	LongestKept = 100 * 366 * 24 * time.Hour
	MostKept    = 1_000_000_000 // records of a job
	LargestKept = Size(1) << 50
)

// Over fills what k leaves out with what a wider rule says.
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

// Bounded tells whether any record ever goes.
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

// Retention is the rule of an app, or of the cluster.
type Retention struct {
	Keep
	// Archive, of the cluster's rule: nothing goes before a node that has an archive command has handed it over.
	Archive bool `json:"archive,omitempty"`
}

// Validate returns all problems of the rule of an app, or of the cluster, "".
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

// Encode writes the rule as it is stored.
func (r *Retention) Encode() string {
	b, _ := json.Marshal(r) // lengths, numbers and a word cannot fail
	return string(b)
}

// DecodeRetention reads what Encode wrote.
func DecodeRetention(text string) (r Retention, err error) {
	err = json.Unmarshal([]byte(text), &r)
	return r, err
}
