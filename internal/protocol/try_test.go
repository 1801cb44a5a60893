package protocol

import (
	"fmt"
	"testing"
	"time"
)

func TestTry(t *testing.T) {
	total := 0
	for _, w := range Worlds(false) {
		begin := time.Now()
		r := Search(&w)
		fmt.Println(w.Name, r.States, r.Total(), r.Steps, time.Since(begin).Round(time.Millisecond))
		total += r.Steps
		if r.Found != nil {
			fmt.Println(r.Found)
		}
	}
	fmt.Println(total)
}
