package orchestrator

import (
	"maps"
	"net/http"
	"os"
	"regexp"
	"slices"
	"strconv"
	"testing"

	"github.com/google/go-cmp/cmp"
)

const page = "../../../docs/enterprise-api-compatibility.md"

// The page has a row with both other columns for each route, and for nothing else; and the kinds of errors with their statuses.
func TestThePageHasEveryRoute(t *testing.T) {
	t.Parallel()
	text, err := os.ReadFile(page)
	if err != nil {
		t.Fatal(err)
	}
	rows := regexp.MustCompile("(?m)^\\| `([A-Z]+ "+regexp.QuoteMeta(Prefix)+"[^`]*)` \\| [^|]+ \\| [^|]+ \\|$").FindAllSubmatch(text, -1)
	var listed []string
	for _, row := range rows {
		listed = append(listed, string(row[1]))
	}
	slices.Sort(listed)
	if diff := cmp.Diff(slices.Sorted(maps.Keys((&Handler{}).routes())), listed); diff != "" {
		t.Errorf("%s (-served +listed):\n%s", page, diff)
	}
	kinds := map[string]int{}
	for _, row := range regexp.MustCompile("(?m)^\\| `([a-z-]+)` \\| ([0-9]{3}) \\|").FindAllSubmatch(text, -1) {
		kinds[string(row[1])], _ = strconv.Atoi(string(row[2]))
	}
	if diff := cmp.Diff(statuses(), kinds); diff != "" {
		t.Errorf("kinds of errors (-sent +listed):\n%s", diff)
	}
}

// Every refusal of an order has a word, and every word of a client's library is sent.
func TestKindsThatClientsKnow(t *testing.T) {
	t.Parallel()
	known := statuses()
	for _, word := range []string{ // orchestrator_client makes classes of these; the inventory is part of the server, so puppetdb-error is never sent
		"validation-error", "unknown-job", "unknown-environment", "empty-environment", "empty-target", "dependency-cycle", "query-error",
		"unknown-error", "not-permitted",
	} {
		if known[word] == 0 {
			t.Errorf("%s is never sent", word)
		}
	}
	for word, kind := range words {
		if status := known[kind]; status < http.StatusBadRequest {
			t.Errorf("the refusal %s is called %s, with the status %d", word, kind, status)
		}
	}
}
