// Command zones prints what the time zones that it is given are at the begin of July 2027, and in what folders it could
// have found them.
package main

import (
	"fmt"
	"os"
	"time"

	"go-crontab/job"
)

func main() {
	for _, name := range os.Args[1:] {
		loc, err := job.LoadZone(name)
		if err != nil {
			fmt.Println(err)
			continue
		}
		fmt.Println(loc, time.Unix(1_814_400_000, 0).In(loc).Format("-07:00"))
	}
	entries, err := os.ReadDir("/")
	fmt.Println("files:", len(entries), err)
}
