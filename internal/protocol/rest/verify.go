package rest

import (
	"context"
	"fmt"
	"slices"
	"strconv"
	"time"

	"github.com/tutti-project/tutti/api"
	"github.com/tutti-project/tutti/internal/compile"
	"github.com/tutti-project/tutti/internal/fault"
	"github.com/tutti-project/tutti/internal/fleet"
)

// Verifying compares catalogs with what plain Puppet gives.
type Verifying interface {
	// Verify verifies the catalog of a version, or of the current one, that a node has. Version is a digest or the beginning of one.
	Verify(ctx context.Context, node fleet.Certname, version string) (compile.Verification, error)
	// Sample is nodes that stand for the n largest sets of classes in env.
	Sample(ctx context.Context, env fleet.Environment, n int) ([]fleet.Certname, error)
	Verifications(ctx context.Context, f compile.VerificationFilter) ([]compile.Verification, error)
}

// mayVerify asks for the right to have a node's catalog compiled, and to read it: differences show what is in it.
func (h *compilations) mayVerify(ctx context.Context, request api.CompileVerifyRequest) (about string, err error) {
	node, err := fleet.ParseCertname(request.Node)
	if err != nil {
		return "", err
	}
	for _, permission := range []fleet.Permission{fleet.CompileRun, fleet.CatalogRead} {
		if err := h.gate.allow(ctx, permission, fleet.Object{Node: node}); err != nil {
			return "", err
		}
	}
	return request.Node, nil
}

func (h *compilations) verifyCatalog(ctx context.Context, request api.CompileVerifyRequest) (api.Verification, error) {
	v, err := h.verifying.Verify(ctx, fleet.Certname(request.Node), request.Version)
	return verificationOf(v), err
}

func (h *compilations) sampleNodes(ctx context.Context, request api.CompileSampleRequest) (api.List[string], error) {
	list := api.List[string]{Items: []string{}}
	env, err := fleet.ParseEnvironment(request.Environment)
	if err != nil {
		return list, err
	}
	if request.Sample < 1 || request.Sample > maxIDs {
		return list, fault.New(fault.Invalid, "sample is %d, it must be from 1 to %d", request.Sample, maxIDs)
	}
	nodes, err := h.verifying.Sample(ctx, env, request.Sample)
	if err != nil {
		return list, err
	}
	nodes, err = seen(ctx, h.gate, fleet.CatalogRead, nodes, func(node fleet.Certname) fleet.Object {
		return fleet.Object{Node: node, Environment: env}
	})
	for _, node := range nodes {
		list.Items = append(list.Items, string(node))
	}
	return list, err
}

func (h *compilations) listVerifications(ctx context.Context, request api.CompileVerifiedRequest) (api.List[api.Verification], error) {
	list := api.List[api.Verification]{Items: []api.Verification{}}
	f := compile.VerificationFilter{
		Node: fleet.Certname(request.Node), Environment: fleet.Environment(request.Environment), Version: fleet.Digest(request.Version),
		Outcome: compile.VerifyOutcome(request.Outcome), Limit: request.Limit,
	}
	if f.Outcome != "" && !slices.Contains(compile.VerifyOutcomes(), f.Outcome) {
		return list, fault.New(fault.Invalid, "%.40q is no outcome: same, differs, not-comparable or failed", request.Outcome)
	}
	if request.After != "" {
		before, err := strconv.ParseInt(request.After, 10, 64)
		if err != nil || before < 1 {
			return list, fault.New(fault.Invalid, "after is %.40q, no number of a verification", request.After)
		}
		f.Before = before
	}
	if f.Limit < 1 || f.Limit > maxIDs {
		f.Limit = maxIDs
	}
	rows, err := h.verifying.Verifications(ctx, f)
	if err != nil {
		return list, err
	}
	if len(rows) == f.Limit {
		list.Next = fmt.Sprint(rows[len(rows)-1].ID)
	}
	rows, err = seen(ctx, h.gate, fleet.CatalogRead, rows, func(v compile.Verification) fleet.Object {
		return fleet.Object{Node: v.Node, Environment: v.Environment}
	})
	for _, v := range rows {
		list.Items = append(list.Items, verificationOf(v))
	}
	return list, err
}

func verificationOf(v compile.Verification) api.Verification {
	out := api.Verification{
		ID: v.ID, Node: string(v.Node), Environment: string(v.Environment), Version: string(v.Version), Catalog: string(v.Catalog), Outcome: string(v.Outcome),
		Cause: string(v.Cause), Reason: v.Reason, Differences: make([]api.VerifyDifference, 0, len(v.Differences)), Count: v.Count,
		WallMillis: v.Wall.Milliseconds(), At: v.At.UTC().Truncate(time.Millisecond),
	}
	for _, d := range v.Differences {
		out.Differences = append(out.Differences, api.VerifyDifference(d))
	}
	return out
}

// verifiedOf is what code status says of a version; nil: nothing was verified.
func verifiedOf(s compile.CodeStatus) *api.CodeVerified {
	if len(s.Verified) == 0 {
		return nil
	}
	out := &api.CodeVerified{
		Same: s.Verified[compile.Same], Differs: s.Verified[compile.Differs], NotComparable: s.Verified[compile.NotComparable],
		Failed: s.Verified[compile.NotVerified],
	}
	for _, node := range s.Wrong {
		out.Nodes = append(out.Nodes, string(node))
	}
	return out
}
