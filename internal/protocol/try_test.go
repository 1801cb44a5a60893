package protocol

import (
	"fmt"
	"testing"
	"time"
)

func TestTry(t *testing.T) {
	for _, w := range Worlds(false) {
		if w.Faults == 3 { continue }
		begin := time.Now()
		w.Faults++
		w.Most = 8_000_000
		r := Search(&w)
		fmt.Println(w.Name, r.States, r.Total(), r.Steps, r.Cut, time.Since(begin).Round(time.Millisecond))
		if r.Found != nil {
			fmt.Println(r.Found)
		}
	}
}
