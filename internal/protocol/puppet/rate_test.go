package puppet_test

import (
	"net/url"
	"testing"
	"time"

	"github.com/tutti-project/tutti/internal/protocol/puppet"
	"github.com/tutti-project/tutti/internal/rate"
)

// A node that sends more than it may is told what limit it met and when to come back; others go on.
func TestFactsAndReportsAreLimited(t *testing.T) {
	t.Parallel()
	now := noon
	b := newBench(t, func(c *puppet.Config) {
		c.Now = func() time.Time { return now }
		c.FactsRate = rate.Per(time.Minute, 2, "%s sends facts more than 2 times a minute (setting facts_per_minute)")
		c.ReportsRate = rate.Per(time.Minute, 1, "%s sends reports more than 1 times a minute (setting reports_per_minute)")
	})
	facts := func(node string) string { return "/puppet/v3/facts/" + node + inEnv }
	report := "/puppet/v3/report/" + web + inEnv
	catalog := "environment=production&facts_format=application%2Fjson&facts=" + url.QueryEscape(url.QueryEscape(factsOf(web)))
	check(t, b.send("PUT", facts(web), factsOf(web), jsonType), want{status: 200})
	check(t, b.send("POST", "/puppet/v3/catalog/"+web, catalog, "Content-Type: application/x-www-form-urlencoded", "Accept: "+agentAccept), want{status: 200})
	check(t, b.send("PUT", facts(web), factsOf(web), jsonType), want{
		status: 429, headers: map[string]string{"Retry-After": "30"},
		body: `{"message":"Too Many Requests: ` + web +
			` sends facts more than 2 times a minute (setting facts_per_minute); come back in 30s","issue_kind":"RUNTIME_ERROR"}`,
	})
	check(t, b.sendAs(asNode("db-1"), "PUT", facts("db-1"), nil, jsonType), want{status: 400}) // is not put off
	check(t, b.send("PUT", report, reportOf(web), jsonType), want{status: 200})
	check(t, b.send("PUT", report, reportOf(web), jsonType), want{
		status: 429, holds: "setting reports_per_minute", headers: map[string]string{"Retry-After": "60"},
	})
	now = now.Add(time.Minute)
	check(t, b.send("PUT", facts(web), factsOf(web), jsonType), want{status: 200})
	check(t, b.send("PUT", report, reportOf(web), jsonType), want{status: 200})
}
