package variants

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/tutti-project/tutti/internal/fault"
	"github.com/tutti-project/tutti/internal/fleet"
)

func TestResourcesAreCompared(t *testing.T) {
	t.Parallel()
	var c Comparer
	for n := range 20 {
		i := (n + 7) % 20 // in any order
		name := fleet.Certname(fmt.Sprintf("n-%02d", i))
		for title, parameters := range map[string]string{
			"same":   `{"ensure":"present"}`,
			"mode":   fmt.Sprintf(`{"ensure":"file","mode":"064%d"}`, i/8),
			"mostly": []string{`{"a":1,"b":[1]}`, `{"a":1,"b":[2],"c":null}`, `{"a":1}`}[max(0, i-17)],
		} {
			if err := c.Add(name, title, json.RawMessage(parameters)); err != nil {
				t.Fatal(err)
			}
		}
	}
	all, err := c.Comparisons()
	if err != nil {
		t.Fatal(err)
	}
	var got []string
	for _, one := range all {
		got = append(got, fmt.Sprintf("%s on %d: %v", one.Title, one.Nodes, one.Differing))
		for _, v := range one.Variants {
			got = append(got, fmt.Sprintf("  %d %s %s", v.Nodes, v.Parameters, v.Examples))
		}
	}
	want := []string{
		"mode on 20: [mode]",
		`  8 {"ensure":"file","mode":"0640"} [n-00 n-01 n-02 n-03 n-04]`,
		`  8 {"ensure":"file","mode":"0641"} [n-08 n-09 n-10 n-11 n-12]`,
		`  4 {"ensure":"file","mode":"0642"} [n-16 n-17 n-18 n-19]`,
		"mostly on 20: [b c]",
		`  18 {"a":1,"b":[1]} [n-00 n-01 n-02 n-03 n-04]`,
		`  1 {"a":1,"b":[2],"c":null} [n-18]`,
		`  1 {"a":1} [n-19]`,
		"same on 20: []",
		`  20 {"ensure":"present"} [n-00 n-01 n-02 n-03 n-04]`,
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

func TestAComparisonIsBounded(t *testing.T) {
	t.Parallel()
	var c Comparer
	var err error
	added := 0
	for ; err == nil && added < 1000; added++ {
		err = c.Add("n", "t", json.RawMessage(fmt.Sprintf(`{"content":"%d%s"}`, added, strings.Repeat("x", 1<<20))))
	}
	if fault.Of(err) != fault.Invalid || added > 40 {
		t.Errorf("after %d: %v", added, err)
	}
}
