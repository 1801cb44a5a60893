package doctor

import (
	"fmt"
	"os"
	"runtime"

	"go-crontab/job"
)

// Machine describes the machine of a node, and its use by the node.
type Machine struct {
	Node      string
	Slots     int    // attempts at once
	Unguarded bool   // no helper kills its commands when it dies
	Unlimited error  // why limits that need a cgroup cannot be enforced; nil: they can
	StateDir  string // folder for outcomes that could not be written; "": none

	OpenFiles uint64 // limit of open files of the process; 0: unknown
	Processes uint64 // limit of processes of its user; 0: unknown
	Zones     bool   // the machine has its own time zone data
	Root      bool
}

// Look fills in Root, OpenFiles, Processes and Zones for this process.
func (m *Machine) Look() {
	m.Root = os.Geteuid() == 0
	m.OpenFiles, m.Processes = ulimits()
	for _, dir := range []string{
		os.Getenv("ZONEINFO"), "/usr/share/zoneinfo", "/usr/share/lib/zoneinfo", "/usr/lib/locale/TZ", "/etc/zoneinfo",
	} {
		if _, err := os.Stat(dir); dir != "" && err == nil {
			m.Zones = true
		}
	}
}

func openFiles(x *exam) error {
	m := x.machine
	// A command needs several pipes and handles, and an HTTP request needs one connection. A node
	// holds at most 10,000 runs. The API and MySQL need connections, too.
	need := uint64(max(4*m.Slots, min(job.CallsPerSlot*m.Slots, 10_000)) + 300)
	if m.OpenFiles != 0 && m.OpenFiles < need {
		x.found(Warning, Finding{
			Code: FewFiles,
			Seen: fmt.Sprintf("%s may open %d files and has %d slots", m.Node, m.OpenFiles, m.Slots),
			Why:  "When it runs out of file descriptors, commands cannot start and their runs fail.",
			Fix: fmt.Sprintf("Allow %d: LimitNOFILE= in the unit, or ulimit -n before it starts.",
				max(need, 65536)),
			Commands: []string{fmt.Sprintf("systemctl edit go-crontab   # [Service] LimitNOFILE=%d", max(need, 65536))},
			Nodes:    []string{m.Node},
		})
	}

	if need := uint64(4*m.Slots + 100); m.Processes != 0 && m.Processes < need && !m.Root {
		x.found(Warning, Finding{
			Code: FewProcesses,
			Seen: fmt.Sprintf("the user of %s may run %d processes and threads, and the node has %d slots",
				m.Node, m.Processes, m.Slots),
			Why: "At this limit commands cannot start, and their runs fail.",
			Fix: fmt.Sprintf("Allow %d: LimitNPROC= in the unit, or ulimit -u before it starts.",
				max(need, 16384)),
			Commands: []string{fmt.Sprintf("systemctl edit go-crontab   # [Service] LimitNPROC=%d", max(need, 16384))},
			Nodes:    []string{m.Node},
		})
	}

	return nil
}

func guarded(x *exam) error {
	m := x.machine
	if m.Unguarded {
		x.found(Warning, Finding{
			Seen: m.Node + " has no guard",
			Why: "If the node is killed or crashes, its commands keep running, " +
				"while their runs end lost and the next ones may start on other nodes. Other nodes take over " +
				"only after " + x.expiry.String() + ".",
			Fix:   "Start it without --no-guard. Only Linux has a guard.",
			Nodes: []string{m.Node},
		})
	}
	return nil
}

func cgroups(x *exam) error {
	m := x.machine
	if m.Unlimited == nil {
		return nil
	}

	jobs, all, err := x.db.LimitedJobs(x.ctx, x.most, 20)
	if err != nil {
		return err
	}

	if len(jobs) == 0 {
		return x.looked(all)
	}

	x.found(Warning, Finding{
		Seen: fmt.Sprintf("%s a limit of memory, cpu or pids that %s cannot enforce: %v",
			count(len(jobs), 20, "job has", "jobs have"), m.Node, m.Unlimited),
		Why: "Their runs fail on this node: a command never starts without its limits.",
		Fix: "Let systemd delegate a cgroup to the node, or name one of its own with --cgroup. " +
			"Or keep these jobs off this node with a selector.",
		Commands: []string{"systemctl edit go-crontab   # [Service] Delegate=yes"},
		Jobs:     jobsOf(jobs),
		Nodes:    []string{m.Node},
	})

	return x.looked(all)
}

func stateDir(x *exam) error {
	m := x.machine
	if m.StateDir == "" {
		x.found(Warning, Finding{
			Code: NoStateFolder,
			Seen: m.Node + " has no state folder",
			Why: "If it stops while MySQL is down, " +
				"results that it could not write are lost, and their runs end lost.",
			Fix:      "Give it a state folder.",
			Commands: []string{"go-crontab serve --state-dir /var/lib/go-crontab"},
			Nodes:    []string{m.Node},
		})
		return nil
	}
	if err := writable(m.StateDir); err != nil {
		x.found(Warning, Finding{
			Code: StateFolderReadOnly,
			Seen: fmt.Sprintf("%s cannot write to its state folder %s: %v", m.Node, m.StateDir, err),
			Why: "If it stops while MySQL is down, " +
				"results that it could not write are lost, and their runs end lost.",
			Fix:   "Make the folder writable for the node's user.",
			Nodes: []string{m.Node},
		})
		return nil
	}

	if free, ok := room(m.StateDir); ok && free < 100<<20 {
		x.found(Warning, Finding{
			Code: StateFolderFull,
			Seen: fmt.Sprintf("only %d MiB are free on the disk of %s, the state folder of %s",
				free>>20, m.StateDir, m.Node),
			Why: "If the node stops while MySQL is down, it stores results there; " +
				"without free space they are lost.",
			Fix:   "Free some disk space.",
			Nodes: []string{m.Node},
		})
	}

	return nil
}

func zoneData(x *exam) error {
	if m := x.machine; !m.Zones {
		x.found(Notice, Finding{
			Seen: m.Node + " has no time zone data of its own and uses that of the program, from " + runtime.Version(),
			Why: "Nodes with different data may compute different due times after a " +
				"government changes its daylight saving rules.",
			Fix:      "Install the data on all machines or on none.",
			Commands: []string{"apt-get install tzdata"},
			Nodes:    []string{m.Node},
		})
	}
	return nil
}
