package edit

import (
	"slices"

	"go-crontab/job"
	"go-crontab/sql"
	"go-crontab/sql/trip"
)

// writeListed updates the search index: it writes jobs with new definitions, and removes deleted
// jobs.
func writeListed(tx *sql.Tx, verdicts []verdict) error {
	var listed []trip.Listed
	var before []int64
	for i := range verdicts {
		v := &verdicts[i]
		switch {
		case v.Result != job.BulkChanged:
		case v.Action == job.ActionDelete:
			before = append(before, v.jobID())
		case v.def != nil && (v.was == nil || v.was.Name != v.def.Name || !slices.Equal(v.was.Terms(), v.def.Terms())):
			if v.Action != job.ActionCreate {
				before = append(before, v.jobID())
			}
			listed = append(listed, trip.Listed{JobID: v.jobID(), Name: v.def.Name, Terms: v.def.Terms()})
		}
	}
	if err := trip.Unlist(tx, before); err != nil {
		return err
	}

	return trip.List(tx, listed)
}
