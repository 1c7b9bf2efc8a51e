package wire

import (
	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"

	"github.com/tutti-project/tutti/internal/fault"
)

// Names starts every message type. It never was an address.
const Names = "http://puppetlabs.com/"

// The types of the protocol's own messages.
const (
	AssociateRequest  = Names + "associate_request"  // PCP 1: may I? No data
	AssociateResponse = Names + "associate_response" // Association
	InventoryRequest  = Names + "inventory_request"  // Query
	InventoryResponse = Names + "inventory_response" // Inventory
	InventoryUpdate   = Names + "inventory_update"   // Changes
	ErrorMessage      = Names + "error_message"      // a string; in PCP 1 an object with the id
	DestinationReport = Names + "destination_report" // Destinations; no broker sends it any more
	TTLExpired        = Names + "ttl_expired"        // Expiry; no broker sends it any more
	VersionError      = Names + "version_error"      // Mismatch; no broker sends it any more
)

// The types of messages between a controller and an agent (PXP 1). What they
// hold is theirs; a broker looks at who may send them.
const (
	BlockingRequest     = Names + "rpc_blocking_request"
	BlockingResponse    = Names + "rpc_blocking_response"
	NonBlockingRequest  = Names + "rpc_non_blocking_request"
	NonBlockingResponse = Names + "rpc_non_blocking_response"
	ProvisionalResponse = Names + "rpc_provisional_response"
	RPCError            = Names + "rpc_error_message"
)

// The types of Tutti's own messages between an agent and the server.
const (
	RunEvents      = "tutti/run_events"       // what happens in a Puppet run, as it happens
	RunEventsTaken = "tutti/run_events_taken" // up to which of them the server has stored
	AgentTold      = "tutti/agent"            // which modules an agent has, its version and platform
)

// MaxQuery is the most patterns in one query.
const MaxQuery = 100_000

// Association is the answer to an associate request.
type Association struct {
	ID      string `json:"id"` // of the request
	Success bool   `json:"success"`
	Reason  string `json:"reason,omitempty"`
}

// Query asks who is connected.
type Query struct {
	Query     []URI `json:"query"`
	Subscribe bool  `json:"subscribe,omitzero"`
}

// Inventory is who is connected, in order.
type Inventory struct {
	URIs []URI `json:"uris"`
}

// Changes is who came and went since the last such message, in the order in which it happened.
type Changes struct {
	Changes []Change `json:"changes"`
}

// Change is one coming (1) or going (-1).
type Change struct {
	Client URI `json:"client"`
	Change int `json:"change"`
}

// Destinations is whom a broker passed a PCP 1 message to.
type Destinations struct {
	ID      string `json:"id"`
	Targets []URI  `json:"targets"`
}

// Expiry is the id of a message that came too late.
type Expiry struct {
	ID string `json:"id"`
}

// Mismatch is a message that its target cannot read.
type Mismatch struct {
	ID     string `json:"id"`
	Target URI    `json:"target"`
	Reason string `json:"reason"`
}

// problem is the data of an error message in PCP 1.
type problem struct {
	Description *string `json:"description"`
	ID          string  `json:"id,omitempty"`
}

// ParseQuery reads the data of an inventory request. Other keys are refused: a
// misspelt "subscribe" would be a silence that nobody understands.
func ParseQuery(data jsontext.Value) (Query, error) {
	var q Query
	if err := unmarshal(data, &q); err != nil {
		return q, err
	}
	if q.Query == nil {
		return q, fault.New(fault.Invalid, "field query: it is missing; it is a list of PCP URIs, in which * may replace either part")
	}
	if len(q.Query) > MaxQuery {
		return q, fault.New(fault.Invalid, "field query: it has %d elements, at most %d are allowed", len(q.Query), MaxQuery)
	}
	for _, uri := range q.Query {
		if _, err := ParseURI(string(uri)); err != nil {
			return q, fault.New(fault.Invalid, "field query: %s", fault.Detail(err))
		}
	}
	return q, nil
}

// ParseInventory reads the data of an inventory response.
func ParseInventory(data jsontext.Value) (Inventory, error) {
	var i Inventory
	return i, unmarshal(data, &i)
}

// ParseChanges reads the data of an inventory update.
func ParseChanges(data jsontext.Value) (Changes, error) {
	var c Changes
	if err := unmarshal(data, &c); err != nil {
		return c, err
	}
	for _, change := range c.Changes {
		if change.Change != 1 && change.Change != -1 {
			return c, fault.New(fault.Invalid, "field changes: a change is 1 or -1, not %d", change.Change)
		}
	}
	return c, nil
}

// ParseAssociation reads the data of an associate response.
func ParseAssociation(data jsontext.Value) (Association, error) {
	var a Association
	return a, unmarshal(data, &a)
}

// ParseDestinations reads the data of a destination report.
func ParseDestinations(data jsontext.Value) (Destinations, error) {
	var d Destinations
	return d, unmarshal(data, &d)
}

// ParseExpiry reads the data of a message about an expired one.
func ParseExpiry(data jsontext.Value) (Expiry, error) {
	var e Expiry
	return e, unmarshal(data, &e)
}

// ParseMismatch reads the data of a version error.
func ParseMismatch(data jsontext.Value) (Mismatch, error) {
	var m Mismatch
	return m, unmarshal(data, &m)
}

// ParseError reads the text of an error message.
func ParseError(data jsontext.Value) (string, error) {
	var text string
	return text, unmarshal(data, &text)
}

// Data is the JSON of one of the types above, or of a string.
func Data(of any) jsontext.Value {
	text, err := json.Marshal(of)
	if err != nil {
		panic(err) // they hold only strings, numbers and lists of them
	}
	return text
}

func unmarshal(data jsontext.Value, to any) error {
	if len(data) == 0 {
		return fault.New(fault.Invalid, "field data: it is missing")
	}
	if err := json.Unmarshal(data, to, strict); err != nil {
		return fault.Wrap(fault.Invalid, err, "field data: it is not what this message type has: %s", why(err))
	}
	return nil
}
