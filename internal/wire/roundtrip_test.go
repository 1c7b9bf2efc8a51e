package wire_test

import (
	"testing"

	"github.com/go-json-experiment/json/jsontext"
	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"github.com/tutti-project/tutti/internal/wire"
)

// messages draws what a broker may have to pass on.
func messages(t *rapid.T) wire.Message {
	uuid := rapid.StringMatching(`[0-9a-f]{8}-[0-9a-f]{4}-[0-9A-F]{4}-[0-9a-f]{4}-[0-9a-f]{12}`)
	uri := rapid.OneOf(
		rapid.Just(""), rapid.Just(string(wire.Broker)), rapid.StringMatching(`pcp://[a-z0-9.*-]{0,20}/[a-z_*-]{1,9}`), rapid.Just("pcp://ü/ä\""))
	m := wire.Message{
		ID: uuid.Draw(t, "id"),
		Type: rapid.SampledFrom([]string{wire.BlockingRequest, wire.ErrorMessage, wire.InventoryResponse, wire.RPCError, "x", "<ü>"}).
			Draw(t, "type"),
		Sender:    wire.URI(uri.Draw(t, "sender")),
		Target:    wire.URI(uri.Draw(t, "target")),
		InReplyTo: rapid.OneOf(rapid.Just(""), uuid).Draw(t, "in reply to"),
		Data:      jsontext.Value(rapid.SampledFrom([]string{``, `null`, `{"a":[1,-2.5e30,"x"]}`, `[]`, `true`, `{"a":{"":null}}`}).Draw(t, "data")),
	}
	if m.Type == wire.ErrorMessage || rapid.Bool().Draw(t, "text") {
		m.Data = wire.Data(rapid.String().Draw(t, "words"))
	}
	if len(m.Data) == 0 {
		m.Data = nil
	}
	return m
}

func TestWhatIsWrittenIsRead(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		m := messages(t)
		for _, version := range []wire.Version{wire.V1, wire.V2} {
			before := []byte("before")
			out, err := version.Append(before, m)
			if err != nil {
				t.Fatal(err)
			}
			back, err := version.Decode(out[len(before):])
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(translated(m, version), back); diff != "" {
				t.Fatalf("version %d (-want +got):\n%s", version, diff)
			}
		}
	})
}

// What came in one version and went out in the other says the same.
func TestTranslationKeepsWhatBothCanSay(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		m := messages(t)
		through := m
		for _, version := range []wire.Version{wire.V2, wire.V1, wire.V2, wire.V1} {
			out, err := version.Append(nil, through)
			if err != nil {
				t.Fatal(err)
			}
			if through, err = version.Decode(out); err != nil {
				t.Fatal(err)
			}
		}
		if diff := cmp.Diff(translated(m, wire.V1), through); diff != "" {
			t.Fatalf("(-want +got):\n%s", diff)
		}
	})
}
