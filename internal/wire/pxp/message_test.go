package pxp_test

import (
	"testing"

	"github.com/go-json-experiment/json/jsontext"
	"github.com/google/go-cmp/cmp"

	"github.com/tutti-project/tutti/internal/wire/pxp"
)

// The original agent refuses requests with a field more or less than these.
func TestFieldsOfRequests(t *testing.T) {
	t.Parallel()
	r := pxp.Request{Transaction: "7", Module: "status", Action: "query", Params: jsontext.Value(`{"transaction_id":"6"}`), NotifyOutcome: true}
	for want, got := range map[string]jsontext.Value{
		`{"transaction_id":"7","module":"status","action":"query","params":{"transaction_id":"6"}}`:                       pxp.BlockingData(r),
		`{"transaction_id":"7","module":"status","action":"query","params":{"transaction_id":"6"},"notify_outcome":true}`: pxp.Data(r),
	} {
		if diff := cmp.Diff(want, string(got)); diff != "" {
			t.Errorf("(-want +got):\n%s", diff)
		}
	}
}
