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

// Who wants a part of an answer gets it, and is told that there is more.
func TestTheFirstRows(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	b.contains(t, "POST", "/query", `{"query":"edges[source_title]{}","most":2}`, 200, `"more":true}`)
	b.contains(t, "POST", "/query", `{"query":"nodes[certname]{}","most":1}`, 200, `]}`)
	b.contains(t, "POST", "/query", `{"query":"nodes[certname]{}","most":-1}`, 400, "field most")
	got := b.call(admin, "POST", "/api/v1/query", []byte(`{"query":"edges[source_title]{}","most":2}`))
	var answer api.QueryAnswer
	if err := json.Unmarshal(got.Body.Bytes(), &answer); err != nil || len(answer.Rows) != 2 || !answer.More {
		t.Errorf("%v: %s", err, got.Body)
	}
}

// An editor learns where a query is wrong, and what may follow its beginning.
func TestHelpForEditors(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	b.contains(t, "POST", "/query", `{"query":"nodes {\n certnam = \"a\" }"}`, 400, `"place":{"line":2,"column":2}`)
	b.contains(t, "GET", "/query-words?text=nodes%7Blatest_report_st", "", 200, `"begun":"latest_report_st"`, `{"text":"latest_report_status","kind":"field"}`)
	b.contains(t, "GET", "/query-words?condition=true&text=certname+", "", 200, `"begun":""`, `{"text":"=","kind":"operator"}`)
}

// What is saved is found under its name, and is its owner's.
func TestSavedQueries(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	b.contains(t, "PUT", "/queries/red", `{"query":"nodes[certname]{latest_report_status = \"failed\"}","description":"look here"}`, 200, `"owner":"admin"`)
	b.contains(t, "PUT", "/queries/wrong", `{"query":"nodes["}`, 400, `"place"`)
	b.contains(t, "GET", "/queries", "", 200, `"name":"red"`, `"description":"look here"`)
	operator := b.call(callers[9], "DELETE", "/api/v1/queries/red", nil)
	if operator.Code != 403 {
		t.Errorf("somebody else removed it: %d %s", operator.Code, operator.Body)
	}
	b.contains(t, "DELETE", "/queries/red", "", 200, `"name":"red"`)
	b.contains(t, "GET", "/queries/red", "", 404, "no saved query")
}
