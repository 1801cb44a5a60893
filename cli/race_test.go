//go:build race

package cli

func init() { raceFlags = []string{"-race"} }
