package rest

import (
	"context"
	"errors"

	"github.com/tutti-project/tutti/api"
	"github.com/tutti-project/tutti/internal/compile"
	"github.com/tutti-project/tutti/internal/fault"
	"github.com/tutti-project/tutti/internal/fleet"
)

// Lookups asks Hiera; checkin.Lookups does. The errors are its own.
type Lookups interface {
	// Where is the environment that a node gets its data from, and the version of it; a requested one goes first.
	Where(ctx context.Context, node fleet.Certname, requested fleet.Environment) (fleet.Environment, fleet.Digest, error)
	Lookup(ctx context.Context, node fleet.Certname, env fleet.Environment, version fleet.Digest, question compile.Lookup) (compile.Looked, error)
}

// lookups answers node.lookup.
type lookups struct {
	gate    *gate
	roster  *roster
	lookups Lookups
}

func (h *lookups) bindings() []binding { return []binding{answer(api.NodeLookup, h.lookup)} }

// Bounds of a question.
const (
	maxKeys    = 100
	maxKeySize = 1000
)

func (h *lookups) lookup(ctx context.Context, request api.NodeLookupRequest) (answer api.LookedUp, err error) {
	node, err := fleet.ParseCertname(request.Name)
	if err != nil {
		return answer, err
	}
	question, err := questionOf(request)
	if err != nil {
		return answer, err
	}
	var requested fleet.Environment
	if request.Environment != "" {
		if requested, err = fleet.ParseEnvironment(request.Environment); err != nil {
			return answer, err
		}
	}
	if err := h.gate.allow(ctx, fleet.CatalogRead, fleet.Object{Node: node}); err != nil {
		return answer, err
	}
	if err := h.roster.checkNodes(ctx, []fleet.Certname{node}); err != nil {
		return answer, fault.New(fault.NotFound, "nothing is known of node %s; see `tutti node list`", node)
	}
	env, version, err := h.lookups.Where(ctx, node, requested)
	if err != nil {
		return answer, err
	}
	if err := h.gate.allow(ctx, fleet.PreviewCreate, fleet.Object{Node: node, Environment: env}); err != nil {
		return answer, err
	}
	looked, err := h.lookups.Lookup(ctx, node, env, version, question)
	if failure, ok := errors.AsType[*compile.Error](err); ok {
		looked, err = lookupFailed(failure)
	}
	if err != nil {
		return answer, err
	}
	answer = api.LookedUp{
		Node: string(node), Environment: string(env), Version: string(version), Keys: request.Keys, Found: looked.Found, Value: looked.Value,
		Hidden: looked.Hidden, Explanation: looked.Explanation, Problem: looked.Problem,
	}
	for _, l := range looked.Logs {
		answer.Logs = append(answer.Logs, api.CompileLog(l))
	}
	return answer, nil
}

// lookupFailed is why code gives no answer; what is not known of the node is an error.
func lookupFailed(e *compile.Error) (compile.Looked, error) {
	if e.Cause == compile.CauseInput {
		return compile.Looked{}, fault.New(fault.NotFound, "%s", e.Plain())
	}
	return compile.Looked{Problem: fleet.Placed(e.File, e.Line, e.Plain()), Logs: e.Logs}, nil
}

func questionOf(request api.NodeLookupRequest) (q compile.Lookup, err error) {
	if len(request.Keys) == 0 || len(request.Keys) > maxKeys {
		return q, fault.New(fault.Invalid, "field keys: 1 to %d keys, such as app::port, not %d", maxKeys, len(request.Keys))
	}
	for _, key := range request.Keys {
		if key == "" || len(key) > maxKeySize {
			return q, fault.New(fault.Invalid, "field keys: a key has 1 to %d bytes, not %d", maxKeySize, len(key))
		}
	}
	q = compile.Lookup{Keys: request.Keys, Default: request.Default, Explain: request.Explain, Compile: request.Compile}
	deep := request.KnockoutPrefix != "" || request.SortMergedArrays || request.MergeHashArrays
	switch request.Merge {
	case "":
	case "first", "unique", "hash", "deep":
		q.Merge = &compile.Merge{
			Strategy: request.Merge, KnockoutPrefix: request.KnockoutPrefix,
			SortMergedArrays: request.SortMergedArrays, MergeHashArrays: request.MergeHashArrays,
		}
	default:
		return q, fault.New(fault.Invalid, "field merge: first, unique, hash or deep, not %.40q", request.Merge)
	}
	if deep && request.Merge != "deep" {
		return q, fault.New(fault.Invalid, "knockout_prefix, sort_merged_arrays and merge_hash_arrays are for merge deep only")
	}
	return q, nil
}
