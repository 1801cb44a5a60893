package view

import (
	"time"
)

// Doctor is the report of the doctor.
type Doctor struct {
	At       time.Time  `json:"at" doc:"When it was looked, by MySQL's clock."`
	Node     string     `json:"node" doc:"The node that looked. What is said of a machine is said of its own."`
	Version  string     `json:"version" doc:"Its version."`
	Server   string     `json:"server" doc:"What the database says it is."`
	Worst    Severity   `json:"worst" doc:"How bad the worst finding is; 'ok' when there is none."`
	Findings []*Finding `json:"findings" doc:"What is not as it should be, the worst first."`
	Checks   []Checked  `json:"checks" doc:"All that was looked at, always in the same order."`
}

type Finding struct {
	Check    string       `json:"check" doc:"The id of the check that found it. It never changes."`
	Code     string       `json:"code,omitempty" doc:"What was found, where the check can find several things. It never changes."`
	Area     Area         `json:"area" doc:"What it is about."`
	Severity Severity     `json:"severity" doc:"How bad it is."`
	Seen     string       `json:"seen" doc:"What was seen."`
	Why      string       `json:"why" doc:"Why that matters."`
	Fix      string       `json:"fix" doc:"How it is mended."`
	SQL      []string     `json:"sql,omitempty" doc:"Statements that mend it."`
	Commands []string     `json:"commands,omitempty" doc:"Commands that mend it, or show more."`
	Jobs     []JobMention `json:"jobs,omitempty" doc:"Jobs that it is about, at most ten of them."`
	Nodes    []string     `json:"nodes,omitempty" doc:"Nodes that it is about."`
}

type JobMention struct {
	ID   string `json:"id" doc:"The id of the job."`
	App  string `json:"app" doc:"Its app."`
	Name string `json:"name" doc:"Its name."`
}

type Checked struct {
	ID       string   `json:"id" doc:"The id of the check. It never changes."`
	Area     Area     `json:"area" doc:"What it is about."`
	About    string   `json:"about" doc:"What is so when it finds nothing."`
	Severity Severity `json:"severity" doc:"How bad the worst is that it found; 'unknown' when it could not look."`
	Skipped  string   `json:"skipped,omitempty" doc:"Why it could not look."`
}

// Severity is the severity of a finding or a check.
type Severity string

// Area is the subject of a check.
type Area string
