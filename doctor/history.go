package doctor

import "fmt"

// Sizes from which one should know what is kept.
const (
	manyRows  = 5_000_000
	muchSpace = 20 << 30
)

func historySize(x *exam) error {
	rows, bytes := int64(0), int64(0)
	for _, name := range []string{"history", "output", "notable"} {
		if t := x.tables[name]; t != nil {
			bytes += t.Bytes
			if name == "history" {
				rows = t.Rows
			}
		}
	}
	if rows < manyRows && bytes < muchSpace {
		return nil
	}
	x.found(Notice, Finding{
		Seen: fmt.Sprintf("the history has some %d million records and takes %.1f GiB", rows/1_000_000, float64(bytes)/(1<<30)),
		Why:  "Records that nobody reads make backups, restores and upgrades slow.",
		Fix:  "Bound what is kept.",
	})
	return nil
}
