package query

import (
	"encoding/json"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// FuzzReadLeaves compares with encoding/json.
func FuzzReadLeaves(f *testing.F) {
	for _, list := range []string{`[]`, `[["a.b",4,"x"]]`, `[["a", 2, "17"], ["b[0]", 0, null]]`, `[["\u00e9\"",1,"tr\\ue"]]`, `[["a"`, `[["a",4,"x"],]`} {
		f.Add(list)
	}
	f.Fuzz(func(t *testing.T, list string) {
		got, err := readLeaves(list)
		var want [][3]any
		if json.Unmarshal([]byte(list), &want) != nil || err != nil {
			return
		}
		if len(got) != len(want) {
			t.Fatalf("%q: %d leaves, want %d", list, len(got), len(want))
		}
		for i, row := range want {
			path, _ := row[0].(string)
			kind, _ := row[1].(float64)
			text, _ := row[2].(string)
			if diff := cmp.Diff([]any{path, kind, text}, []any{got[i].path, float64(got[i].kind), got[i].text}); diff != "" {
				t.Errorf("%q (-want +got):\n%s", list, diff)
			}
		}
	})
}

func TestReadLeaves(t *testing.T) {
	t.Parallel()
	got, err := readLeaves(`[["a.b", 4, "x"],["c[0]",2,"17"], ["\u00e9\"q",0,null]]`)
	want := []listedLeaf{{"a.b", "x", 4}, {"c[0]", "17", 2}, {"\u00e9\"q", "", 0}}
	if diff := cmp.Diff(want, got, cmp.AllowUnexported(listedLeaf{})); diff != "" || err != nil {
		t.Errorf("%v (-want +got):\n%s", err, diff)
	}
	for _, wrong := range []string{``, `[`, `[["a",4]]`, `[["a",x,"y"]]`, `[["a",1,"y"`, `[["a\`} {
		if rows, err := readLeaves(wrong); err == nil {
			t.Errorf("%q is read as %v", wrong, rows)
		}
	}
}
