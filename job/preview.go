package job

import "time"

// Preview returns the first n due times after from. If there are fewer, it returns all of them.
func Preview(s Schedule, from time.Time, n int) []time.Time {
	var due []time.Time
	for len(due) < n {
		next, ok := s.Next(from)
		if !ok {
			break
		}
		due = append(due, next)
		from = next
	}

	return due
}
