package rest

import (
	"context"
	"strings"

	"github.com/tutti-project/tutti/api"
	"github.com/tutti-project/tutti/internal/fault"
	"github.com/tutti-project/tutti/internal/fleet"
	"github.com/tutti-project/tutti/internal/inventory"
	"github.com/tutti-project/tutti/internal/inventory/chart"
)

// drawNode draws what failed on a node and what waited for it, or all of its catalog.
func (h *nodes) drawNode(ctx context.Context, request api.NodeGraphRequest) (api.ResourceGraph, error) {
	if request.Show == "" {
		request.Show = "failed"
	}
	if request.Show != "failed" && request.Show != "catalog" {
		return api.ResourceGraph{}, fault.New(fault.Invalid, "show is %.40q; it is failed or catalog", request.Show)
	}
	name, err := fleet.ParseCertname(request.Name)
	if err != nil {
		return api.ResourceGraph{}, err
	}
	node, err := h.nodes.Node(ctx, name)
	if err != nil {
		return api.ResourceGraph{}, err
	}
	var report inventory.Report
	if node.LatestReport != "" {
		if report, err = h.reports.Report(ctx, string(node.LatestReport)); err != nil {
			return api.ResourceGraph{}, err
		}
	}
	catalog, err := h.catalogs.Catalog(ctx, name)
	if err != nil && fault.Of(err) != fault.NotFound {
		return api.ResourceGraph{}, err
	}
	whole := request.Show == "catalog"
	q := chart.Question{Resources: shownIn(report, catalog, whole), Edges: catalog.Edges, Whole: whole, Near: request.Near}
	if request.Open != "" {
		q.Open = strings.Split(request.Open, ",")
	}
	c := chart.Draw(q)
	if request.Near != "" && len(c.Boxes) == 0 {
		return api.ResourceGraph{}, fault.New(fault.NotFound, "%.200s is not in this picture of %s", request.Near, name)
	}
	g := pictureOf(c)
	g.Node, g.Show = string(name), request.Show
	g.OtherCatalog = report.ID != "" && (err != nil || report.CatalogUUID != "" && catalog.UUID != report.CatalogUUID)
	return g, nil
}

// shownIn is what a picture is made of: the resources of the last run, and of the whole catalog if it is asked for.
func shownIn(report inventory.Report, catalog inventory.Catalog, whole bool) []chart.Resource {
	states := make(map[string]string, len(report.Resources))
	var all []chart.Resource
	for _, r := range report.Resources {
		name := r.Type + "[" + r.Title + "]"
		states[name] = statusOf(r)
		if !whole {
			all = append(all, chart.Resource{Name: name, State: states[name], File: r.File, Line: r.Line})
		}
	}
	if whole {
		for _, r := range catalog.Resources {
			name := r.Type + "[" + r.Title + "]"
			all = append(all, chart.Resource{Name: name, State: states[name], File: r.File, Line: r.Line})
		}
	}
	return all
}

func pictureOf(c chart.Chart) api.ResourceGraph {
	g := api.ResourceGraph{
		Width: c.Width, Height: c.Height, BoxWidth: c.BoxWidth, BoxHeight: c.BoxHeight, Left: c.Left, LinesLeft: c.LinesLeft, Folds: c.Folds, Cycle: c.Cycle,
		Boxes: make([]api.ResourceBox, len(c.Boxes)), Lines: make([]api.ResourceLine, len(c.Lines)),
	}
	for i, b := range c.Boxes {
		g.Boxes[i] = api.ResourceBox{Name: b.Name, State: b.State, Folded: b.Folded, Counts: b.Counts, File: b.File, Line: b.Line, Row: b.Row, X: b.X, Y: b.Y}
	}
	for i, l := range c.Lines {
		points := make([][]int, len(l.Points))
		for k, p := range l.Points {
			points[k] = []int{p.X, p.Y}
		}
		g.Lines[i] = api.ResourceLine{From: l.From, To: l.To, Kinds: l.Kinds, Edges: l.Edges, Back: l.Back, Points: points}
	}
	return g
}
