package classify

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/tutti-project/tutti/internal/fault"
	"github.com/tutti-project/tutti/internal/fleet"
)

// ClassKnown is what is known of a class that groups name.
type ClassKnown struct {
	Found      bool
	Unread     bool     // what should define it cannot be read: nothing is known
	Parameters []string // of one that was found
	Near       []string // classes that may have been meant, of one that was not
}

// Possessions is what code and nodes have of what groups name.
type Possessions struct {
	// Code says what an environment's code has of the classes; of AgentSpecified that is what any environment's has. An environment that is
	// missing is not known, and one with nil has no code.
	Code map[string]map[string]ClassKnown
	// Facts has the paths, as rules write them, that some node has a value at; nil: of no node are facts known.
	Facts map[string]bool
	// Nodes are the known ones of those that are pinned.
	Nodes map[fleet.Certname]bool
}

// EnvironmentOf is the environment of a group's nodes as far as it and the groups above it say; AgentSpecified where that is open.
func (t *Tree) EnvironmentOf(id ID) string {
	for _, group := range t.Gate(id).way {
		if group.Environment != "" {
			return group.Environment
		}
	}
	return AgentSpecified
}

// ClassNames lists the classes that the group names, each once.
func (g Group) ClassNames() []string {
	names := slices.Concat(slices.Collect(maps.Keys(g.Classes)), slices.Collect(maps.Keys(g.Data)))
	slices.Sort(names)
	return slices.Compact(names)
}

// FactPaths is what the group's own rule looks at of facts: from the inventory's spelling of a path to the rules'.
func (g Group) FactPaths() map[string]string {
	paths := map[string]string{}
	if g.Rule != nil {
		g.Rule.walk(func(r Rule) {
			if r.Path.Root == Fact {
				paths[factPath(r.Path)] = r.Path.String()
			}
		})
	}
	return paths
}

// maxDoubts is how many things of one sort are named.
const maxDoubts = 10

// Doubts says what the group names and nothing has: classes and parameters that are not in the code of env, its environment, facts in its rule that
// no node has, pinned nodes that nobody knows. All of it may still come.
func (g Group) Doubts(env string, has Possessions) []string {
	doubts := g.codeDoubts(env, has.Code)
	if has.Facts != nil {
		var unknown []string
		for _, path := range g.FactPaths() {
			if !has.Facts[path] {
				unknown = append(unknown, path)
			}
		}
		slices.Sort(unknown)
		for _, path := range firstDoubts(unknown) {
			doubts = append(doubts, fmt.Sprintf("no node has a value at %s, which the rule looks at", path))
		}
	}
	var strangers []string
	for _, name := range g.Pinned {
		if !has.Nodes[name] {
			strangers = append(strangers, string(name))
		}
	}
	switch n := len(strangers); {
	case n == 1:
		doubts = append(doubts, "no node "+strangers[0]+" is known, which is pinned")
	case n > 1:
		text := fmt.Sprintf("%d pinned nodes are not known: %s", n, strings.Join(firstDoubts(strangers), ", "))
		if n > maxDoubts {
			text += fmt.Sprintf(" and %d more", n-maxDoubts)
		}
		doubts = append(doubts, text)
	}
	return doubts
}

func firstDoubts(list []string) []string { return list[:min(len(list), maxDoubts)] }

func (g Group) codeDoubts(env string, code map[string]map[string]ClassKnown) (doubts []string) {
	classes, known := code[env]
	place := "in the code of " + env
	switch {
	case !known || len(g.Classes)+len(g.Data) == 0:
		return nil
	case classes == nil && env == AgentSpecified:
		return nil // there is no code yet
	case classes == nil:
		return []string{fmt.Sprintf("the environment %s, which its nodes get, has no code", env)}
	case env == AgentSpecified:
		place = "in the code of any environment"
	}
	for _, class := range g.ClassNames() {
		is := classes[class]
		_, given := g.Classes[class]
		switch {
		case is.Unread:
		case !is.Found && given:
			doubts = append(doubts, fmt.Sprintf("there is no class %s %s: no node of the group gets a catalog%s", class, place, meant(class, is.Near)))
		case !is.Found:
			doubts = append(doubts, fmt.Sprintf("there is no class %s %s: its data does nothing%s", class, place, meant(class, is.Near)))
		default:
			for _, name := range slices.Sorted(maps.Keys(g.Classes[class])) {
				if !slices.Contains(is.Parameters, name) {
					doubts = append(doubts, fmt.Sprintf("class %s has no parameter %s %s: no node of the group gets a catalog%s",
						class, name, place, meant(name, is.Parameters)))
				}
			}
			for _, name := range slices.Sorted(maps.Keys(g.Data[class])) {
				if !slices.Contains(is.Parameters, name) {
					doubts = append(doubts, fmt.Sprintf("class %s has no parameter %s %s: only a lookup by that name finds its data%s",
						class, name, place, meant(name, is.Parameters)))
				}
			}
		}
	}
	if more := len(doubts) - maxDoubts; more > 0 {
		doubts = append(firstDoubts(doubts), fmt.Sprintf("and %d more classes and parameters that are not %s", more, place))
	}
	return doubts
}

// meant asks for a near name, if there is one.
func meant(name string, names []string) string {
	if ask := fault.DidYouMean(name, names); ask != "" {
		return "; " + ask
	}
	return ""
}
