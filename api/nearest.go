package api

import "go-crontab/job"

// Nearest returns the name that a mistyped word probably means, or "".
func Nearest(word string, names []string) string { return job.Nearest(word, names) }

func nearest(word string, names []string) string { return job.Nearest(word, names) }
