package puppet_test

import (
	"net/http"
	"strings"
	"testing"

	"github.com/tutti-project/tutti/internal/fault"
	"github.com/tutti-project/tutti/internal/fleet"
	"github.com/tutti-project/tutti/internal/inventory"
)

const (
	jsonType = "Content-Type: application/json"
	inEnv    = "?environment=production"
)

func TestNode(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	const query = inEnv + "&configured_environment=production&transaction_uuid=x"
	check(t, b.send("GET", "/puppet/v3/node/"+web+query, "", "Accept: application/json, text/pson"), want{
		status: 200, body: `{"name":"web-1.example.org","environment":"production"}`,
		headers: map[string]string{"Content-Type": "application/json;charset=utf-8", "X-Puppet-Version": "7.23.0", "Content-Length": "55"},
	})
	check(t, b.sendAs(asNode("pinned-1"), "GET", "/puppet/v3/node/pinned-1"+query, nil), want{status: 200, body: `{"name":"pinned-1","environment":"other"}`})
	check(t, b.send("GET", "/puppet/v3/node/"+web+"?environment=nope", ""), want{
		status: 404, body: `{"message":"Not Found: Could not find environment 'nope'","issue_kind":"RUNTIME_ERROR"}`,
	})
	check(t, b.send("GET", "/puppet/v3/node/"+web, ""), want{status: 400, holds: "An environment parameter must be specified"})
	check(t, b.send("GET", "/puppet/v3/node/"+inEnv, ""), want{status: 400, holds: "No request key specified in /puppet/v3/node/"})
	check(t, b.send("GET", "/puppet/v3/node/WEB-1"+inEnv, ""), want{status: 400, holds: "Bad Request: the certname"})
	check(t, b.send("GET", "/puppet/v3/node/..%2f"+web+inEnv, ""), want{status: 400})
}

func TestStatus(t *testing.T) {
	t.Parallel()
	check(t, newBench(t).send("GET", "/puppet/v3/status/test"+inEnv, ""), want{status: 200, body: `{"is_alive":true,"version":"7.23.0"}`})
}

func TestEnvironments(t *testing.T) {
	t.Parallel()
	check(t, newBench(t).send("GET", "/puppet/v3/environments", "", "Accept: application/json"), want{
		status: 200,
		body: `{"search_paths":[],"environments":{` +
			`"other":{"settings":{"modulepath":[],"environment_timeout":"unlimited","config_version":""}},` +
			`"production":{"settings":{"modulepath":["/code/production/modules"],"manifest":"/code/production/manifests","environment_timeout":"unlimited","config_version":""}}}}`,
	})
}

func TestFacts(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	const target = "/puppet/v3/facts/" + web + inEnv
	check(t, b.send("PUT", target, factsOf(web), jsonType, "Accept: application/json, text/pson"), want{
		status: 200, body: "null", headers: map[string]string{"Content-Type": "application/json;charset=utf-8"},
	})
	facts, err := b.inventory.Facts(t.Context(), web)
	if err != nil || facts.Environment != "production" || !facts.ReceivedAt.Equal(noon) {
		t.Errorf("stored facts %+v, %v", facts, err)
	}
	check(t, b.send("PUT", target, `{"name":"`+web+`","values":{"city":"K`+"\xf6"+`ln"}}`, "Content-Type: text/pson; charset=x"), want{status: 200})
	for name, test := range map[string]struct {
		body, header string
		want         want
	}{
		"another node": {
			factsOf("db-1"), jsonType, want{
				status: 400, holds: `Bad Request: Storage of facts for \"web-1.example.org\" was requested with fact definition for the wrong node (\"db-1\")`,
			},
		},
		"broken": {`{"name":`, jsonType, want{status: 400, holds: "Bad Request: the facts cannot be read"}},
		"empty":  {``, jsonType, want{status: 400, holds: "Bad Request: the facts cannot be read"}},
		"array":  {`[]`, jsonType, want{status: 400, holds: "Bad Request: the facts cannot be read"}},
		"yaml": {
			`--- {}`, "Content-Type: text/yaml", want{
				status: 415, holds: "Unsupported Media Type: Client sent a mime-type (text/yaml) that doesn't correspond to a format we support",
			},
		},
		"no type": {`{}`, "Content-Type: ", want{status: 400, holds: "No Content-Type header was received"}},
	} {
		t.Log(name)
		check(t, b.send("PUT", target, test.body, test.header), test.want)
	}
	check(t, b.send("GET", target, ""), want{
		status: 405, holds: "Method Not Allowed: No support for http method GET on facts", headers: map[string]string{"Allow": "PUT"},
	})
}

