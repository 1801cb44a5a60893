// Package doctor looks for problems that break the promise or endanger it: in MySQL's settings, the
// rights, the schema, the nodes, the machine of a node, the jobs and the size of the history. It
// changes nothing and takes no locks.
//
// Each check is a function in the table checks. It judges facts that [Examine] reads once. For each
// problem it reports what it saw, why that matters, and how to fix it. A check that cannot look,
// because of a missing right or a failed query, says so and does not stop the others.
package doctor
