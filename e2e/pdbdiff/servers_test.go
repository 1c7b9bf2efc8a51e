package pdbdiff_test

import (
	"bytes"
	"compress/gzip"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"maps"
	"net/http"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"golang.org/x/sync/errgroup"

	"github.com/tutti-project/tutti/bench/rivals"
)

// server is one that is asked.
type server struct {
	name   string
	url    string
	token  string // empty: nobody has to prove anything
	client *http.Client
	hashes map[string]string // of reports: the server's own, by transaction
	major  int               // of the version that PuppetDB says it is
}

// senders is how many commands are on their way at once.
const senders = 4

// do sends a request and reads the whole answer.
func (s *server) do(ctx context.Context, method, path string, header http.Header, body []byte) (answer, error) {
	request, err := http.NewRequestWithContext(ctx, method, s.url+path, bytes.NewReader(body))
	if err != nil {
		return answer{}, err
	}
	maps.Copy(request.Header, header)
	if s.token != "" {
		request.Header.Set("Authorization", "Bearer "+s.token)
	}
	response, err := s.client.Do(request)
	if err != nil {
		return answer{}, err
	}
	defer func() { _ = response.Body.Close() }()
	text, err := io.ReadAll(response.Body)
	return answer{
		status: response.StatusCode, kind: response.Header.Get("Content-Type"), total: response.Header.Get("X-Records"), body: text,
	}, err
}

// submit sends a command as the terminus does: packed, named in the address.
func (s *server) submit(ctx context.Context, c command) error {
	var packed bytes.Buffer
	w := gzip.NewWriter(&packed)
	_, _ = w.Write(c.payload) // into memory
	_ = w.Close()
	path := fmt.Sprintf("/pdb/cmd/v1?version=%d&certname=%s&command=%s&producer-timestamp=%s", c.version, c.certname, c.name, url.QueryEscape(stamp(c.at)))
	header := http.Header{
		"Content-Type": {"application/json; charset=utf-8"}, "Accept": {"application/json"}, "Content-Encoding": {"gzip"},
		"X-Uncompressed-Length": {fmt.Sprint(len(c.payload))},
	}
	a, err := s.do(ctx, http.MethodPost, path, header, packed.Bytes())
	if err == nil && a.status != http.StatusOK {
		err = fmt.Errorf("status %d: %s", a.status, a.body)
	}
	if err != nil {
		return fmt.Errorf("%s: %s of %s: %w", s.name, c.name, c.certname, err)
	}
	return nil
}

// load sends commands; those of one node stay in their order.
func (s *server) load(ctx context.Context, commands []command) error {
	group, ctx := errgroup.WithContext(ctx)
	for mine := range senders {
		group.Go(func() error {
			for _, c := range commands {
				if int(c.certname[len(c.certname)-len("0.example.org")])%senders != mine {
					continue
				}
				if err := s.submit(ctx, c); err != nil {
					return err
				}
			}
			return nil
		})
	}
	return group.Wait()
}

// number asks for one number.
func (s *server) number(ctx context.Context, query string) (int, error) {
	a, err := s.do(ctx, http.MethodGet, "/pdb/query/v4?query="+url.QueryEscape(query), nil, nil)
	if err != nil {
		return 0, err
	}
	var rows []struct{ Count int }
	if err := json.Unmarshal(a.body, &rows); err != nil || len(rows) != 1 {
		return 0, fmt.Errorf("%s: %s: status %d: %s", s.name, query, a.status, a.body)
	}
	return rows[0].Count, nil
}

// settle waits until the server knows what was sent: commands are worked off after
// they were accepted.
func (s *server) settle(ctx context.Context, want map[string]int) error {
	poll := time.NewTicker(100 * time.Millisecond)
	defer poll.Stop()
	for query, count := range want {
		for {
			n, err := s.number(ctx, query)
			if err != nil {
				return err
			}
			if n == count {
				break
			}
			select {
			case <-ctx.Done():
				return fmt.Errorf("%s: %s gives %d, want %d: %w", s.name, query, n, count, ctx.Err())
			case <-poll.C:
			}
		}
	}
	return nil
}

