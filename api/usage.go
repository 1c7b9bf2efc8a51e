package api

import (
	"net/http"
	"time"

	"github.com/tutti-project/tutti/internal/fleet"
)

// ServerUsage is what the data takes.
var ServerUsage = op[Nothing, Usage](Operation{
	Name: "server.usage", Method: http.MethodGet, Path: "/usage", Permission: fleet.MetricsRead, Kind: Question,
	Summary: "Say what the server's data takes, how fast it grows, and until when the disk lasts",
})

// usageOperations is the operations of this file.
func usageOperations() []Operation { return listed(ServerUsage) }

// Usage is what the server's data takes.
type Usage struct {
	At    time.Time   `json:"at"` // when it was measured
	Areas []UsageArea `json:"areas"`
	Bytes int64       `json:"bytes"` // all areas
	// Growth is of all areas, in bytes a day since Since; both are missing until there is a measurement of an earlier day.
	Growth *int64     `json:"growth_per_day,omitempty"`
	Since  *time.Time `json:"since,omitempty"`
	Disk   UsageDisk  `json:"disk"` // of the data directory
}

// UsageArea is one part of the data.
type UsageArea struct {
	Area   string `json:"area"`
	Bytes  int64  `json:"bytes"`
	Growth *int64 `json:"growth_per_day,omitempty"`
}

// UsageDisk is the file system of the data directory.
type UsageDisk struct {
	FreeBytes int64 `json:"free_bytes"`
	ReadOnly  bool  `json:"read_only"` // it is full: nothing is stored
	// FullAt is when it will be full, if everything grows as it did; missing when that is not known, or nothing grows.
	FullAt *time.Time `json:"full_at,omitempty"`
}
