package main

import (
	"slices"
	"strings"
	"testing"
)

func TestCompare(t *testing.T) {
	t.Parallel()

	read := func(text string) map[string]float64 {
		t.Helper()
		m, err := medians(strings.NewReader(text))
		if err != nil {
			t.Fatal(err)
		}
		return m
	}

	before := read(`goos: linux
pkg: a
BenchmarkOne/x-2   100  900 ns/op  16 B/op  10 allocs/op
BenchmarkOne/x-2   100  900 ns/op  16 B/op  10 allocs/op
BenchmarkOne/x-2   100  900 ns/op  16 B/op  99 allocs/op
BenchmarkTwo-2     100  900 ns/op  16 B/op  1000 allocs/op
BenchmarkGone-2    100  900 ns/op  16 B/op  0 allocs/op
pkg: b
BenchmarkOne/x-2   100  900 ns/op  16 B/op  3 allocs/op
PASS
`)

	now := read(`pkg: a
BenchmarkOne/x-8   100  100 ns/op  16 B/op  11 allocs/op
BenchmarkTwo-8     100  9999 ns/op  16 B/op  1009 allocs/op
BenchmarkNew-8     100  9999 ns/op  16 B/op  5 allocs/op
pkg: b
BenchmarkOne/x-8   100  900 ns/op  2.5 calls/s 16 B/op  2 allocs/op
`)

	want := []string{"a.BenchmarkGone: is in the baseline, and was not measured",
		"a.BenchmarkOne/x: 11 allocations, 10 before"}
	if got := compare(before, now); !slices.Equal(got, want) {
		t.Errorf("got %q, want %q", got, want)
	}

	if _, err := medians(strings.NewReader("PASS\n")); err == nil {
		t.Error("output without benchmarks was taken")
	}
}
