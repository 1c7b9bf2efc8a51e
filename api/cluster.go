package api

import (
	"net/http"
	"time"

	"github.com/tutti-project/tutti/internal/fleet"
)

// ClusterStatus is which servers use the records, and what one of them does at a time.
var ClusterStatus = Op[Nothing, Cluster]{
	Name: "cluster.status", Method: http.MethodGet, Path: "/cluster", Permission: fleet.MetricsRead, Kind: Question,
	Summary: "Show the servers that use the same records, and which of them does what must be done once",
}

// clusterOperations is the operations of this file.
func clusterOperations() []Operation { return listed(ClusterStatus) }

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
	State     string    `json:"state"` // running, or silent: it ended without a word, or is cut off
	Address   string    `json:"address"`
	Version   string    `json:"version"`
	StartedAt time.Time `json:"started_at"`
	SeenAt    time.Time `json:"seen_at"`
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
	ServerRunning = "running"
	ServerSilent  = "silent"
	LeaseHeld     = "held"
	LeaseFree     = "free"
	BusUp         = "up"
	BusDown       = "down"
	BusNone       = "none"
)
