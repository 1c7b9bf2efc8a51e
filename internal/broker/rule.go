package broker

import (
	"strings"

	"github.com/tutti-project/tutti/internal/wire"
)

// Party is one or several kinds of who sends or receives.
type Party uint8

// The kinds.
const (
	Node       Party = 1 << iota // any certificate of the fleet
	Controller                   // a certificate that may give orders
	Server                       // the broker itself, and what stands behind it
)

// Rule allows or refuses messages of one type between two kinds of parties.
type Rule struct {
	Type  string // a message type; with a star at its end, all that begin so
	From  Party
	To    Party
	Allow bool
}

// DefaultRules lets controllers send what they like. Nodes may report to
// the server and answer controllers; whatever the server has a handler for
// asks for itself what the node may say.
func DefaultRules() []Rule {
	return []Rule{
		{Type: wire.AssociateRequest, From: Node | Controller, To: Server, Allow: true},
		{Type: "*", From: Controller, To: Node | Controller | Server, Allow: true},
		{Type: wire.InventoryRequest, From: Node, To: Server}, // who is there is the controllers' business
		{Type: "*", From: Node, To: Server, Allow: true},
		{Type: wire.BlockingResponse, From: Node, To: Controller, Allow: true},
		{Type: wire.NonBlockingResponse, From: Node, To: Controller, Allow: true},
		{Type: wire.ProvisionalResponse, From: Node, To: Controller, Allow: true},
		{Type: wire.RPCError, From: Node, To: Controller, Allow: true},
		{Type: wire.ErrorMessage, From: Node, To: Controller, Allow: true},
		{Type: wire.VersionError, From: Node, To: Controller, Allow: true},
	}
}

// allowed tells what the first rule that fits says; none says no.
func allowed(rules []Rule, messageType string, from, to Party) bool {
	for _, rule := range rules {
		if rule.From&from != 0 && rule.To&to != 0 && rule.covers(messageType) {
			return rule.Allow
		}
	}
	return false
}

func (r Rule) covers(messageType string) bool {
	if prefix, star := strings.CutSuffix(r.Type, "*"); star {
		return strings.HasPrefix(messageType, prefix)
	}
	return r.Type == messageType
}