// reportOf is a report as small as agents send them.
func reportOf(host string) string {
	return `{"host":"` + host +
		`","time":"2026-11-21T11:58:00.000000000+00:00","configuration_version":"1","transaction_uuid":"5a8d6e1c-0001-4b7e-9f00-000000000001",` +
		`"report_format":12,"puppet_version":"7.23.0","status":"changed","transaction_completed":true,"noop":false,"noop_pending":false,"environment":"production",` +
		`"logs":[{"level":"notice","message":"Applied catalog","source":"Puppet","tags":["notice"],"time":"2026-11-21T11:59:00+00:00","file":null,"line":null}],` +
		`"metrics":{"changes":{"name":"changes","label":"Changes","values":[["total","Total",1]]}},` +
		`"resource_statuses":{"File[/x]":{"title":"/x","file":"/site.pp","line":1,"resource":"File[/x]","resource_type":"File","provider_used":"posix",` +
		`"containment_path":["Stage[main]","Main","File[/x]"],"evaluation_time":0.01,"tags":["file"],"time":"2026-11-21T11:58:59+00:00","failed":false,` +
		`"failed_to_restart":false,"changed":true,"out_of_sync":true,"skipped":false,"change_count":1,"out_of_sync_count":1,"corrective_change":false,` +
		`"events":[{"audited":false,"property":"ensure","previous_value":"absent","desired_value":"file","historical_value":null,"message":"created",` +
		`"name":"file_created","status":"success","time":"2026-11-21T11:58:59+00:00","redacted":null,"corrective_change":false}]}},"corrective_change":false}`
}

func TestReport(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	const target = "/puppet/v3/report/" + web + inEnv
	report := reportOf(web)
	check(t, b.send("PUT", target, report, jsonType, "Accept: application/json, text/pson"), want{status: 200, body: `["store"]`})
	check(t, b.send("PUT", target, report, jsonType), want{status: 200, body: `["store"]`}) // sent again
	check(t, b.send("PUT", target, gzipped(t, report), jsonType, "Content-Encoding: gzip"), want{status: 200})
	stored, err := b.inventory.Reports(t.Context(), inventory.ReportFilter{Page: inventory.Page{Limit: 10}})
	if err != nil || len(stored) != 1 {
		t.Fatalf("%d reports stored, %v", len(stored), err)
	}
	if r := stored[0]; r.Certname != web || r.Status != "changed" || !r.ReceivedAt.Equal(noon) || r.Producer != "tutti.example.org" {
		t.Errorf("stored %+v", r)
	}
	for name, test := range map[string]struct {
		body string
		want want
	}{
		"cut in half":  {report[:len(report)/2], want{status: 400, holds: "cut off"}},
		"another node": {reportOf("db-1"), want{status: 400, holds: `Bad Request: the report of \"db-1\" was sent as that of \"web-1.example.org\"`}},
		"no report":    {"[]", want{status: 400}},
		"too large":    {strings.Repeat(" ", 64<<20+1), want{status: 413, holds: "the report is larger than the 67108864 bytes"}},
	} {
		t.Log(name)
		check(t, b.send("PUT", target, test.body, jsonType), test.want)
	}
}

