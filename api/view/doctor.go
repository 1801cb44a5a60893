package view

import (
	"time"
)

// Doctor is the report of the doctor.
type Doctor struct {
	At       time.Time  `json:"at" doc:"When the checks ran, by MySQL's clock."`
	Node     string     `json:"node" doc:"The node that ran the checks. Checks of a machine concern this node's machine."`
	Version  string     `json:"version" doc:"The version of the node."`
	Server   string     `json:"server" doc:"The version that the database reports."`
	Worst    Severity   `json:"worst" doc:"The severity of the worst finding; 'ok' if there is none."`
	Findings []*Finding `json:"findings" doc:"The problems that were found, the worst first."`
	Checks   []Checked  `json:"checks" doc:"All checks, always in the same order."`
}

type Finding struct {
	Check    string       `json:"check" doc:"The id of the check that found it. Ids never change."`
	Code     string       `json:"code,omitempty" doc:"A code for what was found, if the check can find several things. Codes never change."`
	Area     Area         `json:"area" doc:"The area of the check."`
	Severity Severity     `json:"severity" doc:"The severity."`
	Seen     string       `json:"seen" doc:"What the check found."`
	Why      string       `json:"why" doc:"Why that matters."`
	Fix      string       `json:"fix" doc:"How to fix it."`
	SQL      []string     `json:"sql,omitempty" doc:"SQL statements that fix it."`
	Commands []string     `json:"commands,omitempty" doc:"Commands that fix it, or show more."`
	Jobs     []JobMention `json:"jobs,omitempty" doc:"The jobs that it is about, at most ten."`
	Nodes    []string     `json:"nodes,omitempty" doc:"The nodes that it is about."`
}

type JobMention struct {
	ID   string `json:"id" doc:"The id of the job."`
	App  string `json:"app" doc:"Its app."`
	Name string `json:"name" doc:"Its name."`
}

type Checked struct {
	ID       string   `json:"id" doc:"The id of the check. Ids never change."`
	Area     Area     `json:"area" doc:"The area of the check."`
	About    string   `json:"about" doc:"What holds if the check finds nothing."`
	Severity Severity `json:"severity" doc:"The severity of its worst finding; 'unknown' if the check could not run."`
	Skipped  string   `json:"skipped,omitempty" doc:"Why the check could not run."`
}

// Severity is the severity of a finding or a check.
type Severity string

// Area is the subject of a check.
type Area string
