package orchestrator

import (
	"cmp"
	"net/http"
	"slices"

	"github.com/tutti-project/tutti/internal/fault"
	"github.com/tutti-project/tutti/internal/fleet"
	"github.com/tutti-project/tutti/internal/job"
	"github.com/tutti-project/tutti/internal/protocol/pejson"
)

// connection is whether a node's agent is connected. What is not known of one that is not is left out: clients read no null there.
type connection struct {
	Name      fleet.Certname `json:"name"`
	Connected bool           `json:"connected"`
	Broker    string         `json:"broker,omitempty"`
	Timestamp string         `json:"timestamp,omitempty"`
}

// inventoryTime is how times of connections are told.
const inventoryTime = "2006-01-02T15:04:05.000Z"

func (h *Handler) connection(node fleet.Certname) connection {
	p, there := h.Connections.Presence(node)
	if !there {
		return connection{Name: node}
	}
	return connection{Name: node, Connected: true, Broker: "pcp://" + p.Server + "/server", Timestamp: p.Since.UTC().Format(inventoryTime)}
}

// unseen is those of nodes that who asks may not see, with the reason.
func (h *Handler) unseen(r *http.Request, nodes []fleet.Certname) (map[fleet.Certname]string, error) {
	return h.Gate.RefusedTo(r.Context(), fleet.ActorFrom(r.Context()), fleet.NodeRead, job.Spec{Kind: job.Puppet}, nodes)
}

// listInventory lists the nodes that are connected.
func (h *Handler) listInventory(w http.ResponseWriter, r *http.Request) error {
	nodes := h.Connections.Connected()
	unseen, err := h.unseen(r, nodes)
	if err != nil {
		return err
	}
	items := []connection{}
	for _, node := range nodes {
		if c := h.connection(node); c.Connected && unseen[node] == "" {
			items = append(items, c)
		}
	}
	slices.SortFunc(items, func(a, b connection) int { return cmp.Compare(a.Name, b.Name) })
	pejson.Write(w, http.StatusOK, map[string]any{"items": items})
	return nil
}

// askInventory tells of each node that is named whether it is connected, also of nodes that nobody knows.
func (h *Handler) askInventory(w http.ResponseWriter, r *http.Request) error {
	var body struct {
		Nodes []string `json:"nodes"`
	}
	if err := h.read(w, r, maxBody, &body); err != nil {
		return err
	}
	if body.Nodes == nil {
		return h.invalid("nodes", "it is missing; give a list of certnames")
	}
	nodes, err := h.certnames("nodes", body.Nodes)
	if err != nil {
		return err
	}
	slices.Sort(nodes)
	nodes = slices.Compact(nodes)
	if err := h.mustSee(r, nodes); err != nil {
		return err
	}
	items := make([]connection, len(nodes))
	for i, node := range nodes {
		items[i] = h.connection(node)
	}
	pejson.Write(w, http.StatusOK, map[string]any{"items": items})
	return nil
}

// mustSee refuses nodes that are not who asks's to see.
func (h *Handler) mustSee(r *http.Request, nodes []fleet.Certname) error {
	unseen, err := h.unseen(r, nodes)
	for _, why := range unseen {
		return fault.New(fault.Denied, "%s. It is needed for %d of %s", why, len(unseen), fault.Count(len(nodes), "node"))
	}
	return err
}

func (h *Handler) showInventory(w http.ResponseWriter, r *http.Request) error {
	nodes, err := h.certnames("node", []string{r.PathValue("node")})
	if err != nil {
		return err
	}
	if err := h.mustSee(r, nodes); err != nil {
		return err
	}
	pejson.Write(w, http.StatusOK, h.connection(nodes[0]))
	return nil
}
