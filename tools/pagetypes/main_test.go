package main

import (
	"os"
	"testing"
)

// TestTypesAreCurrent holds that the console has the types of the API as it is.
func TestTypesAreCurrent(t *testing.T) {
	t.Parallel()

	want, err := types()
	if err != nil {
		t.Fatal(err)
	}
	got, err := os.ReadFile("../../page/src/types.ts")
	if err != nil {
		t.Fatal(err)
	}
	if string(got) != want {
		t.Error("page/src/types.ts is not what the API answers; make page-types writes it")
	}
}
