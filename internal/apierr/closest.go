package apierr

import "strings"

// Closest returns the name that was probably meant by an unknown one, "" when none is near.
func Closest(unknown string, names []string) string {
	best, meant := len(unknown)/3+1, ""
	for _, name := range names {
		if d := Distance(strings.ToLower(unknown), strings.ToLower(name)); d <= best {
			best, meant = d-1, name
		}
	}
	return meant
}

// comparedBytes is the length of the longest name that is compared with others.
const comparedBytes = 64

// Distance is the number of bytes to insert, delete or replace to get from a to b; of a very long a, its length.
func Distance(a, b string) int {
	if len(a) > comparedBytes {
		return len(a)
	}
	row := make([]int, len(b)+1)
	for j := range row {
		row[j] = j
	}
	for i := range len(a) {
		diagonal := row[0]
		row[0] = i + 1
		for j := range len(b) {
			cost := diagonal
			if a[i] != b[j] {
				cost++
			}
			diagonal = row[j+1]
			row[j+1] = min(cost, row[j]+1, row[j+1]+1)
		}
	}
	return row[len(b)]
}
