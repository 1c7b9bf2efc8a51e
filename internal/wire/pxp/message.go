package pxp

import (
	"strings"
	"unicode"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"

	"github.com/tutti-project/tutti/internal/fault"
)

// The bounds of messages.
const (
	MaxParamsBytes      = 32 << 20
	MaxTransactionBytes = 64
	MaxNameBytes        = 200
	MaxFiles            = 10_000
)

// Request is the data of a blocking or non-blocking request.
type Request struct {
	Transaction   string         `json:"transaction_id"`
	Module        string         `json:"module"`
	Action        string         `json:"action"`
	Params        jsontext.Value `json:"params,omitzero"` // an object; nil is an empty one
	Caller        string         `json:"caller,omitzero"` // Tutti's own: who asks, for policies and logs of nodes
	NotifyOutcome bool           `json:"notify_outcome"`  // of a non-blocking request: send the results when they are there
}

// Provisional is the data of a provisional response: the agent has the transaction.
type Provisional struct {
	Transaction string `json:"transaction_id"`
}

// Response is the data of a blocking or non-blocking response.
type Response struct {
	Transaction string         `json:"transaction_id"`
	Results     jsontext.Value `json:"results"` // what the action gives; see the results in this package
}

// Failure is the data of an RPC error: the action did not run, or its results cannot be used.
type Failure struct {
	Transaction string `json:"transaction_id"`
	ID          string `json:"id"` // of the message with the request
	Description string `json:"description"`
	// Tutti's own, of actions: MCollective's status code, as package action has it, and what an action gave that failed.
	Code    uint8          `json:"code,omitzero"`
	Results jsontext.Value `json:"results,omitzero"`
}

// ParseRequest reads the data of a request.
func ParseRequest(data jsontext.Value) (Request, error) {
	var r Request
	if err := parse(data, &r); err != nil {
		return r, err
	}
	if len(r.Params) > MaxParamsBytes {
		return r, fault.New(fault.Invalid, "field params: it has %d bytes, at most %d are allowed", len(r.Params), MaxParamsBytes)
	}
	if len(r.Params) > 0 && r.Params.Kind() != '{' {
		return r, fault.New(fault.Invalid, "field params: it must be an object")
	}
	for field, name := range map[string]string{"module": r.Module, "action": r.Action} {
		if name == "" || len(name) > MaxNameBytes {
			return r, fault.New(fault.Invalid, "field %s: it has %d bytes, 1 to %d are allowed", field, len(name), MaxNameBytes)
		}
	}
	if len(r.Caller) > MaxNameBytes || strings.ContainsFunc(r.Caller, unicode.IsControl) {
		return r, fault.New(fault.Invalid, "field caller: at most %d bytes without control characters are allowed", MaxNameBytes)
	}
	return r, CheckTransaction(r.Transaction)
}

// ParseNonBlockingRequest reads the data of a non-blocking request, in which
// notify_outcome must be said.
func ParseNonBlockingRequest(data jsontext.Value) (Request, error) {
	var said struct {
		Notify *bool `json:"notify_outcome"`
	}
	if err := parse(data, &said); err != nil {
		return Request{}, err
	}
	if said.Notify == nil {
		return Request{}, missing("notify_outcome", "true or false")
	}
	return ParseRequest(data)
}

// ParseProvisional reads the data of a provisional response.
func ParseProvisional(data jsontext.Value) (Provisional, error) {
	var p Provisional
	if err := parse(data, &p); err != nil {
		return p, err
	}
	return p, CheckTransaction(p.Transaction)
}

// ParseResponse reads the data of a response; its results are any JSON but none.
func ParseResponse(data jsontext.Value) (Response, error) {
	var r Response
	if err := parse(data, &r); err != nil {
		return r, err
	}
	if len(r.Results) == 0 {
		return r, fault.New(fault.Invalid, "field results: it is missing")
	}
	return r, CheckTransaction(r.Transaction)
}

// ParseFailure reads the data of an RPC error.
func ParseFailure(data jsontext.Value) (Failure, error) {
	var f Failure
	if err := parse(data, &f); err != nil {
		return f, err
	}
	return f, CheckTransaction(f.Transaction)
}

// CheckTransaction says whether id may name a transaction: agents make a directory
// of that name, so only letters, digits, _ and - are allowed.
func CheckTransaction(id string) error {
	ok := id != "" && len(id) <= MaxTransactionBytes
	for i := range len(id) {
		c := id[i]
		ok = ok && (c >= 'a' && c <= 'z' || c >= 'A' && c <= 'Z' || c >= '0' && c <= '9' || c == '-' || c == '_')
	}
	if !ok {
		return fault.New(fault.Invalid, "field transaction_id: 1 to %d letters, digits, _ and - are allowed; a UUID is best", MaxTransactionBytes)
	}
	return nil
}

// BlockingData is the data of a blocking request. It must not say notify_outcome: the original agent
// takes no field that it does not know, and answers with an error message that names no transaction.
func BlockingData(r Request) jsontext.Value {
	return Data(struct {
		Transaction string         `json:"transaction_id"`
		Module      string         `json:"module"`
		Action      string         `json:"action"`
		Params      jsontext.Value `json:"params,omitzero"`
		Caller      string         `json:"caller,omitzero"`
	}{r.Transaction, r.Module, r.Action, r.Params, r.Caller})
}

// Data is the JSON of a type of this package.
func Data(of any) jsontext.Value {
	text, err := json.Marshal(of)
	if err != nil {
		panic(err) // raw values are valid JSON, everything else can be written
	}
	return text
}

func parse(data jsontext.Value, to any) error {
	if len(data) == 0 {
		return fault.New(fault.Invalid, "no data")
	}
	if err := json.Unmarshal(data, to); err != nil {
		return fault.Wrap(fault.Invalid, err, "invalid data: it is not what this message has")
	}
	return nil
}
