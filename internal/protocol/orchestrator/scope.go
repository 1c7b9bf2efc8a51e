package orchestrator

import (
	"bytes"
	"encoding/json"
	"maps"
	"slices"
	"strings"

	"github.com/tutti-project/tutti/internal/fault"
	"github.com/tutti-project/tutti/internal/fleet"
	"github.com/tutti-project/tutti/internal/job"
)

// scope is which nodes an order means.
type scope struct {
	targets job.Targets
	whole   bool // all nodes of the environment
	none    bool // nobody was named
}

// scopeKeys are the keys of a scope, of which it has one.
var scopeKeys = []string{"application", "node_group", "nodes", "query", "whole_environment"}

// scopeOf reads a scope. An empty object, and null, are none.
func (h *Handler) scopeOf(text json.RawMessage) (s scope, err error) {
	object := map[string]json.RawMessage{}
	if len(text) > 0 && json.Unmarshal(text, &object) != nil {
		return s, h.invalid("scope", "it is an object with one of %s", strings.Join(scopeKeys, ", "))
	}
	maps.DeleteFunc(object, func(_ string, value json.RawMessage) bool { return isNull(value) })
	keys := slices.Sorted(maps.Keys(object))
	switch {
	case len(keys) == 0:
		return scope{none: true}, nil
	case len(keys) > 1:
		return s, h.invalid("scope", "it has one key, not %s", strings.Join(keys, " and "))
	}
	value := object[keys[0]]
	switch keys[0] {
	case "nodes":
		s.targets.Nodes, err = h.nodesOf("scope.nodes", value)
		s.none = err == nil && len(s.targets.Nodes) == 0
		if s.none {
			return s, h.bad(emptyTarget, nil, "field scope.nodes: it names no node; nothing was started")
		}
	case "query":
		s.targets.Query, err = h.queryOf(value)
	case "node_group":
		s.targets.Group, err = h.textOf("scope.node_group", value)
	case "application":
		s.targets.App, err = h.textOf("scope.application", value)
	case "whole_environment":
		s.whole = string(value) == "true"
		if !s.whole {
			err = h.invalid("scope.whole_environment", "it can only be true")
		}
	default:
		err = h.invalid("scope", "it has one of %s, not %.40q", strings.Join(scopeKeys, ", "), keys[0])
	}
	return s, err
}

func isNull(text json.RawMessage) bool { return len(text) == 0 || string(text) == "null" }

func (h *Handler) textOf(field string, value json.RawMessage) (text string, err error) {
	if json.Unmarshal(value, &text) != nil || strings.TrimSpace(text) == "" {
		return "", h.invalid(field, "it is a text that is not empty")
	}
	return text, nil
}

// queryOf is PQL, or the same as a list.
func (h *Handler) queryOf(value json.RawMessage) (string, error) {
	if bytes.HasPrefix(value, []byte("[")) {
		return string(value), nil
	}
	text, err := h.textOf("scope.query", value)
	if err != nil {
		return "", h.bad(queryError, nil, "field scope.query: it is a query as a text or as a list")
	}
	return text, nil
}

func (h *Handler) nodesOf(field string, value json.RawMessage) ([]fleet.Certname, error) {
	var names []string
	if json.Unmarshal(value, &names) != nil {
		return nil, h.invalid(field, "it is a list of certnames")
	}
	return h.certnames(field, names)
}

func (h *Handler) certnames(field string, names []string) ([]fleet.Certname, error) {
	if len(names) > job.MaxTargets {
		return nil, h.invalid(field, "at most %d nodes can be named", job.MaxTargets)
	}
	nodes := make([]fleet.Certname, len(names))
	for i, name := range names {
		node, err := fleet.ParseCertname(name)
		if err != nil {
			return nil, h.invalid(field, "%s", fault.Detail(err))
		}
		nodes[i] = node
	}
	return nodes, nil
}

// scopeView is the scope of a job.
func scopeView(t job.Targets) any {
	switch {
	case t.Query != "":
		return map[string]string{"query": t.Query}
	case t.Group != "":
		return map[string]string{"node_group": t.Group}
	case t.App != "":
		return map[string]string{"application": t.App}
	case len(t.Nodes) > 0:
		return map[string][]fleet.Certname{"nodes": t.Nodes}
	}
	return struct{}{}
}