// fill gives a server the whole fleet.
func (s *server) fill(ctx context.Context) error {
	commands, farewells := fleet()
	if err := s.load(ctx, commands); err != nil {
		return err
	}
	want := map[string]int{}
	for _, c := range commands {
		switch c.name {
		case "replace_facts":
			want["factsets[count()]{}"]++
		case "replace_catalog":
			want["catalogs[count()]{}"]++
		case "store_report":
			want["reports[count()]{}"]++
		}
	}
	if err := s.settle(ctx, want); err != nil {
		return err
	}
	if err := s.load(ctx, farewells); err != nil {
		return err
	}
	if err := s.settle(ctx, map[string]int{`nodes[count()]{node_state = "inactive"}`: len(farewells)}); err != nil {
		return err
	}
	return s.learnHashes(ctx)
}

// learnHashes maps the transaction of each report, which the fleet decides, to
// the hash that the server gave it.
func (s *server) learnHashes(ctx context.Context) error {
	a, err := s.do(ctx, http.MethodGet, "/pdb/query/v4?query="+url.QueryEscape(`reports[hash, transaction_uuid]{node_state = "any"}`), nil, nil)
	if err != nil {
		return err
	}
	var rows []struct {
		Hash        string `json:"hash"`
		Transaction string `json:"transaction_uuid"`
	}
	if err := json.Unmarshal(a.body, &rows); err != nil {
		return fmt.Errorf("%s: reports: status %d: %s", s.name, a.status, a.body)
	}
	s.hashes = map[string]string{}
	for _, row := range rows {
		s.hashes[row.Transaction] = row.Hash
	}
	return nil
}

// learnVersion asks which PuppetDB it is.
func (s *server) learnVersion(ctx context.Context) error {
	a, err := s.do(ctx, http.MethodGet, "/pdb/meta/v1/version", nil, nil)
	if err != nil {
		return err
	}
	var said struct{ Version string }
	if err := json.Unmarshal(a.body, &said); err != nil {
		return fmt.Errorf("%s: version: status %d: %s", s.name, a.status, a.body)
	}
	if _, err := fmt.Sscanf(said.Version, "%d.", &s.major); err != nil {
		return fmt.Errorf("%s: version %q: %w", s.name, said.Version, err)
	}
	return nil
}

// startPuppetDB starts Debian's with its PostgreSQL. Nothing in it grows too old,
// and nothing in it must survive the machine; Java is told that it will not live
// long, which saves a third of its start.
func startPuppetDB(ctx context.Context, t *testing.T, dir string) (*server, *rivals.PuppetDB) {
	t.Helper()
	db, err := rivals.StartPuppetDBWith(ctx, dir, rivals.PuppetDBConfig{
		Heap: "1g", Keep: true, Threads: 2, Java: []string{"-XX:TieredStopAtLevel=1", "-XX:+UseSerialGC"},
		Postgres: []string{"fsync=off", "full_page_writes=off", "max_wal_size=2GB"},
	})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := db.Stop(); err != nil {
			t.Error(err)
		}
	})
	return existing(db.URL()), db
}

// existing is a PuppetDB at an address.
func existing(address string) *server {
	return &server{name: "puppetdb", url: address, client: &http.Client{CheckRedirect: stay}}
}

// startTutti starts Tutti as an operator would. Nothing in it grows too old.
func startTutti(ctx context.Context, t *testing.T, binary, dir string, flags ...string) *server {
	t.Helper()
	tutti, err := rivals.StartTutti(ctx, binary, dir, append(flags, "--report-retention", "876000h", "--node-ttl", "0", "--node-purge-ttl", "0")...)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := tutti.Stop(); err != nil {
			t.Error(err)
		}
	})
	token, err := os.ReadFile(tutti.TokenPath())
	if err != nil {
		t.Fatal(err)
	}
	transport := &http.Transport{TLSClientConfig: tutti.Trust(), MaxIdleConnsPerHost: senders}
	return &server{
		name: filepath.Base(dir), url: tutti.URL(), token: strings.TrimSpace(string(token)),
		client: &http.Client{CheckRedirect: stay, Transport: transport},
	}
}

// stay leaves a redirection as the answer that it is.
func stay(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }
