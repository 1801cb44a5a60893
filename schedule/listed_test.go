package schedule

import (
	"testing"
)

// TestChangedJobsAreListed: people find jobs by their current definitions, and find no deleted
// jobs.
func TestChangedJobsAreListed(t *testing.T) {
	c := newCluster(t)
	p := c.person(c.dsn)
	terms := func() []string { return c.rows("SELECT COUNT(*) FROM job_term") }
	parts := func() []string { return c.rows("SELECT part FROM job_part WHERE pos = 0") }

	spec := ofEvery("old", 4)
	spec.Owner, spec.Group, spec.Labels = "ann", "", map[string]string{"env": "prod"}
	id := p.creates(spec)
	c.want("terms of a new job: each in its app and in all", terms(), "4")
	c.want("its name", parts(), "old")

	spec.Name, spec.Owner = "new", ""
	p.must(p.Update(p.ctx, id, 0, spec))
	c.want("terms without an owner", terms(), "2")
	c.want("the new name", parts(), "new")

	p.must(p.Delete(p.ctx, id))
	c.want("terms of a deleted job", terms(), "0")
	c.want("its name", parts())
}
