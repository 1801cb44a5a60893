package job

import "strings"

// Nearest returns the name that a mistyped word probably means. A name with few changed letters
// ("comand") wins over a name that the word abbreviates ("cmd", "tz"). If no name is near, it
// returns "".
func Nearest(word string, names []string) string {
	if len(word) > 40 {
		return ""
	}

	word = strings.ToLower(word)
	best, least := "", max(1, len(word)/3)+1
	for _, name := range names {
		if d := distance(word, strings.ToLower(name)); d < least {
			best, least = name, d
		}
	}

	for _, name := range names {
		lower := strings.ToLower(name)
		if best == "" && len(word) > 1 && word[0] == lower[0] && shortens(word, lower) {
			best = name
		}
	}

	return best
}

// distance is how many letters must be changed to get from a to b. A change replaces, adds or
// removes a letter, or swaps two neighbours.
func distance(a, b string) int {
	// before and last are the rows of the two previous prefixes of a.
	before, last := make([]int, len(b)+1), make([]int, len(b)+1)
	for j := range last {
		last[j] = j
	}

	for i := range len(a) {
		row := make([]int, len(b)+1)
		row[0] = i + 1
		for j := range len(b) {
			cost := last[j]
			if a[i] != b[j] {
				cost++
			}
			if i > 0 && j > 0 && a[i] == b[j-1] && a[i-1] == b[j] {
				cost = min(cost, before[j-1]+1)
			}
			row[j+1] = min(cost, row[j]+1, last[j+1]+1)
		}

		before, last = last, row
	}

	return last[len(b)]
}

// shortens reports whether long contains the letters of short in order.
func shortens(short, long string) bool {
	for _, r := range short {
		i := strings.IndexRune(long, r)
		if i < 0 {
			return false
		}
		long = long[i+1:]
	}
	return true
}
