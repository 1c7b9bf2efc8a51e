package inventory_test

import (
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/tutti-project/tutti/internal/fault"
	"github.com/tutti-project/tutti/internal/inventory"
)

const wireInputs = `{"certname":"web-1","catalog_uuid":"c7","producer_timestamp":"2026-03-01T12:30:00Z","inputs":[["hiera","a::b"],["hiera","c"]]}`

func TestParseWireInputs(t *testing.T) {
	t.Parallel()
	got, err := inventory.ParseWireInputs(wireInputs)
	if err != nil {
		t.Fatal(err)
	}
	want := inventory.CatalogInputs{
		Origin:   inventory.Origin{ProducedAt: time.Date(2026, 3, 1, 12, 30, 0, 0, time.UTC)},
		Certname: "web-1", UUID: "c7", Inputs: []inventory.CatalogInput{{Type: "hiera", Name: "a::b"}, {Type: "hiera", Name: "c"}},
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("inputs (-want +got):\n%s", diff)
	}
	for _, c := range []struct{ body, says string }{
		{`[]`, "found '['"},
		{`{}`, `no "inputs"`},
		{strings.Replace(wireInputs, `"inputs":[["hiera","a::b"],["hiera","c"]]`, `"inputs":null`, 1), `no "inputs"`},
		{strings.Replace(wireInputs, `["hiera","c"]`, `["hiera"]`, 1), "1 texts, not a type and a name"},
		{strings.Replace(wireInputs, `["hiera","c"]`, `"hiera"`, 1), "an input like"},
		{strings.Replace(wireInputs, `"producer_timestamp":"2026-03-01T12:30:00Z",`, ``, 1), `"producer_timestamp" is missing`},
		{strings.Replace(wireInputs, `web-1`, `Web 1`, 1), `"certname"`},
		{strings.Replace(wireInputs, `["hiera","c"]`, strings.Repeat(`["hiera","c"],`, 100_000)+`["hiera","c"]`, 1), "more than 100000 inputs"},
	} {
		_, err := inventory.ParseWireInputs(c.body)
		if fault.Of(err) != fault.Invalid || !strings.Contains(fault.Detail(err), c.says) {
			t.Errorf("%.200s: %v, want %q", c.body, err, c.says)
		}
	}
}

func FuzzParseWireInputs(f *testing.F) {
	f.Add(wireInputs)
	f.Add(`{"inputs":[[`)
	f.Fuzz(func(t *testing.T, body string) {
		in, err := inventory.ParseWireInputs(body)
		if err == nil && (in.Certname == "" || in.ProducedAt.IsZero()) {
			t.Errorf("accepted without a name or a time: %+v", in)
		}
		if err != nil && fault.Of(err) != fault.Invalid {
			t.Errorf("%v", err)
		}
	})
}
