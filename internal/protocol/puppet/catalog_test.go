package puppet_test

import (
	"encoding/json"
	"fmt"
	"net/http"
	"net/url"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/tutti-project/tutti/internal/checkin"
	"github.com/tutti-project/tutti/internal/compile"
	"github.com/tutti-project/tutti/internal/fault"
	"github.com/tutti-project/tutti/internal/fleet"
)

const catalogURL = "/puppet/v3/catalog/" + web + "?environment=production"

var (
	formType   = "Content-Type: application/x-www-form-urlencoded"
	acceptsAll = "Accept: " + agentAccept
)

// factsOf is a facts object of a node, as agents send it.
func factsOf(name string) string {
	return `{"name":"` + name + `","values":{"kernel":"Linux","mount":"100% of \u00e9 + \"/srv\""},` +
		`"timestamp":"2026-11-21T11:59:58.123456789+00:00","expiration":"2026-11-21T12:29:58.123456789+00:00"}`
}

// formOf is the body of a catalog request, encoded as agents do it.
func formOf(facts string, extra ...string) string {
	escape := func(s string) string { return strings.ReplaceAll(url.QueryEscape(s), "+", "%20") }
	form := "facts_format=" + escape("application/json") + "&facts=" + escape(escape(facts)) +
		"&environment=production&configured_environment=production&check_environment=true" +
		"&transaction_uuid=5a8d6e1c-0001-4b7e-9f00-000000000001&job_uuid=&static_catalog=true" +
		"&checksum_type=sha256.sha384.sha512.sha224.md5"
	return strings.Join(append([]string{form}, extra...), "&")
}

func TestCatalogPost(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	w := b.send("POST", catalogURL, formOf(factsOf(web)), formType, acceptsAll)
	check(t, w, want{status: 200, body: `{"name":"` + web + `"}`, headers: map[string]string{
		"Content-Type":           "application/vnd.puppet.rich+json;charset=utf-8",
		"X-Puppet-Version":       "7.23.0",
		"X-Puppet-Compiler-Name": "tutti.example.org",
	}})
	visit := b.catalogs.last(t)
	stored, err := b.inventory.Facts(t.Context(), web)
	if err != nil || stored.Environment != "production" || !stored.ReceivedAt.Equal(noon) || stored.Producer != "tutti.example.org" {
		t.Errorf("stored facts: %+v, %v", stored, err)
	}
	if visit.Facts != nil {
		t.Errorf("%d bytes of facts are held while the node waits", len(visit.Facts.Values))
	}
	if got, want := b.values(t), `{"kernel":"Linux","mount":"100% of é + \"/srv\"",`+trustedFact+`}`; got != want {
		t.Errorf("values %s, want %s", got, want)
	}
	wanted := checkin.Visit{
		Request: checkin.Request{
			Node: web, Requested: "production", Transaction: "5a8d6e1c-0001-4b7e-9f00-000000000001", CheckEnvironment: true,
			Static: true, ChecksumTypes: []string{"sha256", "sha384", "sha512", "sha224", "md5"},
		},
		Place: checkin.Place{Environment: "production"}, FactsSeq: 1,
		Trusted: json.RawMessage(`{"authenticated":"remote","certname":"` + web + `"}`),
	}
	if diff := cmp.Diff(wanted, visit); diff != "" {
		t.Errorf("visit (-want +got):\n%s", diff)
	}
}

func TestCatalogGet(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	w := b.send("GET", "/puppet/v3/catalog/"+web+"?"+formOf(factsOf(web)), "", "Accept: application/json")
	check(t, w, want{status: 200, headers: map[string]string{"Content-Type": "application/json;charset=utf-8"}})
	if b.catalogs.last(t).FactsSeq == 0 {
		t.Error("the facts in the query were not read")
	}
	check(t, b.send("GET", catalogURL, "", "Accept: text/pson"), want{status: 200, headers: map[string]string{"Content-Type": "text/pson"}})
	if b.catalogs.last(t).FactsSeq != 0 {
		t.Error("facts out of nothing")
	}
}