// TestWhoMayAsk walks through every route with every kind of actor.
func TestWhoMayAsk(t *testing.T) {
	t.Parallel()
	actors := map[string]fleet.Actor{
		"nobody": {Kind: fleet.Anonymous},
		"itself": asNode(web),
		"other":  asNode("db-1.example.org"),
		"token":  {Kind: fleet.UserActor, Name: "ci"},
		"admin":  {Kind: fleet.UserActor, Name: "ops", Grants: []fleet.Grant{{Permission: fleet.NodeAct}}},
	}
	own := map[string]bool{"itself": true, "admin": true}
	anyNode := map[string]bool{"itself": true, "other": true, "admin": true}
	routes := map[string]map[string]bool{
		"GET /puppet/v3/node/" + web + inEnv:                             own,
		"GET /puppet/v3/catalog/" + web + inEnv:                          own,
		"POST /puppet/v3/catalog/" + web + inEnv:                         own,
		"PUT /puppet/v3/facts/" + web + inEnv:                            own,
		"PUT /puppet/v3/report/" + web + inEnv:                           own,
		"GET /puppet/v3/file_metadata/modules/ntp/ntp.conf" + inEnv:      anyNode,
		"GET /puppet/v3/file_metadatas/plugins" + inEnv:                  anyNode,
		"GET /puppet/v3/file_content/modules/ntp/ntp.conf" + inEnv:       anyNode,
		"GET /puppet/v3/static_file_content/modules/ntp/files/x" + inEnv: anyNode,
		"GET /puppet/v3/file_bucket_file/md5/x" + inEnv:                  anyNode,
		"HEAD /puppet/v3/file_bucket_file/md5/x" + inEnv:                 anyNode,
		"PUT /puppet/v3/file_bucket_file/md5/x" + inEnv:                  anyNode,
		"GET /puppet/v3/environments":                                    anyNode,
		"GET /puppet/v3/status/x" + inEnv:                                anyNode,
	}
	b := newBench(t)
	for route, allowed := range routes {
		method, target, _ := strings.Cut(route, " ")
		path, _, _ := strings.Cut(target, "?")
		for name, actor := range actors {
			w := b.sendAs(actor, method, target, strings.NewReader(""))
			if got := w.Code != http.StatusForbidden; got != allowed[name] {
				t.Errorf("%s as %s: status %d, want allowed %v", route, name, w.Code, allowed[name])
			}
			if w.Code == http.StatusForbidden {
				check(t, w, want{
					body:    "Forbidden request: " + path + " (method :" + strings.ToLower(method) + "). Please see the server logs for details.",
					headers: map[string]string{"Content-Type": "text/plain; charset=utf-8"},
				})
			}
		}
	}
	if !strings.Contains(b.logs.String(), "node db-1.example.org may not act for node web-1.example.org") {
		t.Errorf("the log does not say why: %.500s", b.logs)
	}
}

func TestUnknownRoutes(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	for target, want := range map[string]want{
		"GET /puppet/v3/nope/x" + inEnv: {
			status: 404, body: `{"message":"Not Found: Could not find indirection 'nope'","issue_kind":"HANDLER_NOT_FOUND"}`,
		},
		"GET /puppet/v3/": {status: 404},
		"GET /puppet/v4/catalog": {
			status: 404, body: `{"message":"Not Found: No route for GET /puppet/v4/catalog","issue_kind":"HANDLER_NOT_FOUND"}`,
		},
		"DELETE /puppet/v3/catalog/" + web + inEnv: {status: 405, headers: map[string]string{"Allow": "GET, POST"}},
		"POST /puppet/v3/report/" + web + inEnv:    {status: 405, headers: map[string]string{"Allow": "PUT"}},
		"HEAD /puppet/v3/catalog/" + web + inEnv:   {status: 405},
	} {
		method, path, _ := strings.Cut(target, " ")
		check(t, b.send(method, path, ""), want)
	}
}

func TestStoreIsBusy(t *testing.T) {
	t.Parallel()
	b := newBench(t, withFacts(failing{fault.New(fault.Unavailable, "the disk is full")}))
	w := b.send("PUT", "/puppet/v3/facts/"+web+inEnv, factsOf(web), jsonType)
	check(t, w, want{status: 503, body: `{"message":"Service Unavailable: the disk is full","issue_kind":"RUNTIME_ERROR"}`})
	if after := w.Header().Get("Retry-After"); after == "" || after == "0" {
		t.Errorf("Retry-After is %q", after)
	}
}
