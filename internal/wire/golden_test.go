package wire_test

import (
	"encoding/hex"
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/go-json-experiment/json/jsontext"
	"github.com/google/go-cmp/cmp"

	"github.com/tutti-project/tutti/internal/wire"
)

var update = flag.Bool("update", false, "write the golden files anew")

const (
	id1 = "0f4a1d8e-6d2c-4b5a-9c3e-000000000001"
	id2 = "0f4a1d8e-6d2c-4b5a-9c3e-000000000002"
)

// examples is a message of every kind that a broker sends or passes on.
var examples = map[string]wire.Message{
	"associate_request": {ID: id1, Type: wire.AssociateRequest, Sender: "pcp://web1/agent", Target: wire.Broker},
	"associate_response": {
		ID: id2, Type: wire.AssociateResponse, Sender: wire.Broker, Target: "pcp://web1/agent", InReplyTo: id1,
		Data: wire.Data(wire.Association{ID: id1, Success: true}),
	},
	"associate_refusal": {
		ID: id2, Type: wire.AssociateResponse, Sender: wire.Broker, Target: "pcp://web1/agent", InReplyTo: id1,
		Data: wire.Data(wire.Association{ID: id1, Reason: "Session already associated."}),
	},
	"inventory_request": {
		ID: id1, Type: wire.InventoryRequest, Sender: "pcp://ctl/controller", Target: wire.Broker,
		Data: wire.Data(wire.Query{Query: []wire.URI{"pcp://*/agent"}, Subscribe: true}),
	},
	"inventory_response": {
		ID: id2, Type: wire.InventoryResponse, Target: "pcp://ctl/controller", InReplyTo: id1, Data: wire.Data(wire.Inventory{URIs: []wire.URI{"pcp://web1/agent"}}),
	},
	"inventory_update": {
		ID: id2, Type: wire.InventoryUpdate, Target: "pcp://ctl/controller",
		Data: wire.Data(wire.Changes{Changes: []wire.Change{{Client: "pcp://web1/agent", Change: -1}, {Client: "pcp://web1/agent", Change: 1}}}),
	},
	"error_message": {ID: id2, Type: wire.ErrorMessage, InReplyTo: id1, Data: wire.Data("Not connected.")},
	"destination_report": {
		ID: id2, Type: wire.DestinationReport, Sender: wire.Broker, Target: "pcp://ctl/controller",
		Data: wire.Data(wire.Destinations{ID: id1, Targets: []wire.URI{"pcp://web1/agent"}}),
	},
	"ttl_expired": {ID: id2, Type: wire.TTLExpired, Sender: wire.Broker, Target: "pcp://ctl/controller", Data: wire.Data(wire.Expiry{ID: id1})},
	"version_error": {
		ID: id2, Type: wire.VersionError, Sender: wire.Broker, Target: "pcp://ctl/controller",
		Data: wire.Data(wire.Mismatch{ID: id1, Target: "pcp://web1/agent", Reason: "old"}),
	},
	"blocking_request": {
		ID: id1, Type: wire.BlockingRequest, Sender: "pcp://ctl/controller", Target: "pcp://web1/agent",
		Data: jsontext.Value(`{"transaction_id":"7","module":"echo","action":"echo","params":{"argument":"ü\n"}}`),
	},
	"data_null": {ID: id1, Type: wire.BlockingRequest, Sender: "pcp://ctl/controller", Target: "pcp://web1/agent", Data: jsontext.Value("null")},
}

