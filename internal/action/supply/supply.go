// Package supply says which modules of actions a node has from the code of its environment: the folders MODULE/tutti/NAME of the version that
// the node's catalogs are of. A node in released mode has those of the version that was released to it, another one those of the version
// that its environment uses.
//
// A node may fetch exactly the files of these modules: nothing of other environments, and nothing else of its own.
//
// # Errors
//
// An environment without code supplies nothing. Otherwise those of its parts.
//
// # Concurrency
//
// A Service holds no state.
package supply

import (
	"context"
	"strings"

	"github.com/tutti-project/tutti/internal/action"
	"github.com/tutti-project/tutti/internal/code"
	"github.com/tutti-project/tutti/internal/fault"
	"github.com/tutti-project/tutti/internal/fleet"
)

// Places knows of which code nodes are.
type Places interface {
	// CodeOf is a node's environment and the version of its code that counts for the node; NotFound when the environment has no code.
	CodeOf(ctx context.Context, node fleet.Certname) (fleet.Environment, fleet.Digest, error)
}

// Trees knows versions; *code.Library is one.
type Trees interface {
	// Tree is a version; NotFound.
	Tree(ctx context.Context, env fleet.Environment, id code.VersionID) (*code.Tree, error)
}

// Service answers nodes.
type Service struct {
	Places Places
	Trees  Trees
}

// Supply is what a node has.
func (s Service) Supply(ctx context.Context, node fleet.Certname) (action.Supply, error) {
	env, version, err := s.Places.CodeOf(ctx, node)
	if fault.Is(err, fault.NotFound) {
		return action.NewSupply(env, nil), nil
	}
	if err != nil {
		return action.Supply{}, err
	}
	tree, err := s.Trees.Tree(ctx, env, version)
	if err != nil {
		return action.Supply{}, err
	}
	return Of(tree), nil
}

// MayHave says whether a node may fetch a content: a file of what it has.
func (s Service) MayHave(ctx context.Context, node fleet.Certname, content fleet.Digest) (bool, error) {
	supply, err := s.Supply(ctx, node)
	if err != nil {
		return false, err
	}
	for _, m := range supply.Modules {
		for _, f := range m.Files {
			if f.Digest == content {
				return true, nil
			}
		}
	}
	return false, nil
}

// Of is what a version supplies.
func Of(tree *code.Tree) action.Supply {
	var found []action.Supplied
	for _, module := range tree.Modules() {
		folders := map[string]int{} // their places in found
		for _, f := range tree.ModuleFiles(module.Name, action.SupplyDir) {
			name, path, inside := strings.Cut(f.Path, "/")
			if !inside {
				continue
			}
			i, known := folders[name]
			if !known {
				i = len(found)
				folders[name] = i
				found = append(found, action.Supplied{Name: name, Module: module.Name})
			}
			found[i].Files = append(found[i].Files, action.SuppliedFile{Path: path, Digest: f.File.Digest, Size: f.File.Size})
		}
	}
	return action.NewSupply(tree.Environment(), found)
}
