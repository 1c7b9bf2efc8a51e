package e2e_test

import (
	"bytes"
	"context"
	"crypto/tls"
	"encoding/json"
	"fmt"
	"io"
	"math/rand/v2"
	"net"
	"net/http"
	"os/exec"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/tutti-project/tutti/api"
)

// asksWithin is how long a client waits for an answer; then it does not know what became of its question.
const asksWithin = 15 * time.Second

// havocNode sends what a simulated node would: facts and reports. What it was told it notes.
type havocNode struct {
	h      *havoc
	name   string
	part   string // of the code
	client *http.Client
	random *rand.Rand
	number int64 // of its newest facts
}

func newHavocNode(h *havoc, name string, at *place, identity *tls.Config) *havocNode {
	dial := func(ctx context.Context, _, address string) (net.Conn, error) { return at.dial(ctx, address) }
	return &havocNode{
		h: h, name: name, part: at.name, random: rand.New(rand.NewPCG(h.seed, uint64(len(h.nodes))+1000)),
		client: &http.Client{Timeout: asksWithin, Transport: &http.Transport{TLSClientConfig: identity, DialContext: dial, MaxIdleConns: 1}},
	}
}

// live sends facts and reports, one after the other, until ctx is done.
func (n *havocNode) live(ctx context.Context, pause time.Duration) {
	defer n.client.CloseIdleConnections()
	for ctx.Err() == nil {
		n.pause(ctx, time.Duration(n.random.Int64N(int64(2*pause))))
		if n.random.IntN(3) > 0 {
			n.submit(ctx)
		} else {
			n.report(ctx)
		}
	}
}

// submit sends other facts, again and again until they are acknowledged.
func (n *havocNode) submit(ctx context.Context) {
	n.number++
	value := n.random.Int64N(1_000_000_000)
	n.note(func(f *factsTold) { f.sent[n.number] = value })
	body, err := json.Marshal(map[string]any{
		"number": n.number, "timestamp": time.Now(), "environment": "production",
		"values": map[string]any{"part": n.part, "number": n.number, "value": value, "kernel": "Linux"},
	})
	if err != nil {
		panic(err) // the map above can be encoded
	}
	if n.until(ctx, "/node/v1/facts", body) {
		n.note(func(f *factsTold) { f.acknowledged = max(f.acknowledged, n.number) })
	}
}

// note changes what is noted of the node's facts.
func (n *havocNode) note(how func(*factsTold)) {
	n.h.notes.Lock()
	defer n.h.notes.Unlock()
	f := n.h.notes.facts[n.name]
	if f.sent == nil {
		f.sent = map[int64]int64{}
	}
	how(&f)
	n.h.notes.facts[n.name] = f
}

// report sends the report of a run, as often as it takes.
func (n *havocNode) report(ctx context.Context) {
	transaction := newUUID()
	n.h.noteReport(transaction, false)
	if n.until(ctx, "/puppet/v3/report/"+n.name+"?environment=production", reportJSON(n.name, transaction)) {
		n.h.noteReport(transaction, true)
	}
}

func (h *havoc) noteReport(transaction string, acknowledged bool) {
	h.notes.Lock()
	defer h.notes.Unlock()
	h.notes.reports[transaction] = acknowledged
}

// until sends something until it is acknowledged, and says whether it was.
func (n *havocNode) until(ctx context.Context, path string, body []byte) bool {
	for ctx.Err() == nil {
		status, err := n.put(ctx, path, body)
		if err == nil && (status == http.StatusOK || status == http.StatusAccepted) {
			return true
		}
		n.pause(ctx, 300*time.Millisecond)
	}
	return false
}

func (n *havocNode) put(ctx context.Context, path string, body []byte) (status int, err error) {
	request, err := http.NewRequestWithContext(ctx, http.MethodPut, "https://"+anyServer+":8140"+path, bytes.NewReader(body))
	if err != nil {
		return 0, err
	}
	request.Header.Set("Content-Type", "application/json")
	response, err := n.client.Do(request)
	if err != nil {
		return 0, err
	}
	defer func() { _ = response.Body.Close() }()
	_, err = io.Copy(io.Discard, response.Body)
	return response.StatusCode, err
}

