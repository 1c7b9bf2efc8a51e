package rest_test

import (
	"context"
	"encoding/json"
	"encoding/pem"
	"errors"
	"net/http/httptest"
	"testing"

	"github.com/tutti-project/tutti/api"
	"github.com/tutti-project/tutti/internal/fault"
)

// rowsOf asks over a real connection and counts what comes.
func rowsOf(ctx context.Context, t *testing.T, query string, total bool, each func(json.RawMessage) error) (head api.QueryAnswer, rows int, err error) {
	t.Helper()
	b := newBench(t) //nolint:contextcheck // it outlives ctx
	server := httptest.NewTLSServer(b.handler)
	t.Cleanup(server.Close)
	ca := pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: server.Certificate().Raw})
	client, err := api.NewClient(api.ClientConfig{Server: server.URL, Token: secret("admin"), CAPEM: ca})
	check(t, err)
	err = client.Rows(ctx, api.QueryRequest{Query: query, Total: total}, func(h api.QueryAnswer) error {
		head = h
		return nil
	}, func(row json.RawMessage) error {
		rows++
		return each(row)
	})
	return head, rows, err
}

func TestRowsComeOneByOne(t *testing.T) {
	t.Parallel()
	keep := func(json.RawMessage) error { return nil }
	head, rows, err := rowsOf(t.Context(), t, "nodes[certname]{}", true, keep)
	if err != nil || rows != 1 || len(head.Columns) != 1 || head.Total == nil || *head.Total != 1 {
		t.Errorf("got %+v, %d rows, %v", head, rows, err)
	}
	if _, rows, err := rowsOf(t.Context(), t, "nodes[certnam]{}", false, keep); fault.Of(err) != fault.Invalid || rows != 0 {
		t.Errorf("a wrong query: %d rows, %v", rows, err)
	}
	mine := errors.New("enough")
	if _, rows, err := rowsOf(t.Context(), t, "edges[source_title]{}", false, func(json.RawMessage) error { return mine }); !errors.Is(err, mine) || rows != 1 {
		t.Errorf("an error of the caller: %d rows, %v", rows, err)
	}
}

// An answer that ends early says why, and is not taken for a whole one.
func TestRowsThatEndEarly(t *testing.T) {
	t.Parallel()
	_, rows, err := rowsOf(t.Context(), t, "edges[source_title]{}", false, func(json.RawMessage) error { return nil })
	if fault.Of(err) != fault.Unavailable || fault.Detail(err) != "the query took too long" || rows != 10_000 {
		t.Errorf("%d rows, %v", rows, err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	_, rows, err = rowsOf(ctx, t, "factsets[certname]{}", false, func(json.RawMessage) error {
		cancel()
		return nil
	})
	if !errors.Is(err, context.Canceled) || rows == 0 {
		t.Errorf("cancelled: %d rows, %v", rows, err)
	}
}
