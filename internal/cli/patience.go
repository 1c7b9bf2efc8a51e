package cli

import (
	"fmt"
	"io"
	"net/http"
	"sync"
	"time"

	"github.com/tutti-project/tutti/internal/cli/print"
)

// patience shows somebody at a terminal that a server is waited for, and since when, as soon as that takes longer than a
// second. The line goes away with the answer. It may be used concurrently.
type patience struct {
	next    http.RoundTripper
	out     io.Writer
	width   int
	mu      sync.Mutex
	waiting int // requests
}

// noticed is from when on waiting is shown.
const noticed = time.Second

// RoundTrip waits for an answer's head.
func (p *patience) RoundTrip(r *http.Request) (*http.Response, error) {
	stop := p.show(r.URL.Host)
	defer stop()
	return p.next.RoundTrip(r)
}

// show begins to wait; one line is shown, whatever the number of requests is. stop ends it.
func (p *patience) show(host string) (stop func()) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.waiting++
	if p.waiting > 1 {
		return p.leave(func() {})
	}
	began, done, ended := time.Now(), make(chan struct{}), make(chan struct{})
	go func() {
		defer close(ended)
		tick := time.NewTicker(noticed)
		defer tick.Stop()
		for shown := false; ; shown = true {
			select {
			case <-done:
				if shown {
					_, _ = io.WriteString(p.out, "\r\x1b[2K")
				}
				return
			case <-tick.C:
				line := fmt.Sprintf("Waiting for the answer of %s, %s", host, print.Duration(time.Since(began).Round(time.Second)))
				_, _ = io.WriteString(p.out, "\r\x1b[2K"+print.Shortened(line, max(20, p.width-1)))
			}
		}
	}()
	return p.leave(func() { close(done); <-ended })
}

func (p *patience) leave(last func()) func() {
	return func() {
		last()
		p.mu.Lock()
		p.waiting--
		p.mu.Unlock()
	}
}
