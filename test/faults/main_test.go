//go:build faults

package faults

import (
	"fmt"
	"hash/fnv"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"testing"
	"time"
)

// The settings of `make faults`.
const (
	seedVariable   = "GOCRONTAB_FAULTS_SEED"
	longVariable   = "GOCRONTAB_FAULTS_LONG"   // any value: more repetitions
	reportVariable = "GOCRONTAB_FAULTS_REPORT" // a file to which the lines of the scenarios are appended
	binaryVariable = "GOCRONTAB_FAULTS_BINARY" // a program to use instead of building one
)

var (
	seed   = uint64(time.Now().UnixNano() % 1e9)
	long   = os.Getenv(longVariable) != ""
	binary = os.Getenv(binaryVariable)
)

func TestMain(m *testing.M) { os.Exit(run(m)) }

func run(m *testing.M) int {
	if text := os.Getenv(seedVariable); text != "" {
		n, err := strconv.ParseUint(text, 10, 64)
		if err != nil {
			fmt.Fprintf(os.Stderr, "%s=%q: want a number\n", seedVariable, text)
			return 2
		}
		seed = n
	}

	dir, err := os.MkdirTemp("", "gocrontab-faults-")
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	defer os.RemoveAll(dir)

	go watchMachine(dir)

	if binary == "" {
		binary = filepath.Join(dir, "go-crontab")
		build := exec.Command("go", "build", "-trimpath", "-buildvcs=false", "-o", binary, "../..")
		build.Env = append(os.Environ(), "CGO_ENABLED=0")
		build.Stderr = os.Stderr
		if err := build.Run(); err != nil {
			fmt.Fprintf(os.Stderr, "build the program: %v\n", err)
			return 1
		}
	}

	return m.Run()
}

// dice returns the random numbers of a scenario. They depend only on the seed and the name, not on
// parallel scenarios.
func dice(name string) *rand.Rand {
	h := fnv.New64a()
	h.Write([]byte(name))
	return rand.New(rand.NewPCG(seed, h.Sum64()))
}

// times returns a number of repetitions: in the gate, and in the long form.
func times(gate, longer int) int {
	if long {
		return longer
	}
	return gate
}
