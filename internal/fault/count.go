package fault

import (
	"fmt"
	"strings"
)

// Count is a number of things as sentences have it: "1 node", "2 nodes", "0 queries".
func Count[N int | int64 | uint64](n N, noun string) string {
	if n == 1 {
		return "1 " + noun
	}
	if stem, ok := strings.CutSuffix(noun, "y"); ok && !strings.HasSuffix(stem, "a") {
		noun = stem + "ie" // queries, but days
	}
	return fmt.Sprintf("%d %ss", n, noun)
}

// Are is a number of things that are the subject of a sentence: "1 node is", "2 nodes are".
func Are[N int | int64 | uint64](n N, noun string) string {
	if n == 1 {
		return Count(n, noun) + " is"
	}
	return Count(n, noun) + " are"
}
