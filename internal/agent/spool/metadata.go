package spool

import (
	"cmp"
	"slices"
	"strings"
	"time"

	"github.com/go-json-experiment/json"

	"github.com/tutti-project/tutti/internal/agent/orders"
	"github.com/tutti-project/tutti/internal/fault"
)

// metadata is a record as the file has it. The first keys are the original's.
type metadata struct {
	Requester   string `json:"requester"`
	Module      string `json:"module"`
	Action      string `json:"action"`
	Params      string `json:"request_params"` // always {}
	Transaction string `json:"transaction_id"`
	RequestID   string `json:"request_id"`
	Notify      bool   `json:"notify_outcome"`
	Start       string `json:"start"`
	End         string `json:"end,omitzero"`
	Status      string `json:"status"`
	Error       string `json:"execution_error,omitzero"`

	Aborted   bool   `json:"aborted,omitzero"`
	Caller    string `json:"caller,omitzero"`
	Blocking  bool   `json:"blocking,omitzero"`
	Stop      string `json:"stop_reason,omitzero"`
	Delivered bool   `json:"delivered"`
}

// timeForm is the original's, in UTC.
const timeForm = "2006-01-02T15:04:05.000000Z"

func encode(r orders.Record) []byte {
	m := metadata{
		Requester: r.Requester, Module: r.Module, Action: r.Action, Params: "{}", Transaction: r.Transaction, RequestID: r.RequestID,
		Notify: r.Notify, Start: timeText(r.Start), End: timeText(r.End), Status: string(r.Status), Error: r.Error,
		Aborted: r.Aborted, Caller: r.Caller, Blocking: r.Blocking, Stop: r.Stop, Delivered: r.Delivered,
	}
	text, err := json.Marshal(m, json.Deterministic(true))
	if err != nil { // a text that is not UTF-8, which no reader lets in
		m.Requester, m.RequestID, m.Error, m.Stop = valid(m.Requester), valid(m.RequestID), valid(m.Error), valid(m.Stop)
		m.Module, m.Action, m.Caller = valid(m.Module), valid(m.Action), valid(m.Caller)
		text, _ = json.Marshal(m, json.Deterministic(true))
	}
	return append(text, '\n')
}

func valid(s string) string { return strings.ToValidUTF8(s, "\uFFFD") }

func decode(transaction string, text []byte) (orders.Record, error) {
	var m metadata
	if err := json.Unmarshal(text, &m); err != nil {
		return orders.Record{}, fault.Wrap(fault.Invalid, err, "the record of the transaction %s is not JSON of the right shape", transaction)
	}
	start, err := time.Parse(time.RFC3339Nano, m.Start)
	if err != nil {
		return orders.Record{}, fault.Wrap(fault.Invalid, err, "the record of the transaction %s has no start", transaction)
	}
	end, _ := time.Parse(time.RFC3339Nano, m.End) // there is none while it runs
	status := orders.Status(m.Status)
	switch status {
	case orders.Running, orders.Success, orders.Failure, orders.Undetermined:
	default:
		return orders.Record{}, fault.New(fault.Invalid, "the record of the transaction %s has no status that is known", transaction)
	}
	return orders.Record{
		Transaction: transaction, Requester: m.Requester, RequestID: m.RequestID, Module: m.Module, Action: m.Action,
		Aborted: m.Aborted, Caller: m.Caller, Blocking: m.Blocking, Notify: m.Notify, Start: start, End: end, Status: status, Error: m.Error, Stop: m.Stop,
		Delivered: m.Delivered,
	}, nil
}

func timeText(t time.Time) string {
	if t.IsZero() {
		return ""
	}
	return t.UTC().Format(timeForm)
}

func sortRecords(list []orders.Record) {
	slices.SortFunc(list, func(a, b orders.Record) int {
		return cmp.Or(a.Start.Compare(b.Start), strings.Compare(a.Transaction, b.Transaction))
	})
}
