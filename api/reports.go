package api

import (
	"encoding/json"
	"net/http"
	"time"

	"github.com/tutti-project/tutti/internal/fleet"
)

// Reports of Puppet runs.
var (
	ReportList = op[ReportListRequest, List[Report]](Operation{
		Name: "report.list", Method: http.MethodGet, Path: "/reports", Permission: fleet.ReportRead, Kind: Question,
		Summary: "List reports, newest first",
	})
	ReportShow = op[ReportRequest, Report](Operation{
		Name: "report.show", Method: http.MethodGet, Path: "/reports/{id}", Permission: fleet.ReportRead, Kind: Question,
		Summary: "Show one report with its logs and resources",
	})
)

// reportOperations is the operations of this file, in the order of the reference.
func reportOperations() []Operation {
	return listed(ReportList, ReportShow)
}

// ReportListRequest narrows the list of reports.
type ReportListRequest struct {
	Name   string `query:"name"`
	Status string `query:"status"` // failed, changed, unchanged; empty: all
	After  string `query:"after"`
	Limit  int    `query:"limit"`
}

// ReportRequest names a report by its id, or by a prefix of at least six digits.
type ReportRequest struct {
	ID string `path:"id"`
}

// Report is one run as the node told it. Lists leave out Logs, Metrics and
// Resources.
type Report struct {
	ID              string           `json:"id"`
	Name            string           `json:"name"`
	Environment     string           `json:"environment"`
	Status          string           `json:"status"` // failed, changed, unchanged
	Noop            bool             `json:"noop"`
	NoopPending     bool             `json:"noop_pending"`
	Corrective      bool             `json:"corrective_change"`
	Completed       bool             `json:"completed"`
	PuppetVersion   string           `json:"puppet_version"`
	Version         string           `json:"version"` // of the configuration, as the agent reports it
	TransactionUUID string           `json:"transaction_uuid"`
	CatalogUUID     string           `json:"catalog_uuid,omitempty"`
	CachedCatalog   string           `json:"cached_catalog_status,omitempty"`
	JobID           string           `json:"job_id,omitempty"`
	StartedAt       time.Time        `json:"started_at"`
	Seconds         float64          `json:"seconds"`
	ReceivedAt      time.Time        `json:"received_at"`
	Counts          ReportCounts     `json:"counts"`
	Short           bool             `json:"kept_in_short,omitempty"` // log, metrics and resources are past report_detail_retention
	Logs            []ReportLog      `json:"logs,omitempty"`
	Metrics         json.RawMessage  `json:"metrics,omitempty"`
	Resources       []ReportResource `json:"resources,omitempty"`
}

// ReportCounts sums up a report's resources.
type ReportCounts struct {
	Resources  int `json:"resources"`
	Changed    int `json:"changed"`
	Failed     int `json:"failed"`
	Skipped    int `json:"skipped"`
	Unchanged  int `json:"unchanged"`
	Noop       int `json:"noop"`
	Corrective int `json:"corrective"`
}

// ReportLog is one log line of a run.
type ReportLog struct {
	Time    time.Time `json:"time"`
	Level   string    `json:"level"`
	Source  string    `json:"source,omitempty"`
	Message string    `json:"message"`
	File    string    `json:"file,omitempty"`
	Line    int       `json:"line,omitempty"`
}

// ReportResource is what became of one resource.
type ReportResource struct {
	Type       string        `json:"type"`
	Title      string        `json:"title"`
	Status     string        `json:"status"` // failed, changed, skipped, noop, unchanged
	File       string        `json:"file,omitempty"`
	Line       int           `json:"line,omitempty"`
	Corrective bool          `json:"corrective,omitempty"`
	Seconds    float64       `json:"seconds,omitempty"`
	Events     []ReportEvent `json:"events,omitempty"`
}

// ReportEvent is one property that changed, would change, or could not.
type ReportEvent struct {
	Property string          `json:"property,omitempty"`
	Status   string          `json:"status"` // success, failure, noop, audit
	Previous json.RawMessage `json:"previous,omitempty"`
	Desired  json.RawMessage `json:"desired,omitempty"`
	Message  string          `json:"message,omitempty"`
	Time     time.Time       `json:"time"`
}
