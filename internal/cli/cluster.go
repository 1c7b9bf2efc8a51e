package cli

import (
	"context"
	"strconv"
	"time"

	"github.com/tutti-project/tutti/api"
	"github.com/tutti-project/tutti/internal/cli/print"
)

var clusterCommand = asking{noun{
	use: "cluster", short: "See the servers that use the same records",
	verbs: []declared{clusterStatus},
}}

var clusterStatus = verb[api.Nothing]{
	use: "status", short: "Show servers, their versions, and which of them does what must be done once",
	long: `Show the servers that use the same records, with their versions, and the leases: what must be done once, and which server does it.
A server is running when it was seen within the time of a lease (10 s), and silent otherwise: it was killed, or is cut off; it is forgotten
after a week. A server that stops in order is not listed any more.`,
	example: "  tutti cluster status\n  tutti cluster status -o json",
	run: func(ctx context.Context, c *call, _ *api.Nothing) error {
		return showAnswer(ctx, c.app, api.ClusterStatus, api.Nothing{}, printCluster)
	},
}

func printCluster(to print.Printer, cluster api.Cluster) error {
	now := time.Now()
	rows := make([][]string, len(cluster.Servers))
	for i, s := range cluster.Servers {
		rows[i] = []string{s.Server, to.State(s.State, s.State), s.Version, s.Address, print.Ago(s.StartedAt, now), print.Ago(s.SeenAt, now)}
	}
	if err := to.Rows([]string{"server", "state", "version", "address", "started", "seen"}, rows); err != nil {
		return err
	}
	to.Line("")
	to.Line(busLine(cluster.Bus, now))
	to.Line("")
	rows = make([][]string, len(cluster.Leases))
	for i, l := range cluster.Leases {
		rows[i] = []string{l.Lease, l.State, l.Server, strconv.FormatInt(l.Token, 10), print.Ago(l.Since, now)}
	}
	return to.Rows([]string{"lease", "state", "server", "token", "since"}, rows)
}

// busLine says how the server that answered hears of the others.
func busLine(b api.ClusterBus, now time.Time) string {
	switch b.State {
	case api.BusUp:
		return "bus: NATS at " + b.Place + ", connected " + print.AgoOf(b.Since, now)
	case api.BusDown:
		return "bus: NATS is away (" + print.AgoOf(b.Since, now) + ": " + b.Problem + "); servers look into the database, and orders wait for nodes of other servers"
	}
	return "bus: none (nats_url); servers look into the database"
}
