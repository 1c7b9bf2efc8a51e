package main

import (
	"context"
	"encoding/json"
	"fmt"
	"time"

	"github.com/tutti-project/tutti/internal/fleet"
	"github.com/tutti-project/tutti/internal/inventory"
	"github.com/tutti-project/tutti/internal/sqlstore"
)

// direct puts commands into the store without a server.
type direct struct{ store *sqlstore.Store }

func (d *direct) drain(context.Context, int) error { return nil }

func (d *direct) send(ctx context.Context, _ int, c command) error {
	switch c.name {
	case "replace_facts":
		return d.facts(ctx, c)
	case "replace_catalog":
		return d.catalog(ctx, c)
	default:
		return d.report(ctx, c)
	}
}

func (d *direct) facts(ctx context.Context, c command) error {
	var sent struct {
		Environment fleet.Environment
		At          time.Time `json:"producer_timestamp"`
		Values      json.RawMessage
	}
	if err := json.Unmarshal(c.body, &sent); err != nil {
		return err
	}
	_, _, err := d.store.SaveFacts(ctx, inventory.FactSet{
		Certname: fleet.Certname(c.node), Environment: sent.Environment, Values: sent.Values, Timestamp: sent.At, ReceivedAt: time.Now(),
	})
	return err
}

type reference struct{ Type, Title string }

func (r reference) String() string { return fmt.Sprintf("%s[%s]", r.Type, r.Title) }

func (d *direct) catalog(ctx context.Context, c command) error {
	var sent struct {
		Environment fleet.Environment
		At          time.Time `json:"producer_timestamp"`
		UUID        string    `json:"catalog_uuid"`
		Transaction string    `json:"transaction_uuid"`
		Version     fleet.Digest
		Resources   []inventory.Resource
		Edges       []struct {
			Source, Target reference
			Relationship   string
		}
	}
	if err := json.Unmarshal(c.body, &sent); err != nil {
		return err
	}
	catalog := inventory.Catalog{
		Certname: fleet.Certname(c.node), Environment: sent.Environment, Digest: fleet.DigestOf(c.body), Version: sent.Version, UUID: sent.UUID,
		Transaction: sent.Transaction, CompiledAt: sent.At, Resources: sent.Resources,
	}
	for _, e := range sent.Edges {
		catalog.Edges = append(catalog.Edges, inventory.Edge{Source: e.Source.String(), Target: e.Target.String(), Relationship: e.Relationship})
	}
	return d.store.SaveCatalog(ctx, catalog)
}

func (d *direct) report(ctx context.Context, c command) error {
	var sent struct {
		Environment fleet.Environment
		Puppet      string    `json:"puppet_version"`
		Format      int       `json:"report_format"`
		Version     string    `json:"configuration_version"`
		Start       time.Time `json:"start_time"`
		End         time.Time `json:"end_time"`
		Producer    string
		Transaction string `json:"transaction_uuid"`
		Catalog     string `json:"catalog_uuid"`
		Cached      string `json:"cached_catalog_status"`
		Status      string
		Noop        bool
		Pending     bool `json:"noop_pending"`
		Metrics     []struct {
			Category, Name string
			Value          float64
		}
		Logs      []inventory.RunLog
		Resources []struct {
			Skipped   bool
			Timestamp time.Time
			Type      string `json:"resource_type"`
			Title     string `json:"resource_title"`
			File      string
			Line      int
			Path      []string `json:"containment_path"`
			Events    []struct {
				Status, Property, Name, Message string
				Timestamp                       time.Time
				New                             json.RawMessage `json:"new_value"`
				Old                             json.RawMessage `json:"old_value"`
			}
		}
	}
	if err := json.Unmarshal(c.body, &sent); err != nil {
		return err
	}
	groups := map[string]map[string]any{}
	for _, m := range sent.Metrics {
		if groups[m.Category] == nil {
			groups[m.Category] = map[string]any{"name": m.Category, "label": m.Category, "values": [][]any{}}
		}
		groups[m.Category]["values"] = append(groups[m.Category]["values"].([][]any), []any{m.Name, m.Name, m.Value})
	}
	metrics, err := json.Marshal(groups)
	if err != nil {
		return err
	}
	r := inventory.Report{
		ID: fleet.DigestOf(c.body), Certname: fleet.Certname(c.node), Environment: sent.Environment, Status: sent.Status, Noop: sent.Noop,
		NoopPending: sent.Pending, Completed: true, PuppetVersion: sent.Puppet, ReportFormat: sent.Format, ConfigVersion: sent.Version,
		TransactionUUID: sent.Transaction, CatalogUUID: sent.Catalog, CachedCatalog: sent.Cached, Server: sent.Producer,
		StartedAt: sent.Start, EndedAt: sent.End, ReceivedAt: sent.End.Add(time.Second), Metrics: metrics, Logs: sent.Logs,
	}
	for _, s := range sent.Resources {
		status := inventory.ResourceStatus{Type: s.Type, Title: s.Title, File: s.File, Line: s.Line, ContainmentPath: s.Path, Skipped: s.Skipped, Changed: true, OutOfSync: true, Time: s.Timestamp}
		for _, e := range s.Events {
			status.Events = append(status.Events, inventory.Event{
				Property: e.Property, Previous: e.Old, Desired: e.New, Message: e.Message, Name: e.Name, Status: e.Status, Time: e.Timestamp,
			})
		}
		r.Resources = append(r.Resources, status)
	}
	return d.store.SaveReport(ctx, r)
}
