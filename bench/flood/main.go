// Flood measures what strangers can do to a server: whether the holder of a join token
// is signed in while a flood of certificate requests comes, and what logins that are
// never sent to their end take. Method and figures: docs/benchmarks.md.
//
//	go run ./bench/flood [-only requests,logins] [-requests 20000] [-logins 1000]
package main

import (
	"context"
	"flag"
	"fmt"
	"net/netip"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/tutti-project/tutti/bench/rivals"
	"github.com/tutti-project/tutti/bench/rivals/measure"
)

// settings are the knobs; they go into the report as they were.
type settings struct {
	Only      string `json:"only"`
	Requests  int    `json:"requests"`
	Addresses int    `json:"addresses"` // that the requests come from
	Senders   int    `json:"senders"`   // connections of each address
	Logins    int    `json:"logins"`
	Each      int    `json:"each"` // logins of each address

	rivals.Knobs `json:"-"`
}

// The aims.
const (
	aimJoin   = time.Second
	aimGrowth = 64 << 20
)

var columns = []string{
	"requests", "seconds", "per_second", "refused", "waiting", "joins", "join_p50_ms", "join_max_ms",
	"logins", "held", "growth_mb", "login_ms", "closed_s", "server_cores",
}

func main() {
	var s settings
	flag.StringVar(&s.Only, "only", "requests,logins", "what to measure")
	flag.IntVar(&s.Requests, "requests", 20_000, "certificate requests, each of another name and key")
	flag.IntVar(&s.Addresses, "addresses", 10, "addresses that they come from, 127.0.0.2 and so on")
	flag.IntVar(&s.Senders, "senders", 4, "connections of each address")
	flag.IntVar(&s.Logins, "logins", 1000, "logins that are not sent to their end")
	flag.IntVar(&s.Each, "each", 4, "of them from one address; a server counts the tries of each")
	s.Flags(10*time.Minute, "the server's files and log")
	flag.Parse()
	s.Main("flood", s.run)
}

func (s settings) run(ctx context.Context, dir string) error {
	binary, err := rivals.BuildTutti(ctx, dir)
	if err != nil {
		return err
	}
	report := &measure.Report{Name: "flood", Time: time.Now().UTC(), Machine: measure.ThisMachine(), Settings: s}
	for name := range strings.SplitSeq(s.Only, ",") {
		row, note, err := s.part(ctx, name, binary, filepath.Join(dir, name))
		report.Rows, report.Notes = append(report.Rows, row), append(report.Notes, note)
		if err != nil {
			return report.Incomplete(os.Stdout, columns, fmt.Errorf("%s: %w", name, err))
		}
	}
	return report.Finish(os.Stdout, columns, s.Out)
}

// part starts a server, floods it, and stops it. Loopback has the limits that other addresses have.
func (s settings) part(ctx context.Context, name, binary, dir string) (row measure.Row, note string, err error) {
	server, err := rivals.StartTutti(ctx, binary, dir, "--autosign", "off", "--connection-limit-exempt", "192.0.2.0/24", "--access-log=false")
	if err != nil {
		return row, "", err
	}
	defer func() {
		if stop := server.Stop(); err == nil {
			err = stop
		}
	}()
	switch name {
	case "requests":
		return s.flood(ctx, server)
	case "logins":
		return s.halfOpen(ctx, server)
	}
	return row, "", fmt.Errorf("-only knows requests and logins, not %q", name)
}

// source is the n-th address that a flood comes from.
func source(n int) netip.Addr {
	return netip.AddrFrom4([4]byte{127, 0, byte(n / 200), byte(2 + n%200)}) //nolint:gosec // n is small
}

// verdict says whether an aim is met.
func verdict(met bool) string {
	if met {
		return "met"
	}
	return "MISSED"
}
