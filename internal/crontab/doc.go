// Package crontab reads personal and system crontabs of Debian's cron and of cronie, and converts
// each line to a job. Each line has notes about differences from cron. A line that cannot become a
// job is refused. The package never guesses.
//
// The package opens no file and reads no clock.
package crontab
