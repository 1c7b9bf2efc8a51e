package release

import (
	"cmp"
	"crypto/sha256"
	"encoding/binary"
	"slices"
	"strconv"
	"strings"

	"github.com/tutti-project/tutti/internal/fault"
	"github.com/tutti-project/tutti/internal/fleet"
)

// MaxWaves is how many waves a release has at most.
const MaxWaves = 100

// Rest is the size of a wave of all that is left.
const Rest = "rest"

// size is a wave's size as somebody wrote it.
type size struct {
	percent float64
	count   int
	group   string
	rest    bool
}

// parseSize reads 1%, 10, @group or rest.
func parseSize(text string) (size, error) {
	bad := fault.New(fault.Invalid, "field waves: a wave is 5%% (of all nodes), 10 (nodes), @GROUP or %s, not %.80q", Rest, text)
	group, isGroup := strings.CutPrefix(text, "@")
	percent, isPercent := strings.CutSuffix(text, "%")
	switch {
	case text == Rest:
		return size{rest: true}, nil
	case isGroup && group != "":
		return size{group: group}, nil
	case isPercent:
		p, err := strconv.ParseFloat(percent, 64)
		if err != nil || !(p > 0 && p <= 100) {
			return size{}, bad
		}
		return size{percent: p}, nil
	}
	n, err := strconv.Atoi(text)
	switch {
	case err != nil && len(text) <= 80 && !strings.ContainsAny(text, "%@"):
		return size{}, fault.New(fault.Invalid, "%s; a group of this name is @%s", fault.Detail(bad), text)
	case err != nil, n < 1:
		return size{}, bad
	}
	return size{count: n}, nil
}

// Spread says which node is in which wave, from 1: each node in one. Percentages are of all nodes, and at least one node;
// which nodes are chosen is spread over the names, the same each time for the same seed. Waves that no node is left for are dropped.
// members is the nodes of a group.
func Spread(sizes []string, nodes []fleet.Certname, seed uint64, members func(group string) ([]fleet.Certname, error)) ([]Wave, map[fleet.Certname]int, error) {
	if len(sizes) == 0 {
		sizes = []string{Rest}
	}
	if len(sizes) > MaxWaves {
		return nil, nil, fault.New(fault.Invalid, "field waves: there are %d, at most %d", len(sizes), MaxWaves)
	}
	left := shuffled(nodes, seed)
	var waves []Wave
	place := make(map[fleet.Certname]int, len(nodes))
	for _, text := range sizes {
		s, err := parseSize(text)
		if err != nil {
			return nil, nil, err
		}
		var taken []fleet.Certname
		if taken, left, err = s.take(left, len(nodes), members); err != nil {
			return nil, nil, err
		}
		if len(taken) == 0 {
			if s.group != "" {
				return nil, nil,
					fault.New(fault.Invalid, "field waves: none of the nodes that are left for this wave is in the group %s; tutti group show %q says which nodes it has",
						s.group, s.group)
			}
			continue
		}
		for _, node := range taken {
			place[node] = len(waves) + 1
		}
		waves = append(waves, Wave{Number: len(waves) + 1, Size: text, Nodes: len(taken), Phase: NotBegun, Round: 1})
	}
	if n := len(left); n > 0 {
		return nil, nil, fault.New(fault.Invalid, "field waves: %d of %s would be in none; add a last wave: %s", n, fault.Count(len(nodes), "node"), Rest)
	}
	return waves, place, nil
}

func (s size) take(left []fleet.Certname, all int, members func(string) ([]fleet.Certname, error)) (taken, rest []fleet.Certname, err error) {
	n := s.count
	switch {
	case s.rest:
		return left, nil, nil
	case s.group != "":
		in, err := members(s.group)
		if err != nil {
			return nil, nil, err
		}
		member := make(map[fleet.Certname]bool, len(in))
		for _, node := range in {
			member[node] = true
		}
		for _, node := range left {
			if member[node] {
				taken = append(taken, node)
			} else {
				rest = append(rest, node)
			}
		}
		return taken, rest, nil
	case s.percent > 0:
		n = max(int(s.percent*float64(all)/100), 1)
	}
	n = min(n, len(left))
	return left[:n], left[n:], nil
}

// shuffled is nodes in an order that follows from the seed and their names alone.
func shuffled(nodes []fleet.Certname, seed uint64) []fleet.Certname {
	rank := make(map[fleet.Certname]uint64, len(nodes))
	for _, node := range nodes {
		sum := sha256.Sum256(append(binary.BigEndian.AppendUint64(nil, seed), node...))
		rank[node] = binary.BigEndian.Uint64(sum[:])
	}
	order := slices.Clone(nodes)
	slices.SortFunc(order, func(a, b fleet.Certname) int { return cmp.Or(cmp.Compare(rank[a], rank[b]), cmp.Compare(a, b)) })
	return order
}
