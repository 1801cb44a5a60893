package job

import "time"

// Preview returns the first n due times after from; fewer when there are no more.
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
