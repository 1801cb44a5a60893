// Package audit keeps the audit honest: it chains audit lines by hashes, verifies that chain, and copies the lines to a file
// or to syslog.
//
// The chain shows that a line was changed or removed by somebody who may write the table. It does not keep anybody from
// inserting lines, and whoever may write both tables can compute the whole chain again. A head that is kept outside MySQL
// shows that: nodes write it to their log each hour, and every line of a copy has it.
package audit
