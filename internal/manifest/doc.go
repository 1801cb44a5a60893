// Package manifest reads and writes files with jobs, and the groups and calendars that jobs name: YAML or JSON.
//
// A file is one job, a list of jobs, or an object with the lists groups, calendars and jobs; of YAML it may hold several
// documents. What a job may have is not known here: the server alone says what is valid. This package knows where each
// value stands, so that what the server says of jobs[3].schedule can be told of a line in a file.
package manifest
