package action

import (
	"cmp"
	"regexp"
)

var versionParts = regexp.MustCompile(`[0-9]+|[A-Za-z]+`)

// CompareVersions orders versions of modules: numbers as numbers, 1.2-rc1 before 1.2, and what is no version first.
func CompareVersions(a, b string) int {
	x, y := versionParts.FindAllString(a, -1), versionParts.FindAllString(b, -1)
	for i := range max(len(x), len(y)) {
		if c := cmp.Compare(rankOf(x, i), rankOf(y, i)); c != 0 {
			return c
		}
		if i >= len(x) {
			continue
		}
		if c := comparePart(x[i], y[i]); c != 0 {
			return c
		}
	}
	return cmp.Compare(a, b)
}

// rankOf puts letters before the end, and the end before numbers.
func rankOf(parts []string, i int) int {
	switch {
	case len(parts) == 0:
		return -1
	case i >= len(parts):
		return 1
	case isNumber(parts[i]):
		return 2
	}
	return 0
}

func isNumber(part string) bool { return part[0] >= '0' && part[0] <= '9' }

// comparePart compares two numbers, or two words. Numbers may be longer than any integer.
func comparePart(a, b string) int {
	if !isNumber(a) {
		return cmp.Compare(a, b)
	}
	for len(a) > 1 && a[0] == '0' {
		a = a[1:]
	}
	for len(b) > 1 && b[0] == '0' {
		b = b[1:]
	}
	return cmp.Or(cmp.Compare(len(a), len(b)), cmp.Compare(a, b))
}
