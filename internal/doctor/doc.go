// Package doctor looks for what would break the promise, or has broken it already: settings of MySQL, rights, the schema,
// nodes, the machine of a node, jobs, the size of the history. It changes nothing and takes no lock.
//
// A check is a function in a table, see checks. It looks at facts that are read once, in [Examine], and says for each
// thing that is not as it should be what it saw, why that matters, and how it is mended. A check that cannot look, for
// lack of a right or because what it asks failed, says so, and holds up no other.
package doctor
