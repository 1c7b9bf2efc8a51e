package orchestrator

import (
	"context"
	"encoding/json"
	"net/http"
	"slices"

	"github.com/tutti-project/tutti/internal/fleet"
	"github.com/tutti-project/tutti/internal/inventory"
	"github.com/tutti-project/tutti/internal/job"
	"github.com/tutti-project/tutti/internal/pql"
	"github.com/tutti-project/tutti/internal/protocol/pejson"
)

// reportedAtOnce is how many runs the inventory is asked about at a time.
const reportedAtOnce = 200

// reported is what the inventory knows of a Puppet run.
type reported struct {
	Transaction string `json:"transaction_uuid"`
	Certname    string `json:"certname"`
	Environment string `json:"environment"`
	Version     string `json:"configuration_version"`
	Events      struct {
		Data []json.RawMessage `json:"data"`
	} `json:"resource_events"`
	Metrics struct {
		Data []figure `json:"data"`
	} `json:"metrics"`
}

// figure is one of what a report of Puppet counts.
type figure struct {
	Category string  `json:"category"`
	Name     string  `json:"name"`
	Value    float64 `json:"value"`
}

// nodeReport is one node of a job's report. There are two sorts of clients, and they read it under different names.
type nodeReport struct {
	Node        fleet.Certname                `json:"node"`
	Certname    fleet.Certname                `json:"certname"`
	State       string                        `json:"state"`
	Timestamp   any                           `json:"timestamp"`
	Transaction string                        `json:"transaction_uuid"`
	Environment string                        `json:"environment"`
	Version     string                        `json:"configuration_version"`
	Metrics     map[string]map[string]float64 `json:"metrics,omitempty"` // by category, as Puppet's report has them
	Events      []json.RawMessage             `json:"events"`
}

// jobReport tells what Puppet did on the nodes of a job.
func (h *jobs) jobReport(w http.ResponseWriter, r *http.Request) error {
	ctx := r.Context()
	j, err := h.job(ctx, fleet.JobRead, "id", r.PathValue("id"))
	if err != nil {
		return err
	}
	runs, err := h.runs(ctx, j.ID, nil)
	if err != nil {
		return err
	}
	items := make([]nodeReport, 0, len(runs))
	for part := range slices.Chunk(runs, reportedAtOnce) {
		known, err := h.reportedOf(ctx, part)
		if err != nil {
			return err
		}
		for _, run := range part {
			items = append(items, reportOf(j, run, known))
		}
	}
	text, err := json.Marshal(items) // once: a report may be large
	if err != nil {
		return err
	}
	pejson.Write(w, http.StatusOK, map[string]json.RawMessage{"items": text, "report": text})
	return nil
}

func reportOf(j job.Job, run job.Run, known map[string]reported) nodeReport {
	item := nodeReport{
		Node: run.Node, Certname: run.Node, State: runStates[run.State], Timestamp: stamp(latest(j, run)), Transaction: run.ID, Events: []json.RawMessage{},
	}
	if run.Puppet == nil {
		return item
	}
	item.Transaction, item.Environment = run.Puppet.Transaction, run.Puppet.Environment
	item.Metrics = map[string]map[string]float64{"resources": {}}
	for name, value := range metrics(run.Puppet.Metrics) {
		item.Metrics["resources"][name] = float64(value)
	}
	if k, there := known[run.Puppet.Transaction]; there && k.Certname == string(run.Node) {
		for _, f := range k.Metrics.Data {
			if item.Metrics[f.Category] == nil {
				item.Metrics[f.Category] = map[string]float64{}
			}
			item.Metrics[f.Category][f.Name] = f.Value
		}
		item.Environment, item.Version = k.Environment, k.Version
		item.Events = append(item.Events, k.Events.Data...)
	}
	return item
}

// reportedOf asks the inventory for the reports of runs, by their transactions.
func (h *jobs) reportedOf(ctx context.Context, runs []job.Run) (map[string]reported, error) {
	among := pql.In{Fields: []pql.Field{{Name: "transaction_uuid"}}}
	for _, run := range runs {
		if run.Puppet != nil && run.Puppet.Transaction != "" {
			among.Values = append(among.Values, pql.Text(run.Puppet.Transaction))
		}
	}
	if len(among.Values) == 0 {
		return nil, nil //nolint:nilnil // nothing is known of them
	}
	query := &pql.Query{Entity: "reports", Where: among}
	for _, name := range []string{"transaction_uuid", "certname", "environment", "configuration_version", "resource_events", "metrics"} {
		query.Columns = append(query.Columns, pql.Column{Field: pql.Field{Name: name}})
	}
	checked, err := pql.Check(query)
	if err != nil {
		return nil, err
	}
	known := map[string]reported{}
	err = h.Inventory.Ask(ctx, inventory.Question{Query: checked, Gone: true}, func(row json.RawMessage) error {
		var k reported
		err := json.Unmarshal(row, &k)
		known[k.Transaction] = k
		return err
	})
	return known, err
}
