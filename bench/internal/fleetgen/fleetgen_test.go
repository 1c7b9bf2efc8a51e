package fleetgen

import (
	"bytes"
	"encoding/json"
	"testing"
	"time"
)

var fleet = Fleet{Seed: 7, Base: time.Date(2026, 11, 21, 12, 0, 0, 0, time.UTC)}

func leaves(v any, path string, out map[string]any) {
	switch v := v.(type) {
	case map[string]any:
		for key, value := range v {
			leaves(value, path+"."+key, out)
		}
	case []any:
		for i, value := range v {
			leaves(value, path+"."+string(rune('0'+i)), out)
		}
	default:
		out[path] = v
	}
}

func factLeaves(t *testing.T, node, generation int) map[string]any {
	t.Helper()
	var values map[string]any
	if err := json.Unmarshal(marshal(fleet.Facts(node, generation)), &values); err != nil {
		t.Fatal(err)
	}
	out := map[string]any{}
	leaves(values, "", out)
	return out
}

func differing(a, b map[string]any) int {
	n := 0
	for path, value := range a {
		if b[path] != value {
			n++
		}
	}
	return n
}

func TestFactsHaveTheShapeOfRealOnes(t *testing.T) {
	t.Parallel()
	first, second, other := factLeaves(t, 3, 0), factLeaves(t, 3, 1), factLeaves(t, 4, 0)
	if n := len(first); n < 230 || n > 290 {
		t.Errorf("%d leaves, want about 250", n)
	}
	if n := differing(first, second); n < 10 || n > 30 {
		t.Errorf("%d leaves change between generations, want about 20", n)
	}
	if n := differing(first, other); n < 40 || n > 120 {
		t.Errorf("%d leaves differ between nodes", n)
	}
}

func TestSameSeedSameBytes(t *testing.T) {
	t.Parallel()
	again, other := fleet, Fleet{Seed: 8, Base: fleet.Base}
	for name, make := range map[string]func(Fleet) []byte{
		"puppet facts":    func(f Fleet) []byte { return f.PuppetFacts(5, 2) },
		"puppetdb facts":  func(f Fleet) []byte { return f.PuppetDBFacts(5, 2) },
		"puppet report":   func(f Fleet) []byte { return f.PuppetReport(5, 2) },
		"puppetdb report": func(f Fleet) []byte { return f.PuppetDBReport(5, 2) },
	} {
		if !bytes.Equal(make(fleet), make(again)) {
			t.Errorf("%s differ for the same seed", name)
		}
		if bytes.Equal(make(fleet), make(other)) {
			t.Errorf("%s are the same for another seed", name)
		}
	}
}

func TestReportsTellTheSameRun(t *testing.T) {
	t.Parallel()
	events, resources := 0, 0
	for node := range 50 {
		var agent struct {
			TransactionUUID string `json:"transaction_uuid"`
			Statuses        map[string]struct {
				Events []any `json:"events"`
			} `json:"resource_statuses"`
		}
		var db struct {
			TransactionUUID string `json:"transaction_uuid"`
			Resources       []struct {
				Events []any `json:"events"`
			} `json:"resources"`
		}
		if err := json.Unmarshal(fleet.PuppetReport(node, 1), &agent); err != nil {
			t.Fatal(err)
		}
		if err := json.Unmarshal(fleet.PuppetDBReport(node, 1), &db); err != nil {
			t.Fatal(err)
		}
		uuid := fleet.TransactionUUID(node, 1)
		if agent.TransactionUUID != uuid || db.TransactionUUID != uuid {
			t.Fatalf("uuids %s, %s, want %s", agent.TransactionUUID, db.TransactionUUID, uuid)
		}
		a, b := 0, 0
		for _, status := range agent.Statuses {
			a += len(status.Events)
		}
		for _, resource := range db.Resources {
			b += len(resource.Events)
		}
		if a != b || len(agent.Statuses) != resourcesPerReport {
			t.Fatalf("node %d: %d and %d events, %d resources", node, a, b, len(agent.Statuses))
		}
		events += a
		resources += len(agent.Statuses)
	}
	if events < 50 || events > 150 {
		t.Errorf("%d events in %d resources", events, resources)
	}
}
