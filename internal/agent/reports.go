package agent

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"io"
	"io/fs"
	"log/slog"
	"net/http"
	"net/url"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/tutti-project/tutti/internal/fault"
)

// reports are those that no server took when their run ended: files that package puppetrun writes, oldest first by
// name. A server knows a report that it has by its content, so that one which is sent twice is stored once.
type reports struct {
	dir     string
	node    string
	servers []string
	client  *http.Client
	keep    time.Duration
	log     *slog.Logger

	delivering sync.Mutex
}

// Bounds of what is kept; the oldest go first.
const (
	maxReports     = 2000
	maxReportsSize = 256 << 20
	maxReportBytes = 64 << 20
	reportTime     = 2 * time.Minute
)

// list returns the names of the reports that wait, oldest first, and forgets those that are too many or too old.
func (r *reports) list(ctx context.Context) ([]string, error) {
	entries, err := os.ReadDir(r.dir)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, unwritable(r.dir, err)
	}
	var names []string
	size := int64(0)
	for _, entry := range slices.Backward(entries) {
		info, err := entry.Info()
		if err != nil || !strings.HasSuffix(entry.Name(), ".json") {
			continue // gone, or being written
		}
		if size += info.Size(); len(names) >= maxReports || size > maxReportsSize || time.Since(info.ModTime()) > r.keep {
			r.log.WarnContext(ctx, "report dropped, it waited too long or there are too many", "report", entry.Name())
			r.drop(ctx, entry.Name())
			continue
		}
		names = append(names, entry.Name())
	}
	slices.Reverse(names)
	return names, nil
}

// Waiting is how many no server has taken yet.
func (r *reports) Waiting() int {
	found, err := filepath.Glob(filepath.Join(r.dir, "*.json"))
	if err != nil {
		return 0
	}
	return len(found)
}

// Deliver sends what waits; the first that no server takes ends it.
func (r *reports) Deliver(ctx context.Context) error {
	r.delivering.Lock()
	defer r.delivering.Unlock()
	names, err := r.list(ctx)
	if err != nil {
		return err
	}
	for _, name := range names {
		text, err := os.ReadFile(filepath.Join(r.dir, name))
		if err != nil {
			return unwritable(filepath.Join(r.dir, name), err)
		}
		err = r.sendInTurn(ctx, text)
		switch {
		case fault.Is(err, fault.Invalid):
			r.log.WarnContext(ctx, "report dropped, no server will ever take it", "report", name, "err", err)
		case err != nil:
			return err
		default:
			r.log.InfoContext(ctx, "report delivered late", "report", name)
		}
		r.drop(ctx, name)
	}
	return nil
}

func (r *reports) drop(ctx context.Context, name string) {
	if err := os.Remove(filepath.Join(r.dir, name)); err != nil && !errors.Is(err, fs.ErrNotExist) {
		r.log.WarnContext(ctx, "report not removed; it will be sent again", "report", name, "err", err)
	}
}

// turns is how often one report is put off before all of them are.
const turns = 3

// sendInTurn waits as long as a server asks for that takes so many reports in a minute, as those are that wait after it was away.
func (r *reports) sendInTurn(ctx context.Context, text []byte) error {
	for turn := 1; ; turn++ {
		err := r.send(ctx, text)
		if !fault.IsTooOften(err) || turn == turns {
			return err
		}
		timer := time.NewTimer(min(fault.RetryAfter(err), longestWait))
		select {
		case <-ctx.Done():
			timer.Stop()
			return err
		case <-timer.C:
		}
	}
}

// send gives a report to the first server that takes it. Invalid: none ever will.
func (r *reports) send(ctx context.Context, text []byte) error {
	var about struct {
		Environment string `json:"environment"`
	}
	if err := json.Unmarshal(text, &about); err != nil || len(text) > maxReportBytes {
		return fault.New(fault.Invalid, "it is no report in JSON of at most %d bytes", maxReportBytes)
	}
	err := fault.New(fault.Unavailable, "no server is set that takes reports")
	for _, server := range r.servers {
		if err = r.sendTo(ctx, server, about.Environment, text); err == nil || ctx.Err() != nil {
			break
		}
	}
	return err
}

func (r *reports) sendTo(ctx context.Context, server, environment string, text []byte) error {
	ctx, cancel := context.WithTimeout(ctx, reportTime)
	defer cancel()
	address := strings.TrimSuffix(server, "/") + "/puppet/v3/report/" + url.PathEscape(r.node) + "?environment=" + url.QueryEscape(environment)
	request, err := http.NewRequestWithContext(ctx, http.MethodPut, address, bytes.NewReader(text))
	if err != nil {
		return err
	}
	request.Header.Set("Content-Type", "application/json")
	request.Header.Set("Accept", "application/json")
	response, err := r.client.Do(request)
	if err != nil {
		return unreachable(ctx, server, err)
	}
	defer func() { _ = response.Body.Close() }()
	said, _ := io.ReadAll(io.LimitReader(response.Body, 500))
	switch response.StatusCode {
	case http.StatusOK, http.StatusAccepted, http.StatusNoContent:
		return nil
	case http.StatusBadRequest, http.StatusRequestEntityTooLarge, http.StatusUnprocessableEntity:
		return fault.New(fault.Invalid, "%s refuses it with %d: %s", server, response.StatusCode, strings.ToValidUTF8(string(said), "?"))
	}
	if seconds, err := strconv.Atoi(response.Header.Get("Retry-After")); err == nil && seconds > 0 && response.StatusCode == http.StatusTooManyRequests {
		return fault.TooOften(time.Duration(seconds)*time.Second, "%s wants fewer reports: %s", server, strings.ToValidUTF8(string(said), "?"))
	}
	return fault.New(fault.Unavailable, "%s answers with %d: %s", server, response.StatusCode, strings.ToValidUTF8(string(said), "?"))
}
