package main

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"
	"os/exec"
	"sync"
	"time"

	"golang.org/x/sync/errgroup"

	"github.com/tutti-project/tutti/bench/internal/authority"
	"github.com/tutti-project/tutti/bench/rivals/load"
	"github.com/tutti-project/tutti/bench/rivals/measure"
)

// Files are fetched by a process of its own: in the one of 5 000 agents a client of files would wait for them, and
// that would be taken for the server's slowness.

// fetcherWord as the first argument makes this program that process.
const fetcherWord = "fetch-files"

// fetching is what it is told on its standard input.
type fetching struct {
	URL     string  `json:"url"`
	Data    string  `json:"data"`    // the server's directory: it holds the CA
	Clients int     `json:"clients"` // one connection each
	PerS    float64 `json:"per_s"`   // files a second that they want together
}

// fetched is what it answers when its standard input ends.
type fetched struct {
	Latencies []time.Duration `json:"latencies"`
	Wall      time.Duration   `json:"wall"`
}

// begun is its first line: all clients are connected.
const begun = "begun\n"

// fetchFiles is that process: it begins when it is told what to do, and ends when its input does.
func fetchFiles(in io.Reader, out io.Writer) error {
	order := json.NewDecoder(in)
	var f fetching
	if err := order.Decode(&f); err != nil {
		return err
	}
	conns, err := f.connect(context.Background())
	if err != nil {
		return err
	}
	if _, err := io.WriteString(out, begun); err != nil {
		return err
	}
	ctx, stop := context.WithCancel(context.Background())
	go func() {
		defer stop()
		_, _ = io.Copy(io.Discard, io.MultiReader(order.Buffered(), in))
	}()
	done, err := f.run(ctx, conns)
	if err != nil {
		return err
	}
	return json.NewEncoder(out).Encode(done)
}

// connect opens a connection for each client and fetches one file over it.
func (f fetching) connect(ctx context.Context) ([]*load.Conn, error) {
	ca, err := authority.Open(f.Data)
	if err != nil {
		return nil, err
	}
	conns := make([]*load.Conn, f.Clients)
	for i := range conns {
		config, err := ca.Client(fmt.Sprintf("files-%d.example.org", i))
		if err != nil {
			return nil, err
		}
		if conns[i], err = load.NewConn(f.URL, config); err != nil {
			return nil, err
		}
		if err := fetchOne(ctx, conns[i]); err != nil {
			return nil, err
		}
	}
	return conns, nil
}

// run fetches until ctx ends, and finishes what is under way. A latency counts from when the file was wanted; a client that is
// late does not fetch more afterwards.
func (f fetching) run(ctx context.Context, conns []*load.Conn) (done fetched, err error) {
	var mu sync.Mutex
	var work errgroup.Group
	every := time.Duration(float64(len(conns)) / f.PerS * float64(time.Second))
	begin := time.Now()
	for i, conn := range conns {
		work.Go(func() error {
			defer conn.Close()
			for next := begin.Add(every * time.Duration(i) / time.Duration(len(conns))); ; {
				if measure.Settle(ctx, time.Until(next)) != nil {
					return nil // it is over
				}
				if err := fetchOne(context.WithoutCancel(ctx), conn); err != nil {
					return err
				}
				now := time.Now()
				mu.Lock()
				done.Latencies = append(done.Latencies, now.Sub(next))
				mu.Unlock()
				if next = next.Add(every); next.Before(now) {
					next = now
				}
			}
		})
	}
	err = work.Wait()
	done.Wall = time.Since(begin)
	return done, err
}

var someFile = load.Request{
	Path:   "/puppet/v3/file_content/modules/storm/some.txt?environment=production",
	Header: http.Header{"Accept": {"application/octet-stream"}},
}

func fetchOne(ctx context.Context, conn *load.Conn) error {
	response, err := conn.Discard(ctx, someFile)
	return load.Expect(someFile, response, err, http.StatusOK)
}

// fetcher is the process as its parent sees it.
type fetcher struct {
	cmd *exec.Cmd
	in  io.WriteCloser
	out *bufio.Reader
}

// startFetcher returns when files are being fetched.
func startFetcher(ctx context.Context, f fetching) (*fetcher, error) {
	self, err := os.Executable()
	if err != nil {
		return nil, err
	}
	cmd := exec.CommandContext(ctx, self, fetcherWord) //nolint:gosec // this program
	cmd.Stderr = os.Stderr
	in, err := cmd.StdinPipe()
	if err != nil {
		return nil, err
	}
	out, err := cmd.StdoutPipe()
	if err != nil {
		return nil, err
	}
	if err := cmd.Start(); err != nil {
		return nil, err
	}
	p := &fetcher{cmd: cmd, in: in, out: bufio.NewReader(out)}
	err = json.NewEncoder(in).Encode(f)
	if err == nil {
		var line string
		if line, err = p.out.ReadString('\n'); err == nil && line != begun {
			err = fmt.Errorf("the process that fetches files says %q", line)
		}
	}
	if err != nil {
		_ = in.Close()
		return nil, errors.Join(err, cmd.Wait())
	}
	return p, nil
}

// stop ends it and says what it saw, and what CPU it used.
func (p *fetcher) stop() (done fetched, cpu time.Duration, err error) {
	err = p.in.Close()
	if err == nil {
		err = json.NewDecoder(p.out).Decode(&done)
	}
	if wait := p.cmd.Wait(); wait != nil {
		return done, 0, errors.Join(err, wait)
	}
	return done, p.cmd.ProcessState.UserTime() + p.cmd.ProcessState.SystemTime(), err
}