// TestGoldenFrames shows both forms of every example, for a reader to review.
func TestGoldenFrames(t *testing.T) {
	t.Parallel()
	for name, m := range examples {
		for _, version := range []wire.Version{wire.V1, wire.V2} {
			t.Run(fmt.Sprintf("%s/%d", name, version), func(t *testing.T) {
				t.Parallel()
				got, err := version.Append(nil, m)
				must(t, err)
				path := filepath.Join("testdata", fmt.Sprintf("%s.pcp%d.golden", name, version))
				text := string(got) + "\n"
				if version == wire.V1 {
					text = hex.Dump(got)
				}
				if *update {
					must(t, os.WriteFile(path, []byte(text), 0o600))
				}
				want, err := os.ReadFile(path)
				must(t, err)
				if diff := cmp.Diff(string(want), text); diff != "" {
					t.Errorf("%s (-want +got):\n%s", path, diff)
				}
				back, err := version.Decode(got)
				must(t, err)
				if diff := cmp.Diff(translated(m, version), back); diff != "" {
					t.Errorf("read again (-want +got):\n%s", diff)
				}
			})
		}
	}
}

// translated is what is left of a message that went through a version.
func translated(m wire.Message, through wire.Version) wire.Message {
	if through == wire.V2 {
		return m
	}
	if m.Sender == "" {
		m.Sender = wire.Broker
	}
	if m.Type != wire.InventoryResponse && m.Type != wire.ErrorMessage {
		m.InReplyTo = ""
	}
	if m.Data == nil {
		m.Data = jsontext.Value("null")
	}
	return m
}

func TestControlDataIsReadAgain(t *testing.T) {
	t.Parallel()
	query, err := wire.ParseQuery(examples["inventory_request"].Data)
	must(t, err)
	inventory, err := wire.ParseInventory(examples["inventory_response"].Data)
	must(t, err)
	changes, err := wire.ParseChanges(examples["inventory_update"].Data)
	must(t, err)
	association, err := wire.ParseAssociation(examples["associate_refusal"].Data)
	must(t, err)
	report, err := wire.ParseDestinations(examples["destination_report"].Data)
	must(t, err)
	expiry, err := wire.ParseExpiry(examples["ttl_expired"].Data)
	must(t, err)
	mismatch, err := wire.ParseMismatch(examples["version_error"].Data)
	must(t, err)
	text, err := wire.ParseError(examples["error_message"].Data)
	must(t, err)
	got := []any{query, inventory, changes, association, report, expiry, mismatch, text}
	want := []any{
		wire.Query{Query: []wire.URI{"pcp://*/agent"}, Subscribe: true},
		wire.Inventory{URIs: []wire.URI{"pcp://web1/agent"}},
		wire.Changes{Changes: []wire.Change{{Client: "pcp://web1/agent", Change: -1}, {Client: "pcp://web1/agent", Change: 1}}},
		wire.Association{ID: id1, Reason: "Session already associated."},
		wire.Destinations{ID: id1, Targets: []wire.URI{"pcp://web1/agent"}},
		wire.Expiry{ID: id1},
		wire.Mismatch{ID: id1, Target: "pcp://web1/agent", Reason: "old"},
		"Not connected.",
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

func TestQueriesOfTheWrongShape(t *testing.T) {
	t.Parallel()
	for data, want := range map[string]string{
		``:                                      "field data: it is missing",
		`null`:                                  "field query: it is missing",
		`{}`:                                    "field query: it is missing",
		`{"query":"pcp://*/agent"}`:             "the value of /query has the wrong type",
		`{"query":["*"]}`:                       `field query: "*" is not of the form pcp://NAME/TYPE`,
		`{"query":[],"subscribe":"yes"}`:        "the value of /subscribe has the wrong type",
		`{"query":[],"subscripe":true}`:         "the key /subscripe is not known",
		`[1,2]`:                                 "it has the wrong type",
		`{"query":[` + manyURIs(100_001) + `]}`: "it has 100001 elements",
	} {
		if _, err := wire.ParseQuery(jsontext.Value(data)); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%.60s: %v, want %q", data, err, want)
		}
	}
	if _, err := wire.ParseChanges(jsontext.Value(`{"changes":[{"client":"pcp://a/b","change":2}]}`)); err == nil {
		t.Error("a change of 2")
	}
}

func manyURIs(n int) string {
	return strings.TrimSuffix(strings.Repeat(`"pcp://a/b",`, n), ",")
}

func must(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}
