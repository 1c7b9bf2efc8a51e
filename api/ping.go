package api

import (
	"net/http"

	"github.com/tutti-project/tutti/internal/fleet"
)

// NodePing asks agents whether they answer. What else may be asked of nodes is with their jobs.
var NodePing = op[NodePingRequest, List[Pong]](Operation{
	Name: "node.ping", Method: http.MethodPost, Path: "/ping", Permission: fleet.NodeRead, Kind: Question,
	Summary: "Ask the agents of nodes whether they answer, and how fast",
})

// NodePingRequest says whom to ask.
type NodePingRequest struct {
	Targets JobTargets `json:"targets"`           // nobody: all nodes whose agent is connected
	Timeout int64      `json:"timeout,omitempty"` // milliseconds that an agent has to answer, 1 to 60000; 0: 5000
}

// Pong is how a node answered. A node without milliseconds did not.
type Pong struct {
	Node          string     `json:"node"`
	Milliseconds  *float64   `json:"milliseconds,omitempty"`   // from the question to the answer, at the server
	Connected     *Connected `json:"connected,omitempty"`      // its agent, if that is connected
	LastConnected *LastSeen  `json:"last_connected,omitempty"` // its agent, if that was connected earlier; neither: no agent ever was
}
