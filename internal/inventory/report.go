package inventory

import (
	"context"
	"encoding/json"
	"time"

	"github.com/tutti-project/tutti/internal/fleet"
)

// Report is what a node said of one run. Its ID is the digest of its canonical
// content, so the same report sent twice is stored once.
type Report struct {
	Origin
	ID               fleet.Digest
	Certname         fleet.Certname
	Environment      fleet.Environment
	Type             string // agent, plan; a store takes empty for agent
	Status           string // failed, changed, unchanged; empty: not told
	Noop             bool
	NoopPending      bool
	CorrectiveChange bool
	Completed        bool // transaction_completed
	PuppetVersion    string
	ReportFormat     int
	ConfigVersion    string
	TransactionUUID  string
	CatalogUUID      string
	CodeID           string
	JobID            string
	CachedCatalog    string // cached_catalog_status
	Server           string // server_used
	StartedAt        time.Time
	EndedAt          time.Time
	ReceivedAt       time.Time
	Metrics          json.RawMessage // as sent: {group: {name,label,values}}
	Logs             []RunLog
	Resources        []ResourceStatus // only those that are not plainly unchanged carry events
	Counts           Counts
	Short            bool // see ReportStore.ShortenReports
}

// InShort is the one log line of a report that is kept in short.
func InShort(r Report) RunLog {
	return RunLog{
		Level: "notice", Source: "Tutti", Time: r.ReceivedAt,
		Message: "this report is kept in short: its log, metrics, resources and events are past report_detail_retention",
	}
}

// Counts sums up a report's resources and events.
type Counts struct {
	Resources, Changed, Failed, Skipped, Unchanged, Noop, Corrective int
}

// RunLog is one log line of a run.
type RunLog struct {
	Level   string    `json:"level"`
	Message string    `json:"message"`
	Source  string    `json:"source"`
	Tags    []string  `json:"tags,omitempty"`
	Time    time.Time `json:"time"`
	File    string    `json:"file,omitempty"`
	Line    int       `json:"line,omitempty"`
}

// ResourceStatus is what became of one resource in a run.
type ResourceStatus struct {
	Type             string    `json:"type"`
	Title            string    `json:"title"`
	File             string    `json:"file,omitempty"`
	Line             int       `json:"line,omitempty"`
	ContainmentPath  []string  `json:"containment_path,omitempty"`
	EvaluationTime   float64   `json:"evaluation_time,omitempty"` // seconds
	Skipped          bool      `json:"skipped,omitempty"`
	Failed           bool      `json:"failed,omitempty"`
	FailedToRestart  bool      `json:"failed_to_restart,omitempty"`
	Changed          bool      `json:"changed,omitempty"`
	OutOfSync        bool      `json:"out_of_sync,omitempty"`
	CorrectiveChange bool      `json:"corrective_change,omitempty"`
	Time             time.Time `json:"time"`
	Events           []Event   `json:"events,omitempty"`
}

// Happened lists a resource's events. That it was skipped is one, as PuppetDB has
// it, and then the only one.
func (r *ResourceStatus) Happened() []Event {
	if r.Skipped {
		return []Event{{Status: "skipped", Time: r.Time}}
	}
	return r.Events
}

// Event is one property that a run changed, would have changed, or could not.
type Event struct {
	Property         string          `json:"property,omitempty"`
	Previous         json.RawMessage `json:"previous_value,omitempty"`
	Desired          json.RawMessage `json:"desired_value,omitempty"`
	Message          string          `json:"message,omitempty"`
	Name             string          `json:"name,omitempty"`
	Status           string          `json:"status"` // success, failure, noop, audit
	Time             time.Time       `json:"time"`
	CorrectiveChange bool            `json:"corrective_change,omitempty"`
	Redacted         bool            `json:"redacted,omitempty"`
}

// ReportFilter narrows a list of reports; zero fields do not narrow. Page.After
// is the ID of the last report of the page before.
type ReportFilter struct {
	Certname fleet.Certname
	Status   string
	Page     Page
}

// ReportStore keeps reports. Methods may be called concurrently.
type ReportStore interface {
	// SaveReport stores r once under its ID and creates the node if need be. When
	// it returns the report survives a crash. The node's latest report is the one that
	// was produced last (see Origin), plans apart.
	SaveReport(ctx context.Context, r Report) error
	// Reports lists reports, newest first, without logs, metrics and resources.
	Reports(ctx context.Context, f ReportFilter) ([]Report, error)
	// Report reads one report whole. id may be any unambiguous prefix of at least
	// six digits; Conflict when more than one report has it.
	Report(ctx context.Context, id string) (Report, error)
	// PruneReports forgets reports received before the given time, each node's
	// newest excepted, in small batches.
	PruneReports(ctx context.Context, before time.Time) (int, error)
	// ShortenReports keeps reports received before the given time in short, each node's newest excepted, in small batches,
	// and counts them: metrics, resources and events are forgotten, and the log is InShort. All else stays, and Short is set.
	ShortenReports(ctx context.Context, before time.Time) (int, error)
}