func TestCatalogErrors(t *testing.T) {
	t.Parallel()
	oops := &compile.Error{
		Cause: compile.CauseCode, Message: "Evaluation Error: Unknown function: 'nope'. (file: /manifests/site.pp, line: 3, column: 1) on node web-1",
	}
	tests := []struct {
		name    string
		err     error
		status  int
		message string
		retry   string
	}{
		{"code", fmt.Errorf("compile: %w", oops), 500, "Server Error: " + oops.Message, ""},
		{"later", fault.Later(1500*time.Millisecond, "the catalog is being compiled"), 503, "Service Unavailable: the catalog is being compiled", "2"},
		{"soon", fault.Later(time.Millisecond, "busy"), 503, "Service Unavailable: busy", "1"},
		{"environment", fault.New(fault.NotFound, "no code"), 404, "Not Found: Could not find environment 'production'", ""},
		{"conflict", fault.New(fault.Conflict, "look again"), 409, "Conflict: look again", ""},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			t.Parallel()
			b := newBench(t)
			b.catalogs.answer = func(checkin.Visit) (checkin.Answer, error) { return checkin.Answer{}, test.err }
			message, _ := json.Marshal(test.message)
			check(t, b.send("GET", catalogURL, ""), want{
				status: test.status, body: `{"message":` + string(message) + `,"issue_kind":"RUNTIME_ERROR"}`,
				headers: map[string]string{"Retry-After": test.retry, "Content-Type": "application/json;charset=utf-8"},
			})
		})
	}
}

func TestInternalErrorsStayInTheLog(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	b.catalogs.answer = func(checkin.Visit) (checkin.Answer, error) {
		return checkin.Answer{}, fmt.Errorf("secret table is on fire")
	}
	w := b.send("GET", catalogURL, "")
	check(t, w, want{status: 500, holds: `"message":"Server Error: internal error `})
	if strings.Contains(w.Body.String(), "secret") || !strings.Contains(b.logs.String(), "secret table") {
		t.Errorf("answer %s\nlog %s", w.Body, b.logs)
	}
	var shown struct{ Message string }
	if err := json.Unmarshal(w.Body.Bytes(), &shown); err != nil {
		t.Fatal(err)
	}
	if reference := strings.Fields(shown.Message)[4]; !strings.Contains(b.logs.String(), strings.TrimSuffix(reference, ";")) {
		t.Errorf("the log does not hold the reference %s", reference)
	}
}

func TestCatalogOfAnotherEnvironment(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	const node = "pinned-1.example.org"
	ask := func(form string) map[string]any {
		w := b.sendAs(asNode(node), "POST", "/puppet/v3/catalog/"+node+"?environment=production", strings.NewReader(form), formType, acceptsAll)
		check(t, w, want{status: 200})
		var document map[string]any
		if err := json.Unmarshal(w.Body.Bytes(), &document); err != nil {
			t.Fatal(err)
		}
		return document
	}
	document := ask(formOf(factsOf(node)))
	if document["environment"] != "other" || document["name"] != node || len(document["resources"].([]any)) != 0 || document["catalog_uuid"] == "" {
		t.Errorf("want an empty catalog of environment other, got %v", document)
	}
	if len(b.catalogs.asks) != 0 {
		t.Error("a catalog was compiled for nothing")
	}
	ask(strings.ReplaceAll(formOf(factsOf(node)), "check_environment=true", "check_environment=false"))
	if got := b.catalogs.last(t); got.Environment != "other" || got.Requested != "production" {
		t.Errorf("asked for %s, requested %s", got.Environment, got.Requested)
	}
}

func TestCatalogOfUnknownEnvironmentIsTheNodesOwn(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	check(t, b.send("GET", "/puppet/v3/catalog/"+web+"?environment=nope", ""), want{status: 200})
	if got := b.catalogs.last(t); got.Environment != "production" || got.Requested != "nope" {
		t.Errorf("asked for %s, requested %s", got.Environment, got.Requested)
	}
}

