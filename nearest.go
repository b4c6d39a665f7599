package rhizodat

import "strings"

// nearest returns the candidate that begins with name, else the one with the
// smallest edit distance (Levenshtein) to it; the first of equals. Case does not
// count.
func nearest(name string, candidates []string) string {
	name = strings.ToLower(name)
	best, least := "", -1
	for _, candidate := range candidates {
		if strings.HasPrefix(candidate, name) {
			return candidate
		}
		if d := editDistance(name, candidate); least < 0 || d < least {
			best, least = candidate, d
		}
	}
	return best
}

// editDistance counts the bytes to insert, delete or replace to make b of a.
func editDistance(a, b string) int {
	row := make([]int, len(b)+1)
	for j := range row {
		row[j] = j
	}
	for i := range len(a) {
		diagonal := row[0]
		row[0] = i + 1
		for j := range len(b) {
			replaced := diagonal
			if a[i] != b[j] {
				replaced++
			}
			diagonal = row[j+1]
			row[j+1] = min(replaced, row[j]+1, row[j+1]+1)
		}
	}
	return row[len(b)]
}
