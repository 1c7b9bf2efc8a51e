package puppetapi_test

import (
	"io"
	"strings"
	"sync"
	"testing"

	"github.com/tutti-project/tutti/internal/puppetapi"
)

// While one large report holds the budget another is told to come back; small ones
// pass, and large ones do again when the first is over.
func TestLargeBodiesShareABudget(t *testing.T) {
	t.Parallel()
	const mebibyte = 1 << 20
	b := newBench(t, func(c *puppetapi.Config) { c.Limits.LargeBytes = 2 * mebibyte })
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
	form := "facts_format=application%2Fjson&facts=" + strings.Repeat("%2520", 3*mebibyte/5)
	check(t, b.send("POST", catalogURL, form, "Content-Type: application/x-www-form-urlencoded"), want{status: 503})
	check(t, b.send("PUT", target, report, jsonType), want{status: 200})

	_ = agent.CloseWithError(io.ErrUnexpectedEOF)
	wg.Wait()
	for range 3 { // what was refused holds nothing either
		check(t, b.send("PUT", target, large, jsonType), want{status: 200})
	}
}
