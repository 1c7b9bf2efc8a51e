package puppet_test

import (
	"io"
	"strings"
	"sync"
	"testing"

	"github.com/tutti-project/tutti/internal/protocol/puppet"
)

// Whoever is alone may send what one may send, however small the budget is.
func TestALargeBodyAloneIsTaken(t *testing.T) {
	t.Parallel()
	b := newBench(t, func(c *puppet.Config) { c.Limits.LargeBytes = 1 })
	check(t, b.send("PUT", "/puppet/v3/report/"+web+inEnv, reportOf(web)+strings.Repeat(" ", 5<<20), jsonType), want{status: 200})
	check(t, b.send("PUT", "/puppet/v3/facts/"+web+inEnv, factsOf(web)+strings.Repeat(" ", 5<<20), jsonType), want{status: 200})
}

// Facts that come apart and those in catalog requests share one budget; reports have
// their own.
func TestLargeFactsAndReportsHaveBudgetsApart(t *testing.T) {
	t.Parallel()
	const mebibyte = 1 << 20
	b := newBench(t, func(c *puppet.Config) { c.Limits.LargeBytes = 2 * mebibyte })
	space := strings.Repeat(" ", 2*mebibyte)
	slow, agent := io.Pipe()
	var wg sync.WaitGroup
	wg.Go(func() {
		check(t, b.sendAs(asNode(web), "PUT", "/puppet/v3/facts/"+web+inEnv, slow, jsonType), want{status: 200})
	})
	for _, part := range []string{factsOf(web), space, " "} {
		if _, err := io.WriteString(agent, part); err != nil {
			t.Fatal(err)
		}
	}
	form := formOf(factsOf(web) + strings.Repeat(" ", 3*mebibyte/5)) // a space takes five bytes
	check(t, b.send("POST", catalogURL, form, formType, acceptsAll), want{status: 503})
	check(t, b.send("POST", catalogURL, formOf(factsOf(web)), formType, acceptsAll), want{status: 200})
	check(t, b.send("PUT", "/puppet/v3/report/"+web+inEnv, reportOf(web)+space, jsonType), want{status: 200})
	_ = agent.Close()
	wg.Wait()
	check(t, b.send("PUT", "/puppet/v3/facts/"+web+inEnv, factsOf(web)+space, jsonType), want{status: 200})
}

// While one large report holds the budget another is told to come back; small ones
// pass, and large ones do again when the first is over.
func TestLargeBodiesShareABudget(t *testing.T) {
	t.Parallel()
	const mebibyte = 1 << 20
	b := newBench(t, func(c *puppet.Config) { c.Limits.LargeBytes = 2 * mebibyte })
	target, report := "/puppet/v3/report/"+web+inEnv, reportOf(web)
	large := report + strings.Repeat(" ", 2*mebibyte)

	slow, agent := io.Pipe()
	var wg sync.WaitGroup
	wg.Go(func() {
		check(t, b.sendAs(asNode(web), "PUT", target, slow, jsonType), want{status: 400, holds: "cut off"})
	})
	for _, part := range []string{large, " "} { // a write returns when it was read; then what came before it is counted
		if _, err := io.WriteString(agent, part); err != nil {
			t.Fatal(err)
		}
	}
	w := b.send("PUT", target, large, jsonType)
	check(t, w, want{status: 503})
	if w.Header().Get("Retry-After") == "" {
		t.Error("nothing says when to come back")
	}
	check(t, b.send("PUT", target, report, jsonType), want{status: 200})

	_ = agent.CloseWithError(io.ErrUnexpectedEOF)
	wg.Wait()
	for range 3 { // what was refused holds nothing either
		check(t, b.send("PUT", target, large, jsonType), want{status: 200})
	}
}
