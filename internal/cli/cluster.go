package cli

import (
	"cmp"
	"context"
	"strconv"
	"strings"
	"time"

	"github.com/tutti-project/tutti/api"
	"github.com/tutti-project/tutti/internal/cli/print"
	"github.com/tutti-project/tutti/internal/fault"
)

var clusterCommand = asking{noun{
	use: "cluster", short: "See the servers that use the same records, and empty one of them",
	verbs: []declared{clusterStatus, clusterDrain, setAside},
}}

var clusterStatus = verb[api.Nothing]{
	use: "status", short: "Show servers, their versions, and which of them does what must be done once",
	long: `Show the servers that use the same records, with their versions, and the leases: what must be done once, and which server does it.
A server is running when it was seen within the time of a lease (10 s), and silent otherwise: it was killed, or is cut off; it is forgotten
after a week. One that is draining leaves its work to others. A server that stops in order is not listed any more.`,
	example: "  tutti cluster status\n  tutti cluster status -o json",
	run: func(ctx context.Context, c *call, _ *api.Nothing) error {
		return showAnswer(ctx, c.app, api.ClusterStatus, api.Nothing{}, printCluster)
	},
}

type clusterDrainInput struct{ over time.Duration }

var clusterDrain = verb[clusterDrainInput]{
	use: "drain SERVER", short: "Have a server leave its work to the others, before it is stopped",
	long: `Have one of several servers leave its work to the others: within seconds it says that it is not ready (/status/v1/simple), gives its leases back and
compiles nothing new; then it closes its connections to agents, a few at a time, over a minute or as long as --over says, and lets nobody in. Requests are answered
as before. Stop it afterwards; when it starts again, it does everything again. SERVER is a name of tutti cluster status.`,
	example: "  tutti cluster drain pup-1/1a2b3c4d\n  tutti cluster drain pup-1/1a2b3c4d --over 5m",
	args:    exactly(1),
	flags: func(f flagSet, in *clusterDrainInput) {
		f.DurationVar(&in.over, "over", time.Minute, "the time in which its connections are closed")
	},
	run: func(ctx context.Context, c *call, in *clusterDrainInput) error {
		server := c.args[0]
		answer, err := ask(ctx, c.app, api.ClusterDrain, api.ClusterDrainRequest{Server: server, OverSeconds: max(1, int(in.over.Seconds()))})
		if err != nil {
			return err
		}
		return print.One(c.printer(), answer, print.Advice(func(api.Nothing) string {
			return server + " leaves its work to the others. Stop it when its agents have gone, in " + fault.Duration(in.over) + " or so."
		}))
	},
}

func printCluster(to print.Printer, cluster api.Cluster) error {
	now := time.Now()
	rows := make([][]string, len(cluster.Servers))
	for i, s := range cluster.Servers {
		roles := cmp.Or(strings.Join(s.Roles, ","), "all")
		rows[i] = []string{s.Server, to.State(s.State, s.State), roles, s.Version, s.Address, print.Ago(s.StartedAt, now), print.Ago(s.SeenAt, now)}
	}
	if err := to.Rows([]string{"server", "state", "roles", "version", "address", "started", "seen"}, rows); err != nil {
		return err
	}
	for _, s := range cluster.Servers {
		if s.Near != nil {
			to.Line("")
			to.Line(nearLine(s, now))
		}
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

// nearLine says what a server near its nodes did without the database.
func nearLine(s api.ClusterServer, now time.Time) string {
	n, text := s.Near, s.Server+" is near its nodes: "
	switch {
	case s.State == api.ServerSilent:
		text += "it may be cut off, and go on with what it keeps; when it was here last, it kept " + fault.Count(n.Kept, "catalog")
	case n.CutAt.IsZero():
		text += "it keeps " + fault.Count(n.Kept, "catalog") + ", and was not cut off from the database since its start"
	default:
		text += "it keeps " + fault.Count(n.Kept, "catalog") + "; it was cut off from the database " + print.Ago(n.CutAt, now) + " for " +
			fault.Duration(max(time.Second, n.BackAt.Sub(n.CutAt).Round(time.Second))) + ", gave kept catalogs to nodes " + fault.Count(n.Served, "time") +
			" since its start, and has " + strconv.Itoa(n.Queued) + " of what they sent still to deliver"
	}
	if n.SetAside > 0 {
		text += "; the database refused " + strconv.Itoa(n.SetAside) + " of that for good: `tutti cluster set-aside list` there says why"
	}
	return text
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
