package fault

import (
	"cmp"
	"slices"
	"strings"
)

// mostNear is how many names are offered.
const mostNear = 3

// Near returns the names that somebody who wrote wanted may have meant, the nearest first: those that differ in case
// only, by few letters that are wrong, missing, too many or exchanged, that begin
// with what was written, or whose last word it is.
func Near(wanted string, names []string) []string {
	type candidate struct {
		name     string
		distance int
	}
	lower := strings.ToLower(wanted)
	var found []candidate
	for _, name := range names {
		distance := distanceOf(lower, strings.ToLower(name))
		if label, _, more := strings.Cut(strings.ToLower(name), "."); more { // of a host's name people write the first part
			distance = min(distance, distanceOf(lower, label))
		}
		switch {
		case wanted == "" || name == wanted:
			continue
		case distance <= farthest(lower):
		case len(lower) >= 3 && (strings.HasPrefix(strings.ToLower(name), lower) || strings.HasSuffix(strings.ToLower(name), "-"+strings.TrimLeft(lower, "-"))):
			distance = farthest(lower) + 1
		default:
			continue
		}
		found = append(found, candidate{name, distance})
	}
	slices.SortFunc(found, func(a, b candidate) int {
		return cmp.Or(cmp.Compare(a.distance, b.distance), strings.Compare(a.name, b.name))
	})
	near := make([]string, 0, mostNear)
	for _, c := range slices.CompactFunc(found, func(a, b candidate) bool { return a.name == b.name }) {
		if len(near) == mostNear {
			break
		}
		near = append(near, c.name)
	}
	return near
}

// DidYouMean is the question that an error about a name ends with: "did you mean a or b?"; empty when none is near.
func DidYouMean(wanted string, names []string) string {
	near := Near(wanted, names)
	if len(near) == 0 {
		return ""
	}
	last := len(near) - 1
	if last == 0 {
		return "did you mean " + near[0] + "?"
	}
	return "did you mean " + strings.Join(near[:last], ", ") + " or " + near[last] + "?"
}

// farthest is how many letters may be wrong: a third of them, at least one and at most three.
func farthest(wanted string) int { return min(max(len([]rune(wanted))/3, 1), 3) }

// distanceOf is how many letters have to be changed, added, left out or exchanged with their neighbour to make b of a:
// the optimal string alignment distance.
func distanceOf(a, b string) int {
	from, to := []rune(a), []rune(b)
	before, last, row := make([]int, len(to)+1), make([]int, len(to)+1), make([]int, len(to)+1)
	for j := range row {
		row[j] = j
	}
	for i, letter := range from {
		before, last, row = last, row, before
		row[0] = i + 1
		for j, other := range to {
			change := 1
			if letter == other {
				change = 0
			}
			row[j+1] = min(last[j]+change, last[j+1]+1, row[j]+1)
			if i > 0 && j > 0 && letter == to[j-1] && from[i-1] == other {
				row[j+1] = min(row[j+1], before[j-1]+1)
			}
		}
	}
	return row[len(to)]
}
