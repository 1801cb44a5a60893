// Package manifest reads and writes files with jobs, and with the objects that jobs name, such as
// groups and calendars. The format is YAML or JSON.
//
// A file contains a job, a list of jobs, or an object with lists such as groups, calendars and
// jobs. A YAML file may have several documents. Only the server validates jobs: this package does
// not know their fields. The package remembers the line of each value. So an error of the server
// about jobs[3].schedule can be reported with a line in a file.
package manifest
