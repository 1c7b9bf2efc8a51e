package facts

import (
	"fmt"
	"strings"
	"testing"
)

func BenchmarkDiff(b *testing.B) {
	var before, after strings.Builder
	for i := range 250 {
		fmt.Fprintf(&before, `,"fact_%03d":{"value":"the value number %d"}`, i, i)
		fmt.Fprintf(&after, `,"fact_%03d":{"value":"the value number %d"}`, i, i+i/245)
	}
	a, z := []byte("{"+before.String()[1:]+"}"), []byte("{"+after.String()[1:]+"}")
	b.SetBytes(int64(len(a)))
	b.ReportAllocs()
	for b.Loop() {
		if changes, err := Diff(a, z); err != nil || len(changes) != 5 {
			b.Fatal(len(changes), err)
		}
	}
}
