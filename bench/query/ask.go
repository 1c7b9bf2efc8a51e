package main

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"time"

	"github.com/tutti-project/tutti/bench/rivals/load"
	"github.com/tutti-project/tutti/bench/rivals/measure"
)

// answer is what one server said to one question.
type answer struct {
	rows    int
	digest  string // of the rows, sorted
	bytes   int
	first   time.Duration
	latency measure.Latency
	failed  string
}

// A question is asked once to warm up and then until it was asked often enough or
// has taken long enough.
const longEnough = 15 * time.Second

// ask asks one question on one connection, one time after the other.
func (s settings) ask(ctx context.Context, conn *load.Conn, header http.Header, q question) (answer, error) {
	request := load.Request{Path: q.target(), Header: header}
	var a answer
	var samples []time.Duration
	begin := time.Now()
	for i := 0; i <= s.Times && (i < 3 || time.Since(begin) < longEnough); i++ {
		start := time.Now()
		response, err := conn.Fetch(ctx, request)
		took := time.Since(start)
		if err != nil {
			return a, fmt.Errorf("%s: %w", q.name, err)
		}
		if response.Status != http.StatusOK {
			a.failed = fmt.Sprintf("status %d: %.300s", response.Status, response.Body)
			return a, nil
		}
		if i > 0 || took > longEnough { // who takes that long is not asked again
			samples = append(samples, took)
		}
		if i > 0 {
			continue
		}
		a.first = took
		if err := a.read(response.Body); err != nil {
			return a, fmt.Errorf("%s: %w", q.name, err)
		}
		if took > longEnough {
			break
		}
	}
	a.latency = measure.Summarize(samples)
	return a, nil
}

// read counts the rows and makes a digest of them that does not depend on their
// order, nor on that of their keys, nor on how numbers are written.
func (a *answer) read(body []byte) error {
	var rows []any
	if err := json.Unmarshal(body, &rows); err != nil {
		var single map[string]any
		if json.Unmarshal(body, &single) != nil {
			return fmt.Errorf("read answer: %w: %.200s", err, body)
		}
		rows = []any{single}
	}
	texts := make([]string, len(rows))
	for i, row := range rows {
		sortTags(row)
		text, err := json.Marshal(row)
		if err != nil {
			return err
		}
		texts[i] = string(text)
	}
	slices.Sort(texts)
	sum := sha256.Sum256([]byte(strings.Join(texts, "\n")))
	a.rows, a.bytes, a.digest = len(rows), len(body), hex.EncodeToString(sum[:8])
	return nil
}

// sortTags brings a resource's tags in order, each once: they are a set.
func sortTags(row any) {
	fields, _ := row.(map[string]any)
	if tags, ok := fields["tags"].([]any); ok {
		slices.SortFunc(tags, func(a, b any) int { return strings.Compare(fmt.Sprint(a), fmt.Sprint(b)) })
		fields["tags"] = slices.Compact(tags)
	}
}
