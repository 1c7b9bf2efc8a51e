package fault_test

import (
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/tutti-project/tutti/internal/fault"
)

func TestCount(t *testing.T) {
	got := []string{
		fault.Count(0, "node"), fault.Count(1, "node"), fault.Count(2, "certificate request"), fault.Count(1, "query"),
		fault.Count(3, "query"), fault.Count(3, "day"), fault.Are(1, "node"), fault.Are(0, "node"), fault.Are(int64(2), "entry"),
	}
	want := []string{"0 nodes", "1 node", "2 certificate requests", "1 query", "3 queries", "3 days", "1 node is", "0 nodes are", "2 entries are"}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("numbers with their nouns (-want +got):\n%s", diff)
	}
}