func (n *havocNode) pause(ctx context.Context, d time.Duration) {
	select {
	case <-ctx.Done():
	case <-time.After(d):
	}
}

// load has everybody send, order, deploy and release. Stop ends it: what is under way then comes to its end.
func (h *havoc) load(t *testing.T) (stop func()) {
	t.Helper()
	ctx, cancel := context.WithCancel(t.Context())
	var wait sync.WaitGroup
	pause := max(2*time.Second, time.Duration(len(h.nodes))*40*time.Millisecond)
	for _, n := range h.nodes {
		wait.Go(func() { n.live(ctx, pause) })
	}
	for i, does := range []func(context.Context, *testing.T, *rand.Rand){h.order, h.deploy, h.release} {
		wait.Go(func() { does(ctx, t, rand.New(rand.NewPCG(h.seed, uint64(i)+10))) })
	}
	stop = sync.OnceFunc(func() {
		cancel()
		wait.Wait()
	})
	t.Cleanup(stop)
	return stop
}

// someServer is the client of any server.
func (h *havoc) someServer(random *rand.Rand) (string, *api.Client) {
	name := serverPlaces[random.IntN(len(serverPlaces))]
	return name, h.clients[name]
}

// question asks a server, and does not wait for ever.
func question[Request, Response any](ctx context.Context, client *api.Client, op api.Op[Request, Response], request Request) (Response, error) {
	ctx, cancel := context.WithTimeout(ctx, asksWithin)
	defer cancel()
	return op.Call(ctx, client, request)
}

// order orders commands on real and simulated nodes, each of which writes a line there. An order whose answer did not come is not given again.
func (h *havoc) order(ctx context.Context, _ *testing.T, random *rand.Rand) {
	for i := 1; ctx.Err() == nil; i++ {
		label := fmt.Sprintf("order-%04d", i)
		targets := []string{h.agents[agentPlaces[0]].daemon.name, h.agents[agentPlaces[1]].daemon.name}
		for _, k := range random.Perm(len(h.nodes))[:min(10, len(h.nodes))] {
			targets = append(targets, h.nodes[k].name)
		}
		slices.Sort(targets)
		h.noteOrder(label, orderTold{targets: targets})
		_, client := h.someServer(random)
		started, err := question(ctx, client, api.JobCommand, api.JobCommandRequest{
			JobOrder: api.JobOrder{Targets: api.JobTargets{Nodes: targets}, WaitOffline: 300, Timeout: 900, Description: label},
			Command:  "echo " + label + " >> $CHAOS_MARKS/$CHAOS_NODE; echo " + label,
		})
		if err == nil {
			h.noteOrder(label, orderTold{job: started.Job.ID, targets: targets})
		}
		rest(ctx, random, 2*time.Second)
	}
}

func (h *havoc) noteOrder(label string, o orderTold) {
	h.notes.Lock()
	defer h.notes.Unlock()
	h.notes.orders[label] = o
}

// rest waits for some time around d.
func rest(ctx context.Context, random *rand.Rand, d time.Duration) {
	select {
	case <-ctx.Done():
	case <-time.After(d/2 + time.Duration(random.Int64N(int64(d)))):
	}
}

// cliWithin is how long an operator waits for a command.
const cliWithin = 2 * time.Minute

// cli is a command of an operator who asks any server. A command that takes too long is given up, and has failed.
func (h *havoc) cli(ctx context.Context, random *rand.Rand, args ...string) result {
	ctx, cancel := context.WithTimeout(ctx, cliWithin)
	defer cancel()
	name, _ := h.someServer(random)
	cmd := exec.CommandContext(ctx, binary, args...)
	var out bytes.Buffer
	cmd.Env, cmd.Stdout, cmd.WaitDelay = slices.Concat(h.env, h.servers[name].access()), &out, time.Second
	err := cmd.Run()
	if err != nil {
		return result{code: 1, out: out.String(), err: err.Error()}
	}
	return result{out: out.String()}
}

