// Package doctor looks for problems that break or endanger the promise. It looks at MySQL's
// settings, the rights, the schema, the nodes, the machine of a node, the jobs and the size of the
// history. It changes nothing and takes no locks.
//
// Each check is a function in the table checks. It judges facts that [Examine] reads once. For
// each problem it reports what it saw, why that matters, and how to fix it. If a check cannot
// look, because a right is missing or a query failed, it says so, and the other checks go on.
package doctor
