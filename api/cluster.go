package api

import (
	"net/http"
	"time"

	"github.com/tutti-project/tutti/internal/fleet"
)

// ClusterStatus is which servers use the records, and what one of them does at a time.
var ClusterStatus = op[Nothing, Cluster](Operation{
	Name: "cluster.status", Method: http.MethodGet, Path: "/cluster", Permission: fleet.MetricsRead, Kind: Question,
	Summary: "Show the servers that use the same records, and which of them does what must be done once",
})

// ClusterDrain asks a server to do no more, before it is stopped.
var ClusterDrain = op[ClusterDrainRequest, Nothing](Operation{
	Name: "cluster.drain", Method: http.MethodPost, Path: "/cluster/drain", Permission: fleet.ServerDrain, Kind: Act,
	Summary: "Have a server leave its work to others and close its connections, before it is stopped",
})

// clusterOperations is the operations of this file.
func clusterOperations() []Operation { return listed(ClusterStatus, ClusterDrain) }

// ClusterDrainRequest names a server that is to be emptied.
type ClusterDrainRequest struct {
	Server      string `json:"server"`                 // as cluster.status lists it
	OverSeconds int    `json:"over_seconds,omitempty"` // the time in which its connections are closed, a few at a time; 60 if it is not said
}

// Cluster is the servers that use the same records.
type Cluster struct {
	Answered string          `json:"answered"` // the server that gave this answer
	Servers  []ClusterServer `json:"servers"`
	Leases   []ClusterLease  `json:"leases"`
	Bus      ClusterBus      `json:"bus"` // of the server that answered
}

// ClusterBus is how the server that answered hears of the others.
type ClusterBus struct {
	Kind    string     `json:"kind"`              // nats, or none
	State   string     `json:"state"`             // up, down, or none: by the database only
	Place   string     `json:"place,omitempty"`   // the NATS server that it is connected to
	Since   *time.Time `json:"since,omitempty"`   // it is up, or down
	Problem string     `json:"problem,omitempty"` // why it is down
}

// ClusterServer is one of the servers.
type ClusterServer struct {
	Server    string    `json:"server"`
	State     string    `json:"state"` // running, draining, or silent: it ended without a word, or is cut off
	Address   string    `json:"address"`
	Version   string    `json:"version"`
	Roles     []string  `json:"roles"` // what it does; empty: everything
	StartedAt time.Time `json:"started_at"`
	SeenAt    time.Time `json:"seen_at"`
	DrainAt   time.Time `json:"drain_at,omitzero"` // when it was asked to drain
	// Near is how one stands that is near its nodes and far from the database, as it said last; of others it is left out.
	Near *ClusterNear `json:"near,omitempty"`
}

// ClusterNear is how a server near its nodes stands: what it did while it could not reach the database.
type ClusterNear struct {
	CutAt       time.Time `json:"cut_at,omitzero"`  // when it could not reach the database last
	BackAt      time.Time `json:"back_at,omitzero"` // when it could again
	Queued      int       `json:"queued"`           // facts, reports and events that it has not delivered yet
	QueuedBytes int64     `json:"queued_bytes"`
	SetAside    int       `json:"set_aside"`     // those that the database refused for good; its log says why
	Kept        int       `json:"kept_catalogs"` // nodes whose catalog is kept there
	Served      int64     `json:"served_kept"`   // kept catalogs that it gave to nodes since it started
	Delivered   int64     `json:"delivered"`     // facts, reports and events that it delivered afterwards
}

// ClusterLease is a work that one server does at a time.
type ClusterLease struct {
	Lease  string    `json:"lease"`
	State  string    `json:"state"`  // held or free
	Server string    `json:"server"` // who has it; of a free one: who had it last
	Token  int64     `json:"token"`  // how often it was given
	Since  time.Time `json:"since"`
}

// How servers and leases stand.
const (
	ServerRunning  = "running"
	ServerDraining = "draining"
	ServerSilent   = "silent"
	LeaseHeld      = "held"
	LeaseFree      = "free"
	BusUp          = "up"
	BusDown        = "down"
	BusNone        = "none"
)