// deploy deploys one edition after the other of the code of nodes in live mode.
func (h *havoc) deploy(ctx context.Context, t *testing.T, random *rand.Rand) {
	t.Helper()
	for ctx.Err() == nil {
		h.code.write(t)
		// the last one is deployed, whatever happens
		for h.cli(context.WithoutCancel(ctx), random, "code", "deploy", "--no-check", "production", h.code.dir).code != 0 {
			rest(ctx, random, time.Second)
		}
		rest(ctx, random, 30*time.Second) // a version that is followed too soon is never compiled
	}
}

// release releases one edition after the other to the nodes in released mode, in waves that a person promotes. The last one comes to its end.
func (h *havoc) release(ctx context.Context, t *testing.T, random *rand.Rand) {
	t.Helper()
	var names []string
	for _, n := range h.nodes {
		if n.part == "released" {
			names = append(names, n.name)
		}
	}
	for made := 0; ctx.Err() == nil || made == 0; {
		h.next.write(t)
		label := fmt.Sprintf("release of edition %d", h.next.number)
		var preview int64
		out := h.cli(context.WithoutCancel(ctx), random, "preview", "create", "production", "--ref", h.next.dir, "--targets", strings.Join(names, ","))
		if _, err := fmt.Sscanf(out.out, "Preview %d ", &preview); err != nil || out.code != 0 {
			rest(ctx, random, time.Second)
			continue
		}
		if id := h.create(context.WithoutCancel(ctx), random, label, preview, names); id != "" {
			h.promote(context.WithoutCancel(ctx), t, random, id)
			made++
			t.Logf("release %s, of edition %d, has ended", id, h.next.number)
		}
		rest(ctx, random, 2*time.Second)
	}
}

// create makes a release, and when the answer is lost looks whether it is there.
func (h *havoc) create(ctx context.Context, random *rand.Rand, label string, preview int64, names []string) string {
	_, client := h.someServer(random)
	made, err := question(ctx, client, api.ReleaseCreate, api.ReleaseCreateRequest{
		Preview: preview, Targets: api.JobTargets{Nodes: names}, Description: label,
		ReleaseOptions: api.ReleaseOptions{Waves: []string{"2", "40%", "rest"}, Promote: "manual", WaitOffline: 300, Timeout: 900},
	})
	if err == nil {
		h.noteRelease(made.ID, func(*releaseTold) {})
		return made.ID
	}
	for end := time.Now().Add(patience); time.Now().Before(end); {
		_, client := h.someServer(random)
		if all, err := question(ctx, client, api.ReleaseList, api.ReleaseListRequest{Limit: 100}); err == nil {
			for _, r := range all.Items {
				if r.Description == label {
					return r.ID
				}
			}
			return ""
		}
		rest(ctx, random, time.Second)
	}
	return ""
}

func (h *havoc) noteRelease(id string, how func(*releaseTold)) {
	h.notes.Lock()
	defer h.notes.Unlock()
	r := h.notes.releases[id]
	how(&r)
	h.notes.releases[id] = r
}

// promote promotes a release whenever it waits for that, until it has ended.
func (h *havoc) promote(ctx context.Context, t *testing.T, random *rand.Rand, id string) {
	t.Helper()
	for end := time.Now().Add(3 * patience); time.Now().Before(end); rest(ctx, random, 300*time.Millisecond) {
		_, client := h.someServer(random)
		now, err := question(ctx, client, api.ReleaseShow, api.ReleaseShowRequest{Release: id})
		switch {
		case err != nil:
		case now.EndedAt != nil:
			return
		case now.State == "paused" && now.Hold != "promotion":
			_, _ = question(ctx, client, api.ReleaseResume, api.ReleaseResumeRequest{Release: id})
		case now.Hold == "promotion":
			h.noteRelease(id, func(r *releaseTold) {
				if slices.Contains(r.promoted, now.Wave) {
					r.waitedAgain = append(r.waitedAgain, now.Wave)
				}
			})
			if _, err := question(ctx, client, api.ReleasePromote, api.ReleaseRequest{Release: id}); err == nil {
				h.noteRelease(id, func(r *releaseTold) { r.promoted = append(r.promoted, now.Wave) })
			}
		}
	}
	t.Errorf("release %s does not end", id)
}
