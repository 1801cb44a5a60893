// Package result finishes runs: it writes how they ended. It is the second edition, built beside the first one.
package result