func TestRichCatalog(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	b.catalogs.answer = func(checkin.Visit) (checkin.Answer, error) {
		return checkin.Answer{Document: json.RawMessage(`{"rich":1}`), Rich: true}, nil
	}
	for accept, contentType := range map[string]string{
		agentAccept: "application/vnd.puppet.rich+json;charset=utf-8",
		"text/pson, application/vnd.puppet.rich+pson": "application/vnd.puppet.rich+pson",
		"*/*": "application/vnd.puppet.rich+json;charset=utf-8",
	} {
		check(t, b.send("GET", catalogURL, "", "Accept: "+accept), want{status: 200, headers: map[string]string{"Content-Type": contentType}})
	}
	check(t, b.send("GET", catalogURL, "", "Accept: application/json, text/pson"), want{status: 406, holds: "Not Acceptable: the catalog holds rich values"})
}

func TestCatalogHostileForms(t *testing.T) {
	t.Parallel()
	post := func(body string, headers ...string) func(*bench) (string, string, []string) {
		return func(*bench) (string, string, []string) {
			return "POST", body, append([]string{formType, acceptsAll}, headers...)
		}
	}
	tests := []struct {
		name   string
		send   func(*bench) (string, string, []string)
		status int
		holds  string
	}{
		{"another node's facts", post(formOf(factsOf("db-1.example.org"))), 400, `Bad Request: Catalog for \"web-1.example.org\" was requested with fact definition for the wrong node (\"db-1.example.org\")`},
		{"broken json", post(formOf(`{"name":"web-1.example.org","values":{`)), 400, "Bad Request: the facts cannot be read: it ends where"},
		{"no values", post(formOf(`{"name":"web-1.example.org"}`)), 400, "values"},
		{"yaml facts", post(strings.Replace(formOf(factsOf(web)), "application%2Fjson", "yaml", 1)), 400, "Unsupported facts format 'yaml'"},
		{"facts without format", post("facts=%257B%257D"), 400, "Unsupported facts format ''"},
		{"facts twice", post(formOf(factsOf(web), "facts=x")), 400, "holds facts twice"},
		{"half an escape", post("facts_format=pson&facts=%257"), 400, "broken percent escape"},
		{"broken escape", post("facts_format=pson&facts=%zz"), 400, "broken percent escape"},
		{"broken escape of another field", post("job_uuid=%zz"), 400, "the form field 'job_uuid' holds a broken percent escape"},
		{"long id", post("job_uuid=" + strings.Repeat("x", 129)), 400, "job_uuid is longer than 128 bytes"},
		{"id with control characters", post("transaction_uuid=a%0Ab"), 400, "control characters"},
		{"long field", post("whatever=" + strings.Repeat("x", 100_000)), 400, "the form field 'whatever' is longer"},
		{"long name", post(strings.Repeat("x", 100_000)), 400, "field name of more than 256 bytes"},
		{"many fields", post(strings.Repeat("a=b&", 100)), 400, "more than 64 fields"},
		{"checksum types", post("checksum_type=../../x"), 400, "checksum_type is not a list"},
		{"json body", post("{}", "Content-Type: application/json"), 415, "UNSUPPORTED_MEDIA_TYPE"},
		{"no content type", post("", "Content-Type: "), 400, "MISSING_HEADER_FIELD"},
		{"unknown encoding", post("", "Content-Encoding: br"), 415, "the content encoding 'br' is not supported"},
		{"not gzip", post("plain", "Content-Encoding: gzip"), 400, "the catalog request is not well-formed gzip"},
		{"nothing acceptable", post("",
			"Accept: text/html"), 406, `Not Acceptable: No supported formats are acceptable (Accept: text/html)","issue_kind":"UNSUPPORTED_FORMAT"`},
		{"no accept", post("", "Accept: "), 400, `Bad Request: Missing required Accept header","issue_kind":"MISSING_HEADER_FIELD"`},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			t.Parallel()
			b := newBench(t)
			method, body, headers := test.send(b)
			check(t, b.send(method, catalogURL, body, headers...), want{status: test.status, holds: test.holds})
			if len(b.catalogs.asks) != 0 {
				t.Error("it was compiled all the same")
			}
		})
	}
}

