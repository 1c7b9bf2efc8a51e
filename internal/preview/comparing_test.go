package preview

import (
	"bytes"
	"fmt"
	"testing"

	"github.com/tutti-project/tutti/internal/cas/castest"
	"github.com/tutti-project/tutti/internal/catalog"
	"github.com/tutti-project/tutti/internal/deliver"
	"github.com/tutti-project/tutti/internal/fleet"
	"github.com/tutti-project/tutti/internal/policy"
)

// Previews and releases name what loses all or most, and policies see it.
func TestFindingsOfLosses(t *testing.T) {
	t.Parallel()
	blobs := castest.New()
	document := func(resources int) fleet.Digest {
		t.Helper()
		text := `{"name":"a","resources":[{"type":"Stage","title":"main"},{"type":"Class","title":"main"}`
		for i := range resources {
			text += fmt.Sprintf(`,{"type":"Notify","title":"%d"}`, i)
		}
		normal, _, err := catalog.Normalise([]byte(text+"]}"), nil)
		if err != nil {
			t.Fatal(err)
		}
		digest, _, err := blobs.Put(t.Context(), bytes.NewReader(normal))
		if err != nil {
			t.Fatal(err)
		}
		return digest
	}
	groups, err := NewComparing(blobs, nil, deliver.Limits{Hold: 0, Warn: 50})
	if err != nil {
		t.Fatal(err)
	}
	four := document(4)
	for number, left := range []int{0, 1, 2, 0} {
		if _, err := groups.Add(t.Context(), uint32(number), fleet.Certname(fmt.Sprint("web-", number)), Pair{Base: four, Fresh: document(left)}); err != nil {
			t.Fatal(err)
		}
	}
	found := map[string]int{}
	rule, err := policy.Compile(policy.Rule{
		Name: "r", Definition: policy.Definition{Effect: policy.Deny, Message: "m", When: `change.kind in ["lost-all", "lost-most"]`},
	})
	if err != nil {
		t.Fatal(err)
	}
	subject := policy.Subject{Environment: "production"}
	verdict, err := policy.Judge(t.Context(), []policy.Compiled{rule}, nil, subject, func(yield func(policy.Change, error) bool) {
		for g, err := range groups.Groups(func(n uint32) string { return fmt.Sprint("web-", n) }) {
			found[g.Change.Change] += len(g.Nodes)
			if !yield(changeOf(g.Change, g.Nodes, false), err) {
				return
			}
		}
	})
	if err != nil || len(verdict.Findings) != 1 || verdict.Findings[0].Nodes != 3 {
		t.Errorf("the policy found %+v, %v; want three nodes", verdict.Findings, err)
	}
	if found[deliver.LostAll] != 2 || found[deliver.LostMost] != 1 {
		t.Errorf("findings %v, want two that lost all and one that lost most", found)
	}
}
