// Package crontab reads the crontabs of Debian's cron and of cronie, personal ones and those of the system, and says what
// each line is as a job. What would be done otherwise here is told with the line; what cannot be a job is refused, never
// guessed.
//
// It opens no file and knows no clock.
package crontab
