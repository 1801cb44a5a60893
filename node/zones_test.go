package node_test

import (
	"testing"
	"time"

	"go-crontab/job"
)

// TestZoneData: a node publishes its time zone data, and soon reports that all jobs are planned
// with it.
func TestZoneData(t *testing.T) {
	t.Parallel()
	c := newCluster(t)
	c.start("one", nil)
	row := c.sessionOf("one")
	if row.Zones != job.ZoneData() || row.ZonesFrom == "" {
		t.Errorf("got time zone data %q from %q", row.Zones, row.ZonesFrom)
	}

	await(t, "the jobs are planned by it", 45*time.Second, func() bool {
		var is string
		err := c.db.Raw().QueryRow("SELECT value FROM setting WHERE name = 'zones'").Scan(&is)
		return err == nil && is == job.ZoneData()
	})
}
