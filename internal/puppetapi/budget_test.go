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
	if _, err := agent.Write([]byte(large)); err != nil { // returns when all of it was read
		t.Fatal(err)
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
