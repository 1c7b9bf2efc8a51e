package rest

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"strings"
	"time"

	"github.com/tutti-project/tutti/api"
	"github.com/tutti-project/tutti/internal/action"
	"github.com/tutti-project/tutti/internal/action/invoke"
	"github.com/tutti-project/tutti/internal/fault"
	"github.com/tutti-project/tutti/internal/fleet"
	"github.com/tutti-project/tutti/internal/job"
	"github.com/tutti-project/tutti/internal/target"
)

// Invoker calls actions; invoke.Service does.
type Invoker interface {
	// Order is an action as a part of a job.
	Order(ctx context.Context, r invoke.Request) (job.ActionSpec, error)
	// Prepare checks a call of an action that only reads; Ask makes it.
	Prepare(ctx context.Context, r invoke.Request) (invoke.Call, error)
	Ask(ctx context.Context, c invoke.Call, tell func([]action.Answer))
}

// Judges judges nodes by filters; target.Resolver does.
type Judges interface {
	Judged(ctx context.Context, t job.Targets) ([]target.Judged, error)
}

// calls answers action.ask and node.match.
type calls struct {
	gate    *gate
	streams *streams
	roster  *roster
	invoker Invoker
	judges  Judges
}

func (h *calls) bindings() []binding {
	return []binding{each(raw(api.ActionAsk, h.ask)), each(answer(api.NodeMatch, h.match))}
}

// ask streams the answers to a call. What is wrong with it is said before the stream begins.
func (h *calls) ask(w http.ResponseWriter, r *http.Request, begin func(any) error) (any, error) {
	var request api.ActionAskRequest
	if err := api.Bind(r, &request); err != nil {
		return nil, err
	}
	ctx := r.Context()
	targets, err := targetsOf(request.Targets)
	if err != nil {
		return nil, err
	}
	if err := h.roster.checkNodes(ctx, targets.Nodes); err != nil {
		return nil, err
	}
	prepared, err := h.invoker.Prepare(ctx, invoke.Request{
		Module: request.Module, Action: request.Action, Texts: request.Texts, Values: request.Input, Targets: targets,
		Timeout: time.Duration(request.Timeout) * time.Millisecond, Batch: request.Batch, Sleep: time.Duration(request.BatchSleep) * time.Millisecond,
		SkipDenied: request.SkipDenied,
	})
	if err != nil {
		return nil, err
	}
	if len(prepared.Nodes) == 0 {
		return nil, &fault.Error{
			Kind: fault.NotFound, Detail: "no node is meant by these targets; nobody was asked", Hint: "with conditions, --dry-run says why each node fits or not",
		}
	}
	if err := begin(subject{fmt.Sprintf("%s %s on %s", request.Module, request.Action, fault.Count(len(prepared.Nodes), "node"))}); err != nil {
		return nil, err
	}
	s := callStream{opened(h.streams, w, r)}
	return s.follow(ctx, func(ctx context.Context) error { return s.run(ctx, h.invoker, request.Module, prepared) }, "stream", "call")
}

// callStream is one caller who hears the answers to a call.
type callStream struct{ eventStream }

func (s *callStream) run(ctx context.Context, invoker Invoker, module string, c invoke.Call) error {
	ctx, stop := context.WithCancel(ctx)
	defer stop()
	described, err := actionOf(c.Action)
	if err != nil {
		return err
	}
	if err := s.events(api.ActionEvent{Asked: &api.ActionAsked{Module: module, Nodes: len(c.Nodes), Action: described}}); err != nil {
		return err
	}
	var failed error
	invoker.Ask(ctx, c, func(answers []action.Answer) {
		if failed != nil {
			return
		}
		events := make([]api.ActionEvent, len(answers))
		for i, a := range answers {
			events[i].Answer = new(answerView(a))
		}
		if failed = s.events(events...); failed != nil {
			stop() // nobody hears the others
		}
	})
	if failed != nil {
		return failed
	}
	return s.send("event: " + api.StreamEnded + "\ndata: {}\n\n")
}

// pieceBytes is how much of a stream is sent together, or one event that is larger.
const pieceBytes = 256 << 10

// events sends some together.
func (s *callStream) events(all ...api.ActionEvent) error {
	var text strings.Builder
	for _, e := range all {
		data, err := json.Marshal(e)
		if err != nil {
			return err
		}
		text.WriteString("event: " + api.StreamChanged + "\ndata: ")
		text.Write(data)
		text.WriteString("\n\n")
		if text.Len() < pieceBytes {
			continue
		}
		if err := s.send(text.String()); err != nil {
			return err
		}
		text.Reset()
	}
	var err error
	if text.Len() > 0 {
		err = s.send(text.String())
	}
	_ = s.control.SetWriteDeadline(time.Time{}) // the next answer may take longer than a piece may take to be written
	return err
}

func answerView(a action.Answer) api.ActionAnswer {
	return api.ActionAnswer{Node: string(a.Node), State: a.Code.String(), Message: a.Message, Data: json.RawMessage(a.Data), Milliseconds: a.Millis}
}

// actionSpec is an action as a job.
func (h *orders) actionSpec(ctx context.Context, request api.JobActionRequest) (job.Spec, error) {
	spec, err := h.invoker.Order(ctx, invoke.Request{Module: request.Module, Action: request.Action, Texts: request.Texts, Values: request.Input})
	return job.Spec{Kind: job.Action, Action: &spec}, err
}

func (h *calls) match(ctx context.Context, request api.NodeMatchRequest) (list api.List[api.NodeMatched], err error) {
	targets, err := targetsOf(request.Targets)
	if err != nil {
		return list, err
	}
	if err := h.roster.checkNodes(ctx, targets.Nodes); err != nil {
		return list, err
	}
	judged, err := h.judges.Judged(ctx, targets)
	if err != nil {
		return list, err
	}
	judged, err = seen(ctx, h.gate, fleet.NodeRead, judged, func(j target.Judged) fleet.Object { return fleet.Object{Node: j.Node} })
	if err != nil {
		return list, err
	}
	list.Items = make([]api.NodeMatched, len(judged))
	for i, j := range judged {
		list.Items[i] = api.NodeMatched{Node: string(j.Node), Holds: j.Holds.String()}
		for _, part := range j.Parts {
			list.Items[i].Parts = append(list.Items[i].Parts, api.NodeMatchPart{Part: part.Text, Holds: part.Holds.String(), Why: part.Why})
		}
	}
	return list, nil
}