func TestLargeFacts(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	value := strings.Repeat("x", 50<<20)
	facts := `{"name":"` + web + `","values":{"big":"` + value + `"}}`
	const message = `Payload Too Large: the facts are larger than the 16777216 bytes that this server allows`
	form := strings.Replace(formOf(`{"name":"`+web+`","values":{"big":"?"}}`), "%253F", value, 1)
	check(t, b.send("POST", catalogURL, form, formType, acceptsAll), want{status: 413, holds: message})
	put := "/puppet/v3/facts/" + web + "?environment=production"
	check(t, b.send("PUT", put, facts, "Content-Type: application/json"), want{status: 413, holds: message})
	check(t, b.send("PUT", put, gzipped(t, facts), "Content-Type: application/json", "Content-Encoding: gzip"), want{status: 413, holds: message})
}

func TestCompressedRequest(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	check(t, b.send("POST", catalogURL, gzipped(t, formOf(factsOf(web))), formType, acceptsAll, "Content-Encoding: gzip"), want{status: 200})
	if b.catalogs.last(t).FactsSeq == 0 {
		t.Error("no facts were read")
	}
	cut := gzipped(t, formOf(factsOf(web)))
	check(t, b.send("POST", catalogURL, cut[:len(cut)-9], formType, acceptsAll, "Content-Encoding: gzip"), want{status: 400, holds: "not well-formed gzip"})
}

func TestCompressedAnswer(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	document := `{"long":"` + strings.Repeat("lorem ipsum ", 1000) + `"}`
	b.catalogs.answer = func(checkin.Visit) (checkin.Answer, error) {
		return checkin.Answer{Document: json.RawMessage(document)}, nil
	}
	w := b.send("GET", catalogURL, "", "Accept-Encoding: gzip;q=1.0,deflate;q=0.6,identity;q=0.3")
	check(t, w, want{status: 200, headers: map[string]string{"Content-Encoding": "gzip", "Vary": "Accept-Encoding"}})
	if w.Body.Len() > len(document)/10 {
		t.Errorf("%d bytes compressed to %d", len(document), w.Body.Len())
	}
	if got := gunzipped(t, w.Body); got != document {
		t.Errorf("decompressed to %.100s", got)
	}
	for _, header := range []string{"", "identity", "gzip;q=0", "gzip; q=0.0"} {
		check(t, b.send("GET", catalogURL, "", "Accept-Encoding: "+header), want{status: 200, body: document, headers: map[string]string{"Content-Encoding": ""}})
	}
}

// trustedFact is what the server stores with a node's facts.
const trustedFact = `"trusted":{"authenticated":"remote","certname":"` + web + `"}`

func TestPSONFacts(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	facts := `{"name":"` + web + `","values":{"city":"K` + "\xf6" + `ln"}}`
	check(t, b.send("POST", catalogURL, strings.Replace(formOf(facts), "application%2Fjson", "pson", 1), formType, acceptsAll), want{status: 200})
	if got, want := b.values(t), `{"city":"Köln",`+trustedFact+`}`; got != want {
		t.Errorf("values %s, want %s", got, want)
	}
}

func TestAdministratorAsksForANode(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	admin := fleet.Actor{Kind: fleet.UserActor, Name: "ops", Grants: []fleet.Grant{{Permission: fleet.NodeAct}}}
	check(t, b.sendAs(admin, http.MethodGet, catalogURL, nil), want{status: 200})
	if b.catalogs.last(t).Certificate != nil {
		t.Error("the administrator's certificate was passed off as the node's")
	}
}
