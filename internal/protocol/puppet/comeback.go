package puppet

import (
	"strconv"
	"strings"
)

// ComesBack says whether an agent of that version does what Retry-After asks of
// it. Agents from 6.13 on close the connection while they still read the answer,
// and fail; 7.26 and 8.2 mended that (PUP-11853). Agents before 6.13 could, but
// are not worth a rule. A client that names no version is no agent.
func ComesBack(version string) bool {
	if version == "" {
		return true
	}
	first, rest, _ := strings.Cut(version, ".")
	second, _, _ := strings.Cut(rest, ".")
	major, err := strconv.Atoi(first)
	if err != nil {
		return true
	}
	minor, _ := strconv.Atoi(second)
	switch major {
	case 7:
		return minor >= 26
	case 8:
		return minor >= 2
	}
	return major > 8
}
