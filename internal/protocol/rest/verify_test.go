package rest_test

import (
	"context"
	"testing"
	"time"

	"github.com/tutti-project/tutti/internal/compile"
	"github.com/tutti-project/tutti/internal/compile/compiletest"
	"github.com/tutti-project/tutti/internal/fleet"
)

// verifying has one difference, of web-1 in production, and finds all other catalogs in order.
type verifying struct{ *compiletest.Verified }

func newVerifying(t *testing.T) verifying {
	t.Helper()
	v := verifying{compiletest.NewQueue().Verifications}
	_, err := v.SaveVerification(t.Context(), compile.Verification{
		Node: "web-1", Environment: "production", Version: "v", Catalog: "c", Outcome: compile.Differs, Cause: compile.Sampled, Count: 1, At: time.Unix(1, 0),
		Differences: []compile.Difference{{Resource: "File[/x]", What: "parameter mode", Tutti: `"0644"`, Plain: `"0600"`}},
	})
	check(t, err)
	return v
}

func (v verifying) Verify(ctx context.Context, node fleet.Certname, version string) (compile.Verification, error) {
	return v.SaveVerification(ctx, compile.Verification{
		Node: node, Environment: "production", Version: fleet.Digest(version), Outcome: compile.Same, Cause: compile.ByHand, At: time.Unix(2, 0),
	})
}

func (v verifying) Sample(context.Context, fleet.Environment, int) ([]fleet.Certname, error) {
	return []fleet.Certname{"web-1", "db-1"}, nil
}

func TestVerify(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	b.contains(t, "GET", "/compile/verifications", "", 200, `"node":"web-1"`, `"outcome":"differs"`, `"cause":"sample"`,
		`{"resource":"File[/x]","what":"parameter mode","tutti":"\"0644\"","plain":"\"0600\""}`)
	b.contains(t, "GET", "/compile/verifications?outcome=same", "", 200, `"items":[]`)
	b.contains(t, "GET", "/compile/verifications?outcome=good", "", 400, "no outcome")
	b.contains(t, "GET", "/compile/verifications?after=x", "", 400, "no number")
	b.contains(t, "POST", "/compile/verify", `{"node":"web-1","version":"abc"}`, 200, `"outcome":"same"`, `"version":"abc"`, `"cause":"hand"`)
	b.contains(t, "POST", "/compile/verify", `{"node":"Not A Node"}`, 400)
	b.contains(t, "GET", "/compile/sample?environment=production&sample=2", "", 200, `["web-1","db-1"]`)
	b.contains(t, "GET", "/compile/sample?environment=production", "", 400, "sample is 0")
}
