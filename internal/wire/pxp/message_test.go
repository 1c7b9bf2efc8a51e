package pxp_test

import (
	"strings"
	"testing"

	"github.com/go-json-experiment/json/jsontext"
	"github.com/google/go-cmp/cmp"

	"github.com/tutti-project/tutti/internal/wire/pxp"
)

// The original agent refuses requests with a field more or less than these.
func TestFieldsOfRequests(t *testing.T) {
	t.Parallel()
	r := pxp.Request{Transaction: "7", Module: "status", Action: "query", Params: jsontext.Value(`{"transaction_id":"6"}`), NotifyOutcome: true}
	named := r
	named.Caller = "tutti=ana"
	for want, got := range map[string]jsontext.Value{
		`{"transaction_id":"7","module":"status","action":"query","params":{"transaction_id":"6"},"caller":"tutti=ana"}`:                       pxp.BlockingData(named),
		`{"transaction_id":"7","module":"status","action":"query","params":{"transaction_id":"6"},"caller":"tutti=ana","notify_outcome":true}`: pxp.Data(named),
		`{"transaction_id":"7","module":"status","action":"query","params":{"transaction_id":"6"}}`:                                            pxp.BlockingData(r),
		`{"transaction_id":"7","module":"status","action":"query","params":{"transaction_id":"6"},"notify_outcome":true}`:                      pxp.Data(r),
	} {
		if diff := cmp.Diff(want, string(got)); diff != "" {
			t.Errorf("(-want +got):\n%s", diff)
		}
	}
}

func TestCallers(t *testing.T) {
	t.Parallel()
	for caller, good := range map[string]bool{
		"": true, "tutti=ana": true, strings.Repeat("a", 200): true, strings.Repeat("a", 201): false, "a\nb": false, "a\x00": false,
	} {
		data := pxp.BlockingData(pxp.Request{Transaction: "7", Module: "m", Action: "a", Caller: caller})
		r, err := pxp.ParseRequest(data)
		if (err == nil) != good || good && r.Caller != caller {
			t.Errorf("%.20q: %q, %v", caller, r.Caller, err)
		}
	}
}
