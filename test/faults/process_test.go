//go:build faults

package faults

import (
	"bytes"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"
)

// procs returns the ids of all living processes.
func procs(t testing.TB) (pids []int) {
	t.Helper()
	entries, err := os.ReadDir("/proc")
	if err != nil {
		t.Fatal(err)
	}

	for _, e := range entries {
		if pid, err := strconv.Atoi(e.Name()); err == nil {
			pids = append(pids, pid)
		}
	}

	return pids
}

// having returns the living processes whose environment or command line contains a text. A zombie
// has neither.
func having(t testing.TB, file, text string) (pids []int) {
	t.Helper()
	for _, pid := range procs(t) {
		content, _ := os.ReadFile(fmt.Sprintf("/proc/%d/%s", pid, file))
		if pid != os.Getpid() && bytes.Contains(content, []byte(text)) {
			pids = append(pids, pid)
		}
	}
	return pids
}

// childrenOf returns the direct children of a process.
func childrenOf(pid int) (pids []int) {
	tasks, _ := filepath.Glob(fmt.Sprintf("/proc/%d/task/*/children", pid))
	for _, task := range tasks {
		list, _ := os.ReadFile(task)
		for _, field := range strings.Fields(string(list)) {
			if child, err := strconv.Atoi(field); err == nil {
				pids = append(pids, child)
			}
		}
	}

	return pids
}

// guardOf returns the process of a node's guard, or 0.
func guardOf(node int) int {
	for _, child := range childrenOf(node) {
		name, _ := os.ReadFile(fmt.Sprintf("/proc/%d/comm", child))
		if strings.TrimSpace(string(name)) == "crontab-guard" {
			return child
		}
	}
	return 0
}

// killGuard is kill -9 of a node's guard. It returns the guard's process, or 0 without a guard: a
// signal to process 0 would hit the tests themselves.
func (m *member) killGuard() int {
	guard := guardOf(m.pid())
	if guard != 0 {
		_ = syscall.Kill(guard, syscall.SIGKILL)
	}
	return guard
}

// status returns a number from /proc/PID/status: kilobytes or a count; -1 when the process is gone.
func status(pid int, name string) int {
	content, _ := os.ReadFile(fmt.Sprintf("/proc/%d/status", pid))
	for line := range strings.Lines(string(content)) {
		if value, ok := strings.CutPrefix(line, name+":"); ok {
			n, _ := strconv.Atoi(strings.Fields(value)[0])
			return n
		}
	}
	return -1
}

// megabytes returns the memory of a process, without its guard and commands.
func megabytes(pid int) float64 { return float64(status(pid, "VmRSS")) / 1024 }

// descriptors counts the open files of a process.
func descriptors(pid int) int {
	entries, _ := os.ReadDir(fmt.Sprintf("/proc/%d/fd", pid))
	return len(entries)
}

// killAll kills processes that a scenario left.
func killAll(pids []int) {
	for _, pid := range pids {
		_ = syscall.Kill(pid, syscall.SIGKILL)
	}
}
