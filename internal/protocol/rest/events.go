package rest

import (
	"context"
	"encoding/json"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/tutti-project/tutti/api"
	"github.com/tutti-project/tutti/internal/event"
	"github.com/tutti-project/tutti/internal/fault"
	"github.com/tutti-project/tutti/internal/fleet"
)

// Events knows what happens in Puppet runs: event.Service.
type Events interface {
	Events(ctx context.Context, f event.Filter) (event.Page, error)
	// Since is the number behind which is what was stored at a time or later.
	Since(ctx context.Context, t time.Time) (int64, error)
	// Last is the newest number.
	Last(ctx context.Context) (int64, error)
	// Wait returns when there may be events behind a number, or after a moment.
	Wait(ctx context.Context, after int64) error
}

// choice is which events somebody asks for.
type choice struct {
	event.Filter
	where string
	nodes map[fleet.Certname]bool // that where holds for
}

// choiceOf reads the filters that stream and list have in common.
func choiceOf(r api.EventStreamRequest) (w choice, err error) {
	w = choice{Filter: event.Filter{Environment: r.Environment, Types: listOf(r.Type)}, where: r.Where}
	if r.Node != "" {
		if w.Node, err = fleet.ParseCertname(r.Node); err != nil {
			return w, err
		}
	}
	if r.Environment != "" {
		if _, err = fleet.ParseEnvironment(r.Environment); err != nil {
			return w, err
		}
	}
	if r.Job != "" {
		if w.Job, err = jobID(r.Job); err != nil {
			return w, err
		}
	}
	if w.Statuses, err = wordsOf("status", r.Status, event.Statuses()); err != nil {
		return w, err
	}
	w.Kinds, err = wordsOf("kind", r.Kind, event.Kinds())
	if len(w.Types) > maxWords {
		return w, fault.New(fault.Invalid, "type: it has %d elements, at most %d are allowed", len(w.Types), maxWords)
	}
	return w, err
}

// maxWords bounds lists in queries.
const maxWords = 100

func listOf(text string) []string {
	if text == "" {
		return nil
	}
	return strings.Split(text, ",")
}

func wordsOf(field, text string, known []string) ([]string, error) {
	words := listOf(text)
	for _, word := range words {
		if !slices.Contains(known, word) {
			return nil, fault.New(fault.Invalid, "%s: %.40q is none of %s", field, word, strings.Join(known, ", "))
		}
	}
	return words, nil
}

// eventNumber reads the number of an event.
func eventNumber(field, text string) (int64, error) {
	number, err := strconv.ParseInt(text, 10, 64)
	if err != nil || number < 0 {
		return 0, fault.New(fault.Invalid, "%s must be the number of an event, not %.40q", field, text)
	}
	return number, nil
}

// events answers the operations of what happens in runs.
type events struct {
	gate     *gate
	selector *selector
	events   Events
	streams  *streams
}

func (h *events) bindings() []binding {
	return []binding{
		each(raw(api.EventStream, h.streamEvents)),
		each(answer(api.EventList, h.listEvents)),
	}
}

func (h *events) eventsSince(ctx context.Context, text string) (int64, error) {
	at, err := time.Parse(time.RFC3339, text)
	if err != nil {
		return 0, fault.New(fault.Invalid, "since must be a time as 2026-11-22T10:00:00Z, not %.40q", text)
	}
	return h.events.Since(ctx, at)
}

// look finds the nodes that a condition holds for now.
func (h *events) look(ctx context.Context, w *choice) error {
	if w.where == "" {
		return nil
	}
	names, err := h.selector.nodesWhere(ctx, w.where)
	if err != nil {
		return err
	}
	w.nodes = make(map[fleet.Certname]bool, len(names))
	for _, name := range names {
		w.nodes[name] = true
	}
	return nil
}

// visible is those of events that are wanted and that who asks may see.
func (h *events) visible(ctx context.Context, w choice, events []event.Event) ([]event.Event, error) {
	if w.nodes != nil {
		events = slices.DeleteFunc(events, func(e event.Event) bool { return !w.nodes[e.Node] })
	}
	return seen(ctx, h.gate, fleet.ReportRead, events, func(e event.Event) fleet.Object {
		return fleet.Object{Node: e.Node, Environment: fleet.Environment(e.Environment)}
	})
}

// eventPages is how many pages are looked at for one answer, which may then hold less.
const eventPages = 20

func (h *events) listEvents(ctx context.Context, request api.EventListRequest) (list api.List[api.Event], err error) {
	list.Items = []api.Event{}
	page, err := pageOf("", request.Limit)
	if err != nil {
		return list, err
	}
	w, err := choiceOf(api.EventStreamRequest{
		Node: request.Node, Where: request.Where, Job: request.Job, Environment: request.Environment, Kind: request.Kind, Status: request.Status, Type: request.Type,
	})
	if err != nil {
		return list, err
	}
	w.Newest, w.Limit = true, page.Limit
	if request.After != "" {
		if w.Before, err = eventNumber("after", request.After); err != nil {
			return list, err
		}
	}
	if request.Since != "" {
		if w.After, err = h.eventsSince(ctx, request.Since); err != nil {
			return list, err
		}
	}
	if err := h.look(ctx, &w); err != nil {
		return list, err
	}
	for range eventPages {
		found, err := h.events.Events(ctx, w.Filter)
		if err != nil {
			return list, err
		}
		events, err := h.visible(ctx, w, found.Events)
		if err != nil {
			return list, err
		}
		for _, e := range events {
			list.Items = append(list.Items, eventOf(e))
		}
		w.Before, w.Limit, list.Next = found.Upto, page.Limit-len(list.Items), ""
		if found.Upto > 0 {
			list.Next = strconv.FormatInt(found.Upto, 10)
		}
		if found.Upto == 0 || w.Limit == 0 {
			break
		}
	}
	return list, nil
}

func eventOf(e event.Event) api.Event {
	job := ""
	if e.Job > 0 {
		job = strconv.FormatInt(e.Job, 10)
	}
	return api.Event{
		Number: e.Number, Node: string(e.Node), Run: e.Run, Job: job, N: e.N, Kind: e.Kind, Time: e.At.UTC(), StoredAt: e.StoredAt.UTC(), Environment: e.Environment,
		Noop: e.Noop, Status: e.Status, Type: e.Type, Title: e.Title, Property: e.Property, Name: e.Name, Message: e.Message,
		Old: json.RawMessage(e.Old), New: json.RawMessage(e.New), Redacted: e.Redacted, Corrective: e.Corrective, File: e.File, Line: e.Line,
		Containment: e.Containment, Missing: e.Missing, Pending: e.Pending, Version: e.Version, Reported: e.Reported,
	}
}
