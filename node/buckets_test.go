package node_test

import (
	"fmt"
	"testing"
	"time"

	"go-crontab/job"
	"go-crontab/node"
)

// TestBucketsChange changes the number of buckets again and again while three nodes work: each due time is still
// started once.
func TestBucketsChange(t *testing.T) {
	t.Parallel()
	c := newCluster(t)
	l := newLedger()
	var nodes []*member
	for i := range 3 {
		nodes = append(nodes, c.start(fmt.Sprint("node", i), func(cfg *node.Config) { cfg.Executor = l }))
	}
	var jobs []job.Job
	for i := range 30 {
		jobs = append(jobs, nodes[i%3].create(job.Spec{Name: fmt.Sprint("busy ", i), Every: job.Duration(250 * time.Millisecond), Overlap: job.OverlapAllow}))
	}
	for i := range 24 {
		c.exec("UPDATE setting SET value = ? WHERE name = 'buckets'", []int{256, 16, 64, 32, 128}[i%5])
		time.Sleep(350 * time.Millisecond)
	}
	until := nodes[0].Now()
	c.settled(20*time.Second, until)
	got := account(t, c, l, jobs, until)
	if got[job.Succeeded] < 30*20 || len(got) != 1 {
		t.Errorf("got %v; want nothing but succeeded runs", got)
	}
}
