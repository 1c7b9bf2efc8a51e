package broker

import (
	"cmp"
	"slices"
	"time"

	"github.com/tutti-project/tutti/internal/fleet"
	"github.com/tutti-project/tutti/internal/wire"
)

// Presence is who is connected, since when, and with what.
type Presence struct {
	URI      wire.URI
	Certname fleet.Certname
	Party    Party        // Node or Controller
	Version  wire.Version // of the protocol
	Agent    string       // how the client calls itself, with its version; may be empty
	Remote   string       // address and port
	Since    time.Time
	// Superseded is when a connection of this client last took the place of another one; zero: none did, as far as is known.
	Superseded time.Time
	Rivals     Rivals // told by Broker.Presence only
}

// Presence tells whether a client is connected, to this server or to another one.
func (b *Broker) Presence(uri wire.URI) (Presence, bool) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if s := b.sessions[uri]; s != nil {
		who := s.who
		who.Rivals = s.rivals
		return who, true
	}
	far, there := b.far.seats[uri]
	return far.Presence, there
}

// ServerOf is the other server that a client is connected to; empty: it is this one, or none.
func (b *Broker) ServerOf(uri wire.URI) string {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.far.seats[uri].Server
}

// Here tells whether a client is connected to this server.
func (b *Broker) Here(uri wire.URI) bool {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.sessions[uri] != nil
}

// Presences is everybody who is connected, to this server or to another one, in the order of their URIs.
func (b *Broker) Presences() []Presence {
	b.mu.Lock()
	all := make([]Presence, 0, len(b.sessions)+len(b.far.seats))
	for _, s := range b.sessions {
		all = append(all, s.who)
	}
	for _, far := range b.far.seats {
		all = append(all, far.Presence)
	}
	b.mu.Unlock()
	slices.SortFunc(all, func(a, b Presence) int { return cmp.Compare(a.URI, b.URI) })
	return all
}

// Connected is the URIs of those connected that one of the patterns stands for, in order.
func (b *Broker) Connected(patterns ...wire.URI) []wire.URI {
	chosen := choose(patterns)
	b.mu.Lock()
	found := b.matching(chosen)
	b.mu.Unlock()
	slices.Sort(found)
	return found
}

// matching is in no order. The caller holds b.mu.
func (b *Broker) matching(chosen selection) []wire.URI {
	found := []wire.URI{} // an empty list on the wire, too
	for uri := range b.sessions {
		if chosen.has(uri) {
			found = append(found, uri)
		}
	}
	for uri := range b.far.seats {
		if chosen.has(uri) {
			found = append(found, uri)
		}
	}
	return found
}

// selection is patterns, sorted so that one client is found with four look-ups
// however many patterns there are.
type selection struct {
	all   bool
	names map[string]bool
	types map[string]bool
	exact map[wire.URI]bool
}

func choose(patterns []wire.URI) selection {
	s := selection{names: map[string]bool{}, types: map[string]bool{}, exact: map[wire.URI]bool{}}
	for _, p := range patterns {
		name, clientType := p.Name(), p.Type()
		switch {
		case name == "*" && clientType == "*":
			s.all = true
		case name == "*":
			s.types[clientType] = true
		case clientType == "*":
			s.names[name] = true
		default:
			s.exact[p] = true
		}
	}
	return s
}

func (s selection) has(uri wire.URI) bool {
	return s.all || s.exact[uri] || s.names[uri.Name()] || s.types[uri.Type()]
}
